"""What stands beside the density in an average score, from the rows of a fit."""

import numpy as np
import numpy.typing as npt
import torch

from fewlier.conditionals.joint import Rows
from fewlier.model import FittedModel, member_terms, total_cost
from fewlier.neighbours import Neighbours, n_rows_at_most
from fewlier.planning import Plan
from fewlier.sampling import IntArray
from fewlier.trust import trust


def find_neighbours(plan: Plan, model: FittedModel, share: float) -> Neighbours:
    """Draw rows to compare with: normals that train some member, and labelled anomalies.

    Normals that all folds hold back are not among them; of those that one fold holds back, none is
    its own neighbour when it calibrates. Nor are unlabelled rows that count less than half by the
    likeliest member, and labelled anomalies that the user gave to validate on.
    """
    rng = np.random.default_rng(plan.seed)
    most = n_rows_at_most(plan.encoder.n_inputs)
    normals = np.unique(np.concatenate([fold.normals for fold in plan.folds]))
    labelled = [(*fold.anomalies, *fold.validation_anomalies) for fold in plan.folds]
    anomalies = np.unique(np.concatenate(labelled)).astype(np.int64)
    anomalies = anomalies[anomalies < plan.n_training]
    normals = np.sort(rng.permutation(normals)[:most])
    anomalies = np.sort(rng.permutation(anomalies)[:most])
    device = next(iter(model.members[0].parameters.values())).device
    trusted = normals[_is_trusted(plan, model, normals, device)]
    return Neighbours.of(plan.encoder, plan.encoded, (trusted, anomalies), share, device)


def _is_trusted(
    plan: Plan, model: FittedModel, rows: IntArray, device: torch.device
) -> npt.NDArray[np.bool_]:
    """Mark rows that are labelled normal, or likely enough to count at least half."""
    doubtful = plan.doubtful[rows]
    if not doubtful.any():
        return ~doubtful
    member = model.likeliest
    terms = member_terms(
        model.density,
        member.parameters,
        member.anchors,
        Rows.of(plan.encoded.take(rows), device),
        member.passes,
    )
    log_p = -torch.from_numpy(total_cost(terms, model.selection))[None]
    weight = trust(log_p, torch.ones_like(log_p), torch.from_numpy(doubtful)[None])
    trusted: npt.NDArray[np.bool_] = (weight[0] >= 0.5).numpy()
    return trusted
