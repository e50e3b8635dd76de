"""From plans to fitted models: train, judge, weigh, calibrate."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import final

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float
from torch import Tensor

from fewlier.companions import trusted_normals, with_companions
from fewlier.decision.calibration import Calibration
from fewlier.decision.drift import MAX_ROWS, Reference
from fewlier.density.base import Density, DensitySettings, mean_over_passes
from fewlier.density.joint import Anchors, Rows
from fewlier.errors import ParameterError, UserError, warn
from fewlier.room import REMEDY, memory_limit
from fewlier.score.model import (
    FittedMember,
    FittedModel,
    member_terms,
    part_costs,
    pass_anchors,
    total_cost,
)
from fewlier.score.selection import ENOUGH_TO_RANK, average, best, own_passes, spaced
from fewlier.table import Encoded, Encoder
from fewlier.training.batches import IntArray
from fewlier.training.history import CriterionName, MemberHistory
from fewlier.training.roles import Plan, Selection
from fewlier.training.stack import (
    Member,
    OnEpoch,
    Settings,
    Trained,
    bytes_to_train,
    criterion,
    no_news,
    train,
    validation_normals,
)
from fewlier.training.unlabelled import Unlabelled, trimmed
from fewlier.unseen import calibrated

MUCH_MEMORY = 2 * 10**9
"""From so many bytes on, a fit says beforehand how much it takes."""


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


@final
@dataclass(frozen=True)
class _Candidate:
    """A trained member, judged with the passes that it scores with."""

    fold: int
    member: Member
    trained: Trained
    density: Density
    passes: tuple[int, ...]
    anchors: Anchors
    centre: npt.NDArray[np.float64]
    scale: float
    criterion: float


def make_template(encoder: Encoder, recipe: Recipe, seed: int) -> Density:
    """Build the template that every member of a fit starts from."""
    generator = torch.Generator().manual_seed(seed)
    return recipe.density.build(encoder, generator).to(recipe.device)


def fit_models(
    plans: Sequence[Plan],
    recipe: Recipe,
    on_epoch: OnEpoch = no_news,
) -> list[tuple[FittedModel, tuple[MemberHistory, ...]]]:
    """Fit every plan, all of their members as one stack.

    Each comes out as if fitted alone. The plans' tables must have the same columns, with the same
    codings, levels and columns that may be missing: all members share the constants of the first
    plan's conditionals (units and means), which shift log p but hardly rank rows.
    """
    members = [plan.members(recipe.lambdas) for plan in plans]
    return fit_members(plans, _templates(plans, recipe), members, recipe, on_epoch)


def _reference(plan: Plan) -> Reference:
    """Count a sample of the normals of all roles."""
    roles = [(f.normals, f.validation_normals, f.calibration) for f in plan.folds]
    normals = np.unique(np.concatenate([rows for fold in roles for rows in fold]))
    sample = np.random.default_rng(plan.seed).permutation(normals)[:MAX_ROWS]
    return Reference.from_encoded(plan.encoder, plan.encoded.take(sample))


def _templates(plans: Sequence[Plan], recipe: Recipe) -> list[Density]:
    """Build the template of each plan, with what its own seed draws."""
    return [make_template(plans[0].encoder, recipe, plan.seed) for plan in plans]


def fit_members(
    plans: Sequence[Plan],
    densities: Sequence[Density],
    members: Sequence[Sequence[tuple[int, Member]]],
    recipe: Recipe,
    on_epoch: OnEpoch = no_news,
) -> list[tuple[FittedModel, tuple[MemberHistory, ...]]]:
    """Train the members of every plan, each with its fold, from its template; judge and weigh."""
    _announce_memory(densities[0], sum(map(len, members)), plans[0].encoder.n_columns)
    trained = _trained(plans, densities, members, recipe, on_epoch)
    return [_fitted(*one, recipe) for one in zip(plans, densities, trained, strict=True)]


def _announce_memory(density: Density, n_members: int, n_columns: int) -> None:
    """Say before it starts that a fit takes much memory; refuse one that takes more than all."""
    needed, whole = bytes_to_train(density, n_members), memory_limit()
    if needed > whole:
        raise UserError(
            f"A fit must find room in memory; {n_columns:,} columns and {n_members} members take "
            f"about {needed / 1e9:.0f} GB, and there are {whole / 1e9:.0f} GB. {REMEDY}"
        )
    if needed > MUCH_MEMORY:
        warn(
            f"{n_columns:,} columns and {n_members} members take about {needed / 1e9:.0f} GB of "
            f"memory to fit. {REMEDY}"
        )


def fit_each_lambda(
    plans: Sequence[Plan],
    recipe: Recipe,
    on_epoch: OnEpoch = no_news,
) -> list[tuple[dict[float, FittedModel], tuple[MemberHistory, ...]]]:
    """Fit plans of one fold as one stack, and keep the model of every lambda at its best epoch.

    The history is that of a fit by the paper's rule: the lambda it keeps is the one of weight 1.
    A lambda whose member diverged has no model.
    """
    members = [plan.members(recipe.lambdas) for plan in plans]
    densities = _templates(plans, recipe)
    trained = _trained(plans, densities, members, recipe, on_epoch)
    found = []
    for plan, density, group in zip(plans, densities, trained, strict=True):
        candidates = _candidates(plan, density, group, recipe)
        weights = _weights(candidates, recipe) if candidates else np.empty(0)
        alone = {c.member.lam: _model(plan, [c], np.ones(1), recipe) for c in candidates}
        found.append((alone, _history(group, candidates, weights, recipe, density)))
    return found


def _trained(
    plans: Sequence[Plan],
    densities: Sequence[Density],
    members: Sequence[Sequence[tuple[int, Member]]],
    recipe: Recipe,
    on_epoch: OnEpoch,
) -> list[list[tuple[int, Member, Trained]]]:
    """Train the members of all plans as one stack, and return them by plan."""
    encoded = reduce(Encoded.followed_by, [plan.encoded for plan in plans])
    rows = Rows.of(encoded, recipe.device)
    starts = np.cumsum([0] + [len(plan.encoded) for plan in plans[:-1]])
    # A single plan's own structure is the template's, and shared masks are faster.
    drawn = [density.drawn() if len(plans) > 1 else None for density in densities]
    flat = [
        replace(_shifted(member, int(start)), drawn=own)
        for start, own, group in zip(starts, drawn, members, strict=True)
        for _, member in group
    ]
    doubtful = np.concatenate([plan.doubtful for plan in plans])
    doubts = torch.from_numpy(doubtful).to(recipe.device) if doubtful.any() else None
    trained = iter(train(densities[0], rows, flat, recipe.settings, on_epoch, doubts))
    return [[(fold, member, next(trained)) for fold, member in group] for group in members]


def _shifted(member: Member, start: int) -> Member:
    """Return the member with its rows counted in the concatenated table."""
    return replace(
        member,
        normals=member.normals + start,
        anomalies=member.anomalies + start,
        validation_normals=member.validation_normals + start,
        validation_anomalies=member.validation_anomalies + start,
    )


def _fitted(
    plan: Plan, density: Density, trained: list[tuple[int, Member, Trained]], recipe: Recipe
) -> tuple[FittedModel, tuple[MemberHistory, ...]]:
    """Judge, weigh and calibrate the members of one plan."""
    candidates = _candidates(plan, density, trained, recipe)
    if not candidates:
        raise ParameterError(
            "Training must give finite likelihoods; every member diverged. Lower 'learning_rate'."
        )
    weights = _weights(candidates, recipe)
    history = _history(trained, candidates, weights, recipe, density)
    return _model(plan, candidates, weights, recipe), history


def _candidates(
    plan: Plan, density: Density, trained: list[tuple[int, Member, Trained]], recipe: Recipe
) -> list[_Candidate]:
    """Judge the members of one plan, and leave out those that diverged."""
    judged = [
        _judged(plan, density, one, own_passes(number, density.n_passes, recipe.selection), recipe)
        for number, one in enumerate(trained)
        if not one[2].diverged
    ]
    return [c for c in judged if np.isfinite([c.criterion, c.scale]).all()]


def _model(
    plan: Plan,
    candidates: list[_Candidate],
    weights: npt.NDArray[np.float64],
    recipe: Recipe,
) -> FittedModel:
    """Put the members that weigh something together, with companions, and calibrate them."""
    members = tuple(
        FittedMember(
            float(weight),
            c.member.lam,
            c.fold,
            c.density,
            c.passes,
            c.anchors,
            c.centre,
            c.scale if recipe.selection == "average" else 1.0,
        )
        for c, weight in zip(candidates, weights, strict=True)
        if weight > 0
    )
    uncalibrated = Calibration(np.zeros(1), np.zeros(1), 0.0, plan.guarantee)
    parts = plan.encoder, members, recipe.selection, uncalibrated, _reference(plan)
    model = FittedModel(*parts)
    normals, distrust = trusted_normals(plan, model)
    model = replace(model, distrust=distrust)
    if recipe.selection == "average":
        model = with_companions(plan, model, normals)
    return calibrated(plan, model)


def _judged(
    plan: Plan,
    template: Density,
    one: tuple[int, Member, Trained],
    passes: tuple[int, ...],
    recipe: Recipe,
) -> _Candidate:
    """Measure a member at its best epoch, with some passes, on its own fold's rows."""
    fold, member, trained = one
    density = template.with_parameters(trained.parameters)

    def rows(index: IntArray) -> Rows:
        return Rows.of(plan.encoded.take(index), recipe.device)

    def terms(index: IntArray) -> Tensor:
        return member_terms(density, anchors, rows(index), passes)

    # From rows that did not train: on those that did, cells cost less than on any other row.
    validation = validation_normals(member)
    anchors = pass_anchors(density, rows(validation), passes)
    normal = terms(validation)
    spread = float(total_cost(normal, recipe.selection).std())
    log_p = _log_p(normal), _log_p(terms(member.validation_anomalies))
    weights = torch.ones_like(log_p[0]), torch.ones_like(log_p[1])
    doubtful = torch.from_numpy(plan.doubtful[validation])[None].to(recipe.device)
    value = criterion(
        *log_p,
        *weights,
        name=recipe.settings.criterion,
        likelihood_weight=trimmed(log_p[0], weights[0], doubtful),
    )
    return _Candidate(
        fold,
        member,
        trained,
        density,
        passes,
        anchors,
        part_costs(normal, recipe.selection).mean(0),
        # One row, or rows all alike, have no spread: the unit is then that of the cost.
        1.0 if spread < 1e-6 else spread,
        float(value),
    )


def _log_p(terms: Float[Tensor, "o n d"]) -> Float[Tensor, "1 n"]:
    return mean_over_passes(terms.double().sum(-1).T)[None]


def _weights(candidates: list[_Candidate], recipe: Recipe) -> npt.NDArray[np.float64]:
    """Weigh the members; with `average`, folds count alike, because their labels differ."""
    values, lambdas = np.array([(c.criterion, c.member.lam) for c in candidates]).T
    if recipe.selection == "best":
        return best(values, [c.trained.best_epoch for c in candidates], lambdas)
    folds = np.array([c.fold for c in candidates])
    weights = np.zeros(len(values))
    for fold in np.unique(folds):
        members = np.flatnonzero(folds == fold)
        one, own = candidates[members[0]].member, lambdas[members]
        n_held_back = len(one.validation_anomalies)
        n_anomalies = len(one.anomalies) + n_held_back
        is_ranked = n_held_back >= ENOUGH_TO_RANK
        weights[members] = average(values[members], own, n_anomalies) if is_ranked else spaced(own)
    return weights / len(np.unique(folds))


def _history(
    trained: list[tuple[int, Member, Trained]],
    candidates: list[_Candidate],
    weights: npt.NDArray[np.float64],
    recipe: Recipe,
    density: Density,
) -> tuple[MemberHistory, ...]:
    judged = {
        id(c.trained): (c.criterion, float(weight))
        for c, weight in zip(candidates, weights, strict=True)
    }
    without_anomalies: CriterionName = (
        "likelihood" if density.is_probabilistic else "reconstruction"
    )
    lines = []
    for fold, member, one in trained:
        value, weight = judged.get(id(one), (math.nan, 0.0))
        held_back = len(member.validation_anomalies)
        lines.append(
            MemberHistory(
                member.lam,
                fold,
                member.seed,
                len(member.anomalies),
                one.curve,
                one.best_epoch,
                recipe.settings.criterion if held_back else without_anomalies,
                value,
                weight,
                "kept" if weight else "left out" if id(one) in judged else "diverged",
            )
        )
    return tuple(lines)
