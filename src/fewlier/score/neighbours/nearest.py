"""Distances from rows to the nearest of a set of rows, column by column."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias, final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from fewlier.score.part import exact
from fewlier.table.arrays import Ints

MIN_DISTANCE = 1e-4
"""Added to a mean squared distance, in squared standard deviations, before its logarithm is taken.

In tables of a few integers, where most rows are copies of others, a row that differs from all of
them by a little must not look as odd as one that is far away.
"""
# What is added to the squared distance of the last landmark of a group when the nearest is chosen:
# far more than the rounding of float64, and less than what tells rows apart.
_MAX_HANDICAP = 1e-3
# Squared distances computed in float32 are right up to this share of the numbers they are made of.
_ROUNDING = 5e-7
# Distances that are computed at a time: as many as a processor's cache holds.
_TILE = 2**19
# Rounds until the typical distances of columns and of rows with gaps agree.
_ITERATIONS = 50
# Shrinkage of column weights: m labels are averaged with ten pseudo-labels of ratio 1. Ratios are
# capped at 20, and typical distances are at least 0.001.
_PSEUDO_LABELS, _MAX_RATIO, _MIN_TYPICAL = 10, 20.0, 1e-3


Measured: TypeAlias = tuple[Float[Tensor, "n d"], Int[Tensor, "n g"]]
"""How far n rows are from their nearest landmarks, and which these are.

First the columns' parts in the mean squared distance, then the nearest landmark of each group, by
number; -1 where a group has none that counts.
"""
Apart: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""Squared differences (n, g, i) of n rows, given where they (n, i) and others (n, g, i) lie."""


@final
@dataclass(frozen=True, eq=False)
class Landmarks:
    """Rows to measure distances to.

    They are divided into groups, and what counts is the nearest of each group: as telling as the
    nearest few of all of them, and found several times faster. Where several of a group are as
    near, as happens in columns of integers, the first counts.

    Parameters
    ----------
    points : tensor (m, i)
        Where they lie (see `Space.place`), group after group; m is a multiple of the groups.
    n_groups : int
        How many groups they form.
    ids : array (m,) or None
        Which rows of the fit they are, so that neither a row nor its copies are its own neighbours;
        None in a model that was loaded.
    """

    points: Float[Tensor, "m i"]
    n_groups: int
    ids: Ints | None

    @classmethod
    def from_points(cls, points: Float[Tensor, "n i"], n_groups: int, ids: Ints) -> "Landmarks":
        """Divide n points into groups of one size, for which some are repeated if need be.

        Groups are drawn at random: in a sorted table, rows that follow each other are alike.
        """
        order = group_order(len(points), n_groups)
        n_groups = min(n_groups, len(points))
        chosen = points[torch.from_numpy(order).to(points.device)]
        return cls(chosen, n_groups, ids[order])

    def order_by(self, cost: Float[Tensor, " m"]) -> Int[Tensor, " m"]:
        """Return the order in which each group begins with what costs least, to four digits."""
        groups = cost.view(self.n_groups, -1).round(decimals=4).argsort(dim=-1, stable=True)
        return (groups + self._first.unsqueeze(-1)).flatten()

    def take(self, order: Int[Tensor, " m"]) -> "Landmarks":
        """Return the landmarks in another order."""
        ids = None if self.ids is None else self.ids[order.cpu().numpy()]
        return Landmarks(self.points[order], self.n_groups, ids)

    def measure(
        self,
        points: Float[Tensor, "n i"],
        owner: Int[Tensor, " i"],
        alone: Float[Tensor, " d"],
        ids: Ints | None,
        apart: Apart | None = None,
    ) -> Measured:
        """Measure how far points are from the nearest landmarks, column by column.

        With `ids` of the n points, neither a point nor its copies are its neighbours; a
        point without any other neighbour takes the distances `alone`. `apart` returns the squared
        differences of points and their neighbours where they are others (see `LeftOut`).
        """
        # A graph has neither tiles nor rows that are looked at twice: it computes in float64.
        is_graph = torch.compiler.is_exporting()
        places = (self._nearest_exactly if is_graph else self._nearest)(points, ids)
        chosen = self.points[places.clamp_min(0)]
        squared = apart(points, chosen) if apart else (chosen - points.unsqueeze(1)).square_()
        counts = (places >= 0).unsqueeze(-1)
        n_counted = counts.sum(1)
        mean = (squared * counts).sum(1) / n_counted.clamp_min(1)
        least = (
            exact(MIN_DISTANCE / len(alone)).to(alone.device).expand(points.shape[0], len(alone))
        )
        distances = least.index_add(1, owner, mean.double())
        return torch.where(n_counted > 0, distances, alone), places

    def _nearest(self, points: Float[Tensor, "n i"], ids: Ints | None) -> Int[Tensor, "n g"]:
        """Return the nearest landmark of each group: in float32, and again where that is unsure."""
        transposed, squares = self._prepared
        tile = max(1, _TILE // len(squares))
        rough, found = points.new_empty(min(tile, len(points)), len(squares)), []
        for start in range(0, len(points), tile):
            # Without |x|^2, which is the same for all landmarks.
            some = points[start : start + tile]
            near = torch.addmm(squares, some, transposed, alpha=-2, out=rough[: len(some)])
            if ids is not None and self.ids is not None:
                near.masked_fill_(self._mark_own(ids[start : start + tile]), torch.inf)
            found.append(_two_least(near.view(len(some), self.n_groups, self._size)))
        place, least, second = (torch.cat(part) for part in zip(*found, strict=True))
        size = least.abs() + 4 * points.square().sum(-1, keepdim=True)
        # Another processor rounds otherwise, and so does onnxruntime.
        is_doubtful = (second - least < _ROUNDING * size).any(-1)
        places = torch.where(least.isfinite(), place + self._first, -1)
        for some in is_doubtful.nonzero().squeeze(-1).split(tile):
            own = None if ids is None else ids[some.cpu().numpy()]
            places[some] = self._nearest_exactly(points[some], own)
        return places

    def _nearest_exactly(
        self, points: Float[Tensor, "n i"], ids: Ints | None
    ) -> Int[Tensor, "n g"]:
        """Return the nearest landmark of each group, by distances in float64."""
        apart = torch.addmm(self.squares, points.double(), self.points.T.double(), alpha=-2)
        if ids is not None and self.ids is not None:
            apart.masked_fill_(self._mark_own(ids), torch.inf)
        least, place = apart.unflatten(-1, (self.n_groups, self._size)).min(-1)
        return torch.where(least.isfinite(), place + self._first, -1)

    def _mark_own(self, ids: Ints) -> Bool[Tensor, "n m"]:
        """Mark the landmarks that are rows of the fit, or copies of them, themselves."""
        return torch.from_numpy(ids[:, None] == self.ids).to(self.points.device)

    @cached_property
    def squares(self) -> Float[Tensor, " m"]:
        """Squares of the points, and what later landmarks of a group are further away by."""
        place = torch.arange(self._size, device=self.points.device).double()
        handicap = _MAX_HANDICAP * place / self._size
        return (self.points.double() ** 2).sum(-1) + handicap.repeat(self.n_groups)

    @cached_property
    def _prepared(self) -> tuple[Float[Tensor, "i m"], Float[Tensor, " m"]]:
        """Return the points as columns, and their squares, as products take them."""
        return self.points.T.contiguous(), self.squares.float()

    @property
    def _size(self) -> int:
        """How many landmarks a group has."""
        return len(self.points) // self.n_groups

    @cached_property
    def _first(self) -> Int[Tensor, " g"]:
        """Where each group begins."""
        return torch.arange(0, len(self.points), self._size, device=self.points.device)


def group_order(n: int, n_groups: int) -> Ints:
    """Return which of n rows the landmarks are, group after group."""
    n_groups = min(n_groups, n)
    order = np.random.default_rng(0).permutation(n)
    return np.resize(order, -(-n // n_groups) * n_groups)


def _two_least(
    groups: Float[Tensor, "n g k"],
) -> tuple[Int[Tensor, "n g"], Float[Tensor, "n g"], Float[Tensor, "n g"]]:
    """Return the place of the least of each group, it and the second; `groups` is overwritten."""
    place = _argmin(groups).unsqueeze(-1)
    least = groups.gather(-1, place)
    groups.scatter_(-1, place, torch.inf)
    second = groups.gather(-1, _argmin(groups).unsqueeze(-1))
    return place.squeeze(-1), least.squeeze(-1), second.squeeze(-1)


def _argmin(groups: Float[Tensor, "n g k"]) -> Int[Tensor, "n g"]:
    """Return the place of the least of each group; numpy finds it several times faster."""
    if groups.device.type != "cpu":
        return groups.argmin(-1)
    return torch.from_numpy(groups.numpy().argmin(-1))


def mean_around(values: Float[Tensor, "m d"], places: Int[Tensor, "n g"]) -> Float[Tensor, "n d"]:
    """Return the mean of what the nearest landmarks have; 0 if there are none."""
    counts = (places >= 0).double().unsqueeze(-1)
    total = (values[places.clamp_min(0)].double() * counts).sum(1)
    return total / counts.sum(1).clamp_min(1)


def split_log_ratio(
    distances: Float[Tensor, "n d"], typical: Float[Tensor, " d"]
) -> Float[Tensor, "n d"]:
    r"""Split 1/2 log(D / D_0) over the columns: 1/2 (a_d - e_d) / L(D, D_0).

    a_d are the parts of D, `distances`; e_d those of D_0, `typical`. L is the logarithmic mean
    (D - D_0) / (log D - log D_0), with L(D, D) = D, so that nothing is left over.
    """
    total = typical.sum()
    excess = (distances.sum(-1, keepdim=True) - total) / total
    slope = torch.where(excess == 0, 1, excess.log1p() / excess)
    return (distances - typical) * slope / total / 2


def typical_distances(
    distances: Float[Tensor, "n d"], has_value: Bool[Tensor, "n d"]
) -> Float[Tensor, " d"]:
    """Return the columns' mean distances, rescaled: log of their sum is the mean log distance.

    A missing cell counts its column's typical distance itself, hence the iteration.
    """
    least = MIN_DISTANCE / distances.shape[-1]
    n_cells = has_value.sum(0).clamp_min(1)
    mean = (torch.where(has_value, distances, 0).sum(0) / n_cells).clamp_min(least)
    known = torch.where(has_value, distances, 0).sum(-1)
    gaps = torch.where(has_value, 0, mean).sum(-1)
    total, factor = mean.sum(), torch.ones_like(known[0])
    for _ in range(_ITERATIONS):
        factor = (known + factor * gaps).log().mean().exp() / total
    return mean * factor


def column_ratios(
    anomalies: Float[Tensor, "m d"], typical: Float[Tensor, " d"]
) -> Float[Tensor, "m d"]:
    """Compare how far m labelled anomalies lie from normal rows with what is typical of these."""
    return (anomalies / (typical + _MIN_TYPICAL)).clamp_max(_MAX_RATIO)


def weights_of(ratios: Float[Tensor, "*n d"], n_anomalies: int) -> Float[Tensor, "*n d"]:
    r"""Weigh columns by how far m labelled anomalies lie from normal rows in them.

    w_d = r_d^2 / mean r^2 with r_d = (c + \sum_i min(a_id / e_d, 20)) / (c + m): a_id is the
    distance of anomaly i in column d, e_d the typical one of normal rows, and c = 10 pseudo-labels
    of ratio 1 keep a few labels from taking a column's weight away. `ratios` are the sums over i.
    """
    ratio = (_PSEUDO_LABELS + ratios) / (_PSEUDO_LABELS + n_anomalies)
    return (ratio.square() / ratio.square().mean(-1, keepdim=True)).float()
