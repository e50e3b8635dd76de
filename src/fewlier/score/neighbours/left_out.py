"""`LeftOut`: how far rows of the fit would lie apart, had a space been made without them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from fewlier.score.neighbours.nearest import (
    Apart,
    Landmarks,
    Measured,
    column_ratios,
    weights_of,
)
from fewlier.score.neighbours.space import Space
from fewlier.table.arrays import Bools, Ints


@final
@dataclass(frozen=True, eq=False)
class LeftOut:
    """The normal rows that a space was made of.

    A row far out in a column widens the column's scale, and a normal row next to a labelled anomaly
    takes weight from the columns in which they are alike. A fresh row does neither. With 50 rows
    of 30 columns this alone makes false alarms a third more frequent than promised.

    Parameters
    ----------
    ids : array (r,)
        The rows by id, in order and each once.
    copies : array (r,)
        How often each is there.
    near : array (m,)
        Those that are next to labelled anomalies, in order.
    weight : tensor (m, d)
        What the weights of columns would be multiplied by without each of these.
    """

    ids: Ints
    copies: Ints
    near: Ints
    weight: Float[Tensor, "m d"]

    @classmethod
    def of(cls, ids: Ints, space: Space) -> "LeftOut":
        """Count the normal rows; columns weigh alike."""
        return cls(*np.unique(ids, return_counts=True), ids[:0], space.weight.new_empty(0, 0))

    def near_to(
        self,
        landmarks: Landmarks,
        found: Measured,
        typical: Float[Tensor, " d"],
        measure: Callable[[Ints, Ints], Tensor],
    ) -> "LeftOut":
        """Return the same with the weights of columns without rows next to labelled anomalies.

        `found` is how far the anomalies are from their nearest landmarks, and `measure` how far
        those with some numbers are without the landmarks of some ids.
        """
        distances, places = found
        n, own = len(places), np.asarray(landmarks.ids)[places.cpu().numpy()]
        pairs = np.stack([np.repeat(np.arange(n), own.shape[1]), own.ravel()], 1)
        which, left_out = np.unique(pairs, axis=0).T
        ratio = column_ratios(distances, typical)
        change = column_ratios(measure(which, left_out), typical) - ratio[which]
        near, place = np.unique(left_out, return_inverse=True)
        total = ratio.sum(0).repeat(len(near), 1)
        total.index_add_(0, torch.from_numpy(place).to(total.device), change)
        weight = weights_of(total, n) / weights_of(ratio.sum(0), n)
        return LeftOut(self.ids, self.copies, near, weight)

    def apart(self, space: Space, ids: Ints) -> Apart:
        """Return how far rows of these ids are apart from others, without themselves."""
        place, is_known = _find(ids, self.ids)
        copies = torch.from_numpy(np.where(is_known, self.copies[place], 0))
        some = torch.from_numpy(np.flatnonzero(is_known)).to(space.weight.device)
        copies, n = copies.to(some.device)[some, None, None], int(self.copies.sum())
        weight = self._weight(space, ids[is_known])[:, space.owner].unsqueeze(1)
        stretch = space.stretch

        def squared(points: Tensor, others: Tensor) -> Tensor:
            found = (others - points.unsqueeze(1)).square_()
            own, other = points[some].unsqueeze(1) / stretch, others[some] / stretch
            found[some] = space.coordinates.squared_without(own, other, n, copies) * weight
            return found

        return squared

    def _weight(self, space: Space, ids: Ints) -> Float[Tensor, "k d"]:
        """Return the weights of columns for rows, each without itself."""
        weight = space.weight.repeat(len(ids), 1)
        if not len(self.near):
            return weight
        place, is_near = _find(ids, self.near)
        weight[is_near] *= self.weight[place[is_near]]
        return weight


def _find(ids: Ints, among: Ints) -> tuple[Ints, Bools]:
    """Return where ids lie among others in order, and which are there."""
    place = np.searchsorted(among, ids).clip(max=len(among) - 1)
    return place, among[place] == ids
