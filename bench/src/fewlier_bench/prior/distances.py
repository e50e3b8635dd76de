"""What the network is told of a row as a whole: how far it lies from other rows.

A network that reads columns sees where each cell lies, but not that no other row is like this one.
Distances say so at once, and with them it need not learn to measure.
"""

import math

import torch
from torch import Tensor

from fewlier_bench.prior.cells import N_LEVELS, Cells

N_DISTANCES = 6
"""Distances of a row: two scales, from all and from nearest normals, correlated, from anomalies."""

_MAX_DEVIATION = 3.0  # asinh, that is ten spreads
_CODE_LENGTH = 4
_RIDGE = 0.1
_N_NEAREST = 3


def distances(cells: Cells, n_normals: int, n_anomalies: int) -> Tensor:
    """Return logarithms of distances of every row, (batch, rows, N_DISTANCES); NaN where none is.

    No row is its own neighbour. The first `n_normals` rows are normal, the next `n_anomalies` are
    labelled anomalies.
    """
    scores, deviations = cells.facts[..., 0], cells.facts[..., 1] * 1.5
    deviations = deviations.clamp(-1.5 * _MAX_DEVIATION, 1.5 * _MAX_DEVIATION)
    codes = _codes(cells)
    columns = []
    for points in (scores, deviations):
        points = torch.cat([points, codes], -1)
        columns += _nearest(points, n_normals, n_anomalies)
    columns.append(_correlated(scores, n_normals))
    return torch.stack([columns[0], columns[1], columns[3], columns[4], columns[6], columns[2]], -1)


def _codes(cells: Cells) -> Tensor:
    """Return points for levels, (b, r, c × length): two different ones lie about 1.4 apart."""
    generator = torch.Generator().manual_seed(0)
    table = torch.randn(N_LEVELS + 1, _CODE_LENGTH, generator=generator)
    table = table / table.norm(dim=1, keepdim=True)
    table[0] = 0.0
    points = table.to(cells.facts.device)[cells.levels]
    unseen = (cells.facts[..., 7] > 0) & (cells.levels == 0) & (cells.facts[..., 5] == 0)
    return torch.where(unseen[..., None], 1.5 / math.sqrt(_CODE_LENGTH), points).flatten(-2)


def _nearest(points: Tensor, n_normals: int, n_anomalies: int) -> list[Tensor]:
    """Return log distances from the nearest normal, from some, and from the nearest anomaly."""
    normals = points[:, :n_normals]
    apart = torch.cdist(points, normals)
    own = torch.arange(n_normals, device=points.device)
    apart[:, own, own] = math.inf
    near = apart.topk(_N_NEAREST, dim=-1, largest=False).values
    found = [near[..., 0], near.mean(-1)]
    if n_anomalies:
        apart = torch.cdist(points, points[:, n_normals : n_normals + n_anomalies])
        own = torch.arange(n_anomalies, device=points.device)
        apart[:, n_normals + own, own] = math.inf
        found.append(apart.amin(-1))
    else:
        found.append(torch.full_like(near[..., 0], math.nan))
    return [torch.where(d.isinf(), math.nan, (d + 1e-3).log()) for d in found]


def _correlated(scores: Tensor, n_normals: int) -> Tensor:
    """Return log Mahalanobis distances of normal scores, each normal row left out for itself."""
    normals = scores[:, :n_normals]
    eye = torch.eye(scores.shape[-1], device=scores.device)
    covariance = normals.mT @ normals / n_normals + _RIDGE * eye
    factor = torch.linalg.cholesky_ex(covariance).L  # which does not wait for a check
    white = torch.linalg.solve_triangular(factor, scores.mT, upper=False)
    squared = (white**2).sum(1)
    inside = squared[:, :n_normals]
    squared = torch.cat(
        [inside / (1 - inside / n_normals).clamp_min(0.05), squared[:, n_normals:]], 1
    )
    return (squared + 1e-3).log() / 2
