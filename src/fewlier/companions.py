"""What stands beside the density in an average score, from the rows of a fit."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch

from fewlier.conditionals.joint import Rows
from fewlier.forest import Forest
from fewlier.model import FittedModel, feature_owner, member_terms, total_cost
from fewlier.neighbours import Neighbours, n_rows_at_most
from fewlier.planning import Plan
from fewlier.sampling import IntArray
from fewlier.selection import companions_shares
from fewlier.trust import trust
from fewlier.unseen import out_of_fold_parts


def with_companions(plan: Plan, model: FittedModel) -> FittedModel:
    """Put neighbours and, with enough labels, trees beside the density of a model.

    Their rows are normals that train some member, and labelled anomalies. Normals that all folds
    hold back are not among them; of those that one fold holds back, none is near itself or its
    copies, and no tree that has seen one counts, when it calibrates. Nor are unlabelled rows that
    count less than half by the likeliest member, and labelled anomalies that the user gave to
    validate on.
    """
    rows = _rows(plan, model)
    anomalies = rows[1]
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


def _rows(plan: Plan, model: FittedModel) -> tuple[IntArray, IntArray]:
    """Draw the normals and anomalies to compare with, by their numbers."""
    rng = np.random.default_rng(plan.seed)
    most = n_rows_at_most(plan.encoder.n_inputs)
    normals = np.unique(np.concatenate([fold.normals for fold in plan.folds]))
    labelled = [(*fold.anomalies, *fold.validation_anomalies) for fold in plan.folds]
    anomalies = np.unique(np.concatenate(labelled)).astype(np.int64)
    anomalies = anomalies[anomalies < plan.n_training]
    normals = np.sort(rng.permutation(normals)[:most])
    anomalies = np.sort(rng.permutation(anomalies)[:most])
    return normals[_is_trusted(plan, model, normals)], anomalies


def _is_trusted(plan: Plan, model: FittedModel, rows: IntArray) -> npt.NDArray[np.bool_]:
    """Mark rows that are labelled normal, or likely enough to count at least half."""
    doubtful = plan.doubtful[rows]
    if not doubtful.any():
        return ~doubtful
    member = model.likeliest
    terms = member_terms(
        member.density,
        member.anchors,
        Rows.of(plan.encoded.take(rows), model.device),
        member.passes,
    )
    log_p = -torch.from_numpy(total_cost(terms, model.selection))[None]
    weight = trust(log_p, torch.ones_like(log_p), torch.from_numpy(doubtful)[None])
    trusted: npt.NDArray[np.bool_] = (weight[0] >= 0.5).numpy()
    return trusted
