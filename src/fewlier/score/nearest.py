"""`Landmarks`: rows of one label, and how far other rows are from the nearest of them."""

from dataclasses import dataclass, field
from typing import final

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from fewlier.density.networks import in_tiles

LEAST = 1e-4
"""Added to a mean squared distance, in squared standard deviations: its logarithm has an end.

In tables of a few integers, where most rows are copies of others, a row that differs from all by a
little must not look as odd as one that is far away.
"""
# Nearest rows are looked for with the rounding errors of a product; among twice as many, exactly.
_MARGIN = 2
# Rounds until what is typical of gaps and of rows agree.
_ITERATIONS = 50
# What labels say of columns: doubted as if so many more said nothing, of no column more than so
# many times the typical, which is at least so much where normals hardly differ.
_DOUBT, _MOST_RATIO, _LEAST_PART = 10, 20.0, 1e-3

Ints = npt.NDArray[np.int64]


@final
@dataclass(frozen=True, eq=False)
class Landmarks:
    """Rows of one label, to measure distances to.

    Parameters
    ----------
    rows : tensor (m, i)
        Their inputs in standard deviations, within a limit.
    typical : tensor (d,)
        Each column's part in the squared distance of a normal row. The logarithm of their sum is
        the mean of normal rows' log distance.
    outside : tensor (d,)
        The part of a cell outside its column's domain: as far from normals as two of them are from
        each other on average, or as any is; and typical of the distance to anomalies.
    n_nearest : int
        How many of the nearest count.
    ids : array (m,)
        Which rows they are (see `Encoded.ids`), so that a row and its copies are not its own
        neighbours; empty in a model that was loaded.
    """

    rows: Float[Tensor, "m i"]
    typical: Float[Tensor, " d"]
    outside: Float[Tensor, " d"]
    n_nearest: int
    ids: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def log_ratio(self, parts: Float[Tensor, "n d"]) -> Float[Tensor, " n"]:
        """Return 1/2 log(D / D_0) of the distances D that the parts add up to."""
        return (parts.sum(-1) / self.typical.sum()).log() / 2

    def shares(self, parts: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
        r"""Split `log_ratio` over the columns: 1/2 (a_d - e_d) / L(D, D_0).

        a_d are the parts of D and e_d those of D_0, the typical distance; L is the logarithmic
        mean (D - D_0) / (log D - log D_0), with L(D, D) = D, so that nothing is left over.
        """
        typical = self.typical.sum()
        excess = (parts.sum(-1, keepdim=True) - typical) / typical
        slope = torch.where(excess == 0, 1, excess.log1p() / excess)
        return (parts - self.typical) * slope / typical / 2

    def parts(
        self, points: Float[Tensor, "n i"], owner: Int[Tensor, " i"], ids: Ints | None
    ) -> Float[Tensor, "n d"]:
        """Return each column's part in the mean squared distance to the nearest rows.

        With the points' ids, neither a point nor its copies are its neighbours; one that has no
        other takes the typical parts.
        """
        squares = (self.rows**2).sum(-1)
        # Less |x|^2, which is alike for all.
        rough = in_tiles(lambda p: torch.addmm(squares, p, self.rows.T, alpha=-2), points)
        if ids is not None and len(self.ids):
            is_self = torch.from_numpy(ids[:, None] == self.ids).to(rough.device)
            rough = rough.masked_fill(is_self, torch.inf)
        n_candidates = min(_MARGIN * self.n_nearest, len(self.rows))
        found = rough.topk(n_candidates, largest=False)
        differences = self.rows[found.indices].double() - points.double().unsqueeze(1)
        squared = differences.square_()  # (n, candidates, i)
        distance = squared.sum(-1).masked_fill(found.values.isinf(), torch.inf)
        nearest = distance.topk(min(self.n_nearest, n_candidates), largest=False)
        counts = nearest.values.isfinite()
        index = nearest.indices.unsqueeze(-1).expand(-1, -1, squared.shape[-1])
        chosen = (squared.gather(1, index) * counts.unsqueeze(-1)).sum(1)
        d = len(self.typical)
        n_counted = counts.sum(-1, keepdim=True)
        parts = torch.zeros(len(points), d, dtype=torch.float64, device=points.device)
        parts = parts.index_add_(1, owner, chosen) / n_counted.clamp_min(1) + LEAST / d
        return torch.where(n_counted > 0, parts, self.typical)


def typical_parts(
    parts: Float[Tensor, "n d"], has_value: Bool[Tensor, "n d"]
) -> Float[Tensor, " d"]:
    """Return the columns' mean parts, rescaled: the log of their sum is the mean log distance.

    The distance of a row with missing cells has typical parts itself, hence the iteration.
    """
    least = LEAST / parts.shape[-1]
    n_cells = has_value.sum(0).clamp_min(1)
    mean = (torch.where(has_value, parts, 0).sum(0) / n_cells).clamp_min(least)
    known = torch.where(has_value, parts, 0).sum(-1)
    gaps = torch.where(has_value, 0, mean).sum(-1)
    total, factor = mean.sum(), torch.ones_like(known[0])
    for _ in range(_ITERATIONS):
        factor = (known + factor * gaps).log().mean().exp() / total
    return mean * factor


def column_weights(
    anomalies: Float[Tensor, "m d"], typical: Float[Tensor, " d"]
) -> Float[Tensor, " d"]:
    r"""Weigh columns by the anomalies' parts a in their distances from normals.

    w_d = r_d^2 / mean r^2 with r_d = (c + \sum_i min(a_id / e_d, most)) / (c + m), where e_d is
    typical of normals: a column where a few labels are as near as normals weighs little less.
    """
    ratio = (anomalies / (typical + _LEAST_PART)).clamp_max(_MOST_RATIO)
    ratio = (_DOUBT + ratio.sum(0)) / (_DOUBT + len(anomalies))
    return (ratio.square() / ratio.square().mean()).float()
