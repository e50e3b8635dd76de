"""The method: train members, select among them, add the other parts, calibrate."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from fewlier.decision.reference import MAX_COUNTED, Reference
from fewlier.density.base import Density, DensitySettings
from fewlier.density.networks import inference
from fewlier.density.rows import Rows
from fewlier.errors import UserError, parameter, warn
from fewlier.process.memory import REMEDY, memory_of_machine
from fewlier.process.progress import Progress, no_progress
from fewlier.process.threads import one_thread
from fewlier.score.ensemble import Ensemble
from fewlier.score.held_out import calibrate
from fewlier.score.member import FittedMember
from fewlier.score.model import FittedModel, fit_parts
from fewlier.score.neighbours.view import max_landmarks
from fewlier.score.part import Known
from fewlier.score.ranges import MAX_MEASURED, Ranges
from fewlier.score.scorer import Addend, Scorer
from fewlier.score.shares import MIN_TO_RANK, average, best, own_passes, spaced
from fewlier.table import Encoder
from fewlier.table.arrays import Ints
from fewlier.training.folds import one_of_each, share_of_copies
from fewlier.training.history import CriterionName, MemberHistory, thin_curve
from fewlier.training.objective import criterion
from fewlier.training.plan import Plan
from fewlier.training.settings import Selection, Settings
from fewlier.training.stack import (
    Trained,
    bytes_to_train,
    train,
    validation_normals,
)
from fewlier.training.unlabelled import DoubtfulRows, Unlabelled, is_trusted, trim

UPDATE_EPOCHS = 3
"""Times as many epochs as a fit has; chosen on labelled tables, see results/update_starts.csv."""
MUCH_MEMORY = 2 * 10**9
"""From this many bytes on, a fit says beforehand how much it takes."""

N_USUAL = 16
"""Normals whose cells are made impossible, to see what that costs."""

Fitted: TypeAlias = tuple[FittedModel, tuple[MemberHistory, ...]]


@final
@dataclass(frozen=True)
class Recipe:
    """What the parameters of a detector mean for a fit."""

    density: DensitySettings
    selection: Selection
    lambdas: tuple[float, ...]
    settings: Settings
    unlabelled: Unlabelled
    device: torch.device
    false_alarm_rate: float


def fit_plan(plan: Plan, recipe: Recipe, progress: Progress = no_progress) -> Fitted:
    """Fit a model; return it with the history of its members."""
    template = make_template(plan.encoder, recipe, plan.seed)
    members = plan.members(recipe.lambdas)
    _announce_memory(template, len(members), plan.encoder.n_columns)
    rows, doubtful = Rows.of(plan.encoded, recipe.device), None
    if plan.doubtful.any():
        doubtful = torch.from_numpy(plan.doubtful).to(recipe.device)
    trained = train(template, rows, members, recipe.settings, progress, doubtful)
    return build(plan, template, trained, recipe)


def fit_update(
    model: FittedModel, plan: Plan, recipe: Recipe, progress: Progress = no_progress
) -> Fitted:
    """Fit a model anew to kept and new rows, whose columns are read as before.

    Rows are often labelled because they score high; by such rows an early epoch would seem best, so
    that the last is kept. Drift is still measured against the rows of the first fit, which are more
    than those kept.
    """
    epochs = UPDATE_EPOCHS * recipe.settings.max_epochs
    settings = replace(recipe.settings, max_epochs=epochs, patience=None, keep_last=True)
    fitted, history = fit_plan(plan, replace(recipe, settings=settings), progress)
    return replace(fitted, reference=model.reference), history


def make_template(encoder: Encoder, recipe: Recipe, seed: int) -> Density:
    """Build the template that every member of a fit starts from."""
    generator = torch.Generator().manual_seed(seed)
    return recipe.density.build(encoder, generator).to(recipe.device)


@one_thread()
@inference()
def build(plan: Plan, template: Density, trained: Sequence[Trained], recipe: Recipe) -> Fitted:
    """Make a model of trained members: select among them, add the other parts, calibrate."""
    judged = [judge(plan, template, one, i, recipe) for i, one in enumerate(trained)]
    history = select([line for _, line in judged], plan, recipe.selection)
    kept = [(m, line.weight) for (m, _), line in zip(judged, history, strict=True) if line.weight]
    members, weights = zip(*kept, strict=True)
    ensemble = Ensemble(members, weights, recipe.selection)
    return add_parts(plan, ensemble, recipe.false_alarm_rate), history


def judge(
    plan: Plan, template: Density, trained: Trained, number: int, recipe: Recipe
) -> tuple[FittedMember | None, MemberHistory]:
    """Measure the member of this number on its fold's validation rows; None if it diverged."""
    member, selection = trained.member, recipe.selection
    unranked: CriterionName = "likelihood" if template.is_probabilistic else "reconstruction"
    history = MemberHistory(
        member.lam,
        member.fold,
        member.seed,
        len(member.rows.anomalies),
        "diverged",
        0.0,
        recipe.settings.criterion if len(member.rows.validation_anomalies) else unranked,
        None,
        trained.best_epoch,
        *thin_curve(trained.curve),
    )
    if trained.diverged:
        return None, history
    density = template.with_parameters(trained.parameters)
    passes = own_passes(number, density.n_passes, selection)
    normals = validation_normals(member)
    rows, anomalies = (
        Rows.of(plan.encoded.take(index), recipe.device)
        for index in (normals, member.rows.validation_anomalies)
    )
    fitted = FittedMember.fit((member.lam, member.fold), density, passes, rows, selection)
    doubtful = torch.from_numpy(plan.doubtful[normals])[None].to(recipe.device)
    value = _criterion(fitted.log_p(rows), fitted.log_p(anomalies), doubtful, recipe)
    if not np.isfinite([value, fitted.scale, *fitted.centre]).all():
        return None, history
    return fitted, replace(history, status="left out", criterion=value)


def select(
    history: Sequence[MemberHistory], plan: Plan, selection: Selection
) -> tuple[MemberHistory, ...]:
    """Weigh the members; with `average`, folds count alike, because their labels differ.

    Copies of an anomaly, which share its id, are one label.
    """
    judged = np.array([i for i, line in enumerate(history) if line.criterion is not None])
    if not len(judged):
        found = f"Every member diverged in training. Lower {parameter('learning_rate')}."
        raise UserError(found, parameter="learning_rate")
    values, lambdas, epochs, folds = np.array(
        [(line.criterion, line.lam, line.best_epoch, line.fold) for line in history], dtype=float
    )[judged].T
    weights = np.zeros(len(history))
    if selection == "best":
        weights[judged] = best(values, epochs, lambdas)
    else:
        for number in np.unique(folds):
            here, fold = np.flatnonzero(folds == number), plan.folds[int(number)]
            n_held_out = len(one_of_each(fold.validation_anomalies, plan.ids))
            n_anomalies = len(one_of_each(fold.anomalies, plan.ids)) + n_held_out
            weights[judged[here]] = (
                average(values[here], lambdas[here], n_anomalies)
                if n_held_out >= MIN_TO_RANK
                else spaced(lambdas[here])
            ) / len(np.unique(folds))
    return tuple(
        replace(line, weight=weight, status="kept") if weight else line
        for line, weight in zip(history, weights.tolist(), strict=True)
    )


@inference()
def add_parts(plan: Plan, ensemble: Ensemble, false_alarm_rate: float) -> FittedModel:
    """Make a model of an ensemble: add the other parts, and calibrate their sum."""
    scorer = Scorer(plan.encoder, ensemble)
    normals, doubtful_rows = _trusted_normals(plan, scorer)
    if ensemble.selection == "average":
        scorer = replace(scorer, others=_other_parts(plan, scorer, normals))
    usual = np.random.default_rng(plan.seed).permutation(normals)[:N_USUAL]
    scorer = scorer.with_costs_alone(plan.encoded.take(usual), plan.ids[usual])
    calibration = calibrate(plan, scorer, false_alarm_rate)
    return FittedModel(scorer, calibration, _reference(plan), _ranges(plan, scorer), doubtful_rows)


def _other_parts(plan: Plan, scorer: Scorer, normals: Ints) -> tuple[Addend, ...]:
    """Fit the parts beside the density to these normals and the labelled anomalies.

    Labelled anomalies that the user gave to validate on are not among them.
    """
    labelled = [rows for f in plan.folds for rows in (f.anomalies, f.validation_anomalies)]
    anomalies = _draw(plan, [rows[rows < plan.n_training] for rows in labelled])
    both = np.sort(np.concatenate([normals, anomalies]))
    encoded, known = plan.encoded.take(both), (plan.ids[both], np.isin(both, anomalies))
    return fit_parts(Known.of(plan.encoder, encoded, known, plan.seed, scorer.device))


def _trusted_normals(plan: Plan, scorer: Scorer) -> tuple[Ints, DoubtfulRows | None]:
    """Draw normals that train some member, less the unlabelled ones that count less than half.

    Normals that all folds hold back are not among them. Return also how many of the unlabelled
    ones were left out; None where no row may be a hidden anomaly.
    """
    normals = _draw(plan, [fold.normals for fold in plan.folds])
    if not plan.doubtful.any():
        return normals, None
    rows = Rows.of(plan.encoded.take(normals), scorer.device)
    cost = scorer.ensemble.likeliest.cost(rows, scorer.ensemble.selection).sum(1).cpu()
    doubtful = plan.doubtful[normals]
    trusted = is_trusted(-cost[None], torch.from_numpy(doubtful)[None])[0].numpy()
    return normals[trusted], DoubtfulRows(int(doubtful.sum()), int((~trusted).sum()))


def _draw(plan: Plan, groups: Sequence[Ints]) -> Ints:
    """Draw as many of the rows as are compared with at most, in order."""
    rows = np.unique(np.concatenate(groups)).astype(np.int64)
    most = max_landmarks(plan.encoder.n_inputs)
    return np.sort(np.random.default_rng(plan.seed).permutation(rows)[:most])


def _reference(plan: Plan) -> Reference:
    """Count a sample of the normals of all roles."""
    roles = [(f.normals, f.validation_normals, f.calibration) for f in plan.folds]
    normals = np.unique(np.concatenate([rows for fold in roles for rows in fold]))
    sample = np.random.default_rng(plan.seed).permutation(normals)[:MAX_COUNTED]
    share = share_of_copies(sample, plan.ids)
    return Reference.from_encoded(plan.encoder, plan.encoded.take(sample), share)


def _ranges(plan: Plan, scorer: Scorer) -> Ranges:
    """Measure what is expected of normals that the member which expects has not trained on."""
    fold = plan.folds[scorer.ensemble.likeliest.fold]
    rows = fold.calibration if len(fold.calibration) else fold.validation_normals
    rows = np.random.default_rng(plan.seed).permutation(rows)[:MAX_MEASURED]
    normals, n_columns = plan.as_new(rows), plan.encoder.n_columns
    places = np.divmod(np.arange(len(rows) * n_columns), n_columns)
    return Ranges.fit(plan.encoder, normals, scorer.expect(normals, *places).quantiles.numpy())


def _criterion(
    normal: Float[Tensor, " n"], anomaly: Float[Tensor, " a"], doubtful: Tensor, recipe: Recipe
) -> float:
    """Judge a member by log p of its validation rows."""
    log_p, log_q = normal[None], anomaly[None]
    weights = torch.ones_like(log_p), torch.ones_like(log_q)
    trusted = trim(log_p, weights[0], doubtful)
    name = recipe.settings.criterion
    return float(criterion(log_p, log_q, *weights, name=name, likelihood_weight=trusted))


def _announce_memory(density: Density, n_members: int, n_columns: int) -> None:
    """Say before it starts that a fit takes much memory; refuse one that takes more than all."""
    needed, whole = bytes_to_train(density, n_members), memory_of_machine()
    if needed > whole:
        raise UserError(
            f"A fit of {n_columns:,} columns and {n_members} members takes about "
            f"{needed / 1e9:.0f} GB of memory; there are {whole / 1e9:.0f} GB. {REMEDY}"
        )
    if needed > MUCH_MEMORY:
        warn(
            f"{n_columns:,} columns and {n_members} members take about {needed / 1e9:.0f} GB of "
            f"memory to fit. {REMEDY}"
        )
