"""What stands beside the density in an average score, from the rows of a fit."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch

from fewlier.density.joint import Rows
from fewlier.score.model import FittedModel, feature_owner, member_terms, total_cost
from fewlier.score.neighbours import Neighbours, n_rows_at_most
from fewlier.score.selection import companions_shares
from fewlier.score.trees import Forest
from fewlier.training.batches import IntArray
from fewlier.training.roles import Plan
from fewlier.training.unlabelled import Distrust, is_trusted
from fewlier.unseen import out_of_fold_parts


def with_companions(plan: Plan, model: FittedModel, normals: IntArray) -> FittedModel:
    """Put neighbours and, with enough labels, trees beside the density of a model.

    Their rows are these normals, and labelled anomalies. Of normals that one fold holds back, none
    is near itself or its copies, and no tree that has seen one counts, when it calibrates.
    Labelled anomalies that the user gave to validate on are not among them.
    """
    anomalies = _anomalies(plan)
    rows = normals, anomalies
    neighbours = Neighbours.of(plan.encoder, plan.encoded, rows, model.device)
    near, trees = companions_shares(len(anomalies), neighbours.alone)
    forest = None
    if trees:
        numbers = np.sort(np.concatenate(rows))
        is_anomaly = np.isin(numbers, anomalies)
        features = model.features(
            Rows.of(plan.encoded.take(numbers), model.device).inside,
            out_of_fold_parts(plan, model, numbers),
        )
        owner = feature_owner(plan.encoder, model.device)
        forest = Forest.of(features, owner, (plan.ids[numbers], is_anomaly), trees, plan.seed)
    return replace(model, neighbours=replace(neighbours, share=near), forest=forest)


def trusted_normals(plan: Plan, model: FittedModel) -> tuple[IntArray, Distrust | None]:
    """Draw normals that train some member, less the unlabelled ones that count less than half.

    Normals that all folds hold back are not among them. Return also how many of the unlabelled
    ones were left out; None where no row may be a hidden anomaly.
    """
    normals = _drawn(plan, [fold.normals for fold in plan.folds])
    doubtful = plan.doubtful[normals]
    if not plan.doubtful.any():
        return normals, None
    trusted = _is_trusted(plan, model, normals)
    return normals[trusted], Distrust(int(doubtful.sum()), int((~trusted).sum()))


def _anomalies(plan: Plan) -> IntArray:
    labelled = [rows for f in plan.folds for rows in (f.anomalies, f.validation_anomalies)]
    return _drawn(plan, [rows[rows < plan.n_training] for rows in labelled])


def _drawn(plan: Plan, parts: Sequence[IntArray]) -> IntArray:
    """Draw as many of the rows as are compared with at most, in order."""
    rows = np.unique(np.concatenate(parts)).astype(np.int64)
    most = n_rows_at_most(plan.encoder.n_inputs)
    return np.sort(np.random.default_rng(plan.seed).permutation(rows)[:most])


def _is_trusted(plan: Plan, model: FittedModel, rows: IntArray) -> npt.NDArray[np.bool_]:
    """Mark rows that are labelled normal, or trusted by the member that knows normals best."""
    member = model.likeliest
    terms = member_terms(
        member.density,
        member.anchors,
        Rows.of(plan.encoded.take(rows), model.device),
        member.passes,
    )
    log_p = -torch.from_numpy(total_cost(terms, model.selection))[None]
    doubtful = torch.from_numpy(plan.doubtful[rows])
    trusted: npt.NDArray[np.bool_] = is_trusted(log_p, doubtful[None])[0].numpy()
    return trusted
