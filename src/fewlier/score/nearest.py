"""Distances from rows to the nearest of a set of rows, column by column."""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from fewlier.arrays import Ints
from fewlier.density.networks import in_tiles

LEAST = 1e-4
"""Added to a mean squared distance, in squared standard deviations, before its logarithm is taken.

In tables of a few integers, where most rows are copies of others, a row that differs from all of
them by a little must not look as odd as one that is far away.
"""
# A matrix product finds candidates, with rounding errors; among this many times the rows that
# count, exact distances choose.
_MARGIN = 2
# Rounds until the typical distances of columns and of rows with gaps agree.
_ITERATIONS = 50
# Shrinkage of column weights: m labels are averaged with ten pseudo-labels of ratio 1. Ratios are
# capped at 20, and typical distances are at least 0.001.
_PSEUDO_LABELS, _MOST_RATIO, _LEAST_TYPICAL = 10, 20.0, 1e-3


@final
@dataclass(frozen=True, eq=False)
class Landmarks:
    """Rows to measure distances to.

    Parameters
    ----------
    points : tensor (m, i)
        Where they lie (see `Space.place`).
    n_nearest : int
        How many of the nearest count.
    ids : array (m,) or None
        Which rows of the fit they are, so that neither a row nor its copies are its own neighbours;
        None in a model that was loaded.
    """

    points: Float[Tensor, "m i"]
    n_nearest: int
    ids: Ints | None = None

    def distances(
        self,
        points: Float[Tensor, "n i"],
        owner: Int[Tensor, " i"],
        alone: Float[Tensor, " d"],
        ids: Ints | None,
    ) -> Float[Tensor, "n d"]:
        """Return each column's part in the mean squared distance to the nearest landmarks.

        With `ids` of the n points, neither a point nor its copies are its neighbours; a
        point without any other neighbour takes the distances `alone`.
        """
        squares = (self.points**2).sum(-1)
        # Without |x|^2, which is the same for all landmarks.
        rough = in_tiles(lambda p: torch.addmm(squares, p, self.points.T, alpha=-2), points)
        if ids is not None and self.ids is not None:
            is_self = torch.from_numpy(ids[:, None] == self.ids).to(rough.device)
            rough = rough.masked_fill(is_self, torch.inf)
        n_candidates = min(_MARGIN * self.n_nearest, len(self.points))
        found = rough.topk(n_candidates, largest=False)
        differences = self.points[found.indices].double() - points.double().unsqueeze(1)
        squared = differences.square_()  # (n, candidates, i)
        distance = squared.sum(-1).masked_fill(found.values.isinf(), torch.inf)
        nearest = distance.topk(min(self.n_nearest, n_candidates), largest=False)
        counts = nearest.values.isfinite()
        index = nearest.indices.unsqueeze(-1).expand(-1, -1, squared.shape[-1])
        chosen = (squared.gather(1, index) * counts.unsqueeze(-1)).sum(1)  # (n, i)
        d = len(alone)
        n_counted = counts.sum(-1, keepdim=True)
        parts = torch.zeros(len(points), d, dtype=torch.float64, device=points.device)
        parts = parts.index_add_(1, owner, chosen) / n_counted.clamp_min(1) + LEAST / d
        return torch.where(n_counted > 0, parts, alone)


def typical_distances(
    distances: Float[Tensor, "n d"], has_value: Bool[Tensor, "n d"]
) -> Float[Tensor, " d"]:
    """Return the columns' mean distances, rescaled: log of their sum is the mean log distance.

    A missing cell counts its column's typical distance itself, hence the iteration.
    """
    least = LEAST / distances.shape[-1]
    n_cells = has_value.sum(0).clamp_min(1)
    mean = (torch.where(has_value, distances, 0).sum(0) / n_cells).clamp_min(least)
    known = torch.where(has_value, distances, 0).sum(-1)
    gaps = torch.where(has_value, 0, mean).sum(-1)
    total, factor = mean.sum(), torch.ones_like(known[0])
    for _ in range(_ITERATIONS):
        factor = (known + factor * gaps).log().mean().exp() / total
    return mean * factor


def column_weights(
    anomalies: Float[Tensor, "m d"], typical: Float[Tensor, " d"]
) -> Float[Tensor, " d"]:
    r"""Weigh columns by how far labelled anomalies lie from normal rows in them.

    w_d = r_d^2 / mean r^2 with r_d = (c + \sum_i min(a_id / e_d, 20)) / (c + m): a_id is the
    distance of anomaly i in column d, e_d the typical one of normal rows, and c = 10 pseudo-labels
    of ratio 1 keep a few labels from taking a column's weight away.
    """
    ratio = (anomalies / (typical + _LEAST_TYPICAL)).clamp_max(_MOST_RATIO)
    ratio = (_PSEUDO_LABELS + ratio.sum(0)) / (_PSEUDO_LABELS + len(anomalies))
    return (ratio.square() / ratio.square().mean()).float()
