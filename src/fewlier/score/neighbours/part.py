"""`Neighbours`: how far a row is from normal rows, and how near to labelled anomalies."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
import torch

from fewlier.density.rows import Rows
from fewlier.modelfile.state import State, require
from fewlier.score.neighbours.coordinates import COORDINATES
from fewlier.score.neighbours.view import View
from fewlier.score.part import HeldOut, Part
from fewlier.table import Encoded, Encoder
from fewlier.table.arrays import Floats, Ints


@final
@dataclass(frozen=True, eq=False)
class Neighbours(Part):
    r"""The part z(x) = max over views of z_v(x).

    A row is odd that lies apart on either scale: in standard deviations, where the far ends of a
    column are far away, or in normal scores, where what counts is how many rows lie between. On the
    tables this was chosen on, neither alone does as well on the tables of the other.

    Parameters
    ----------
    views : tuple of View
        One on each scale.
    """

    views: tuple[View, ...]

    name: ClassVar[str] = "neighbours"

    @classmethod
    def fit(
        cls, encoder: Encoder, encoded: Encoded, rows: tuple[Ints, Ints], device: torch.device
    ) -> "Neighbours":
        """Compare with rows of an encoded table, given by number: normals and anomalies."""
        taken = [encoded.take(some) for some in rows]
        normals, anomalies = ((Rows.of(some, device), some.ids()) for some in taken)
        scales = COORDINATES.values()
        return cls(tuple(View.fit(encoder, scale, normals, anomalies) for scale in scales))

    @property
    def meaning(self) -> str:
        """What its contributions mean."""
        near = ", and nearer to the labelled anomalies," if self.views[0].anomalies else ""
        return f"how much further from the nearest normal rows{near} the value is than is usual"

    @property
    def n_rows(self) -> int:
        """How many different rows a row is compared with; to fill groups, some are repeated."""
        sides = (self.views[0].normals, self.views[0].anomalies)
        points = (side.landmarks.points for side in sides if side is not None)
        return sum(len(some.unique(dim=0)) for some in points)

    def score(
        self,
        rows: Rows,
        before: Mapping[str, Floats],  # noqa: ARG002 - of the interface
        held_out: HeldOut | None = None,
    ) -> Floats:
        """Return z, shape (n,)."""
        ids = None if held_out is None else held_out.ids
        scores: Floats = (
            torch.stack([view.score(rows, ids) for view in self.views]).amax(0).cpu().numpy()
        )
        return scores

    def contributions(
        self,
        rows: Rows,
        before: Mapping[str, Floats],  # noqa: ARG002 - of the interface
        held_out: HeldOut | None = None,
    ) -> Floats:
        """Return what each column adds to z, and a remainder of zeros, shape (n, d + 1).

        They are those of the view in which the row is odder.
        """
        ids = None if held_out is None else held_out.ids
        found = torch.stack([view.contributions(rows, ids) for view in self.views])  # (v, n, d)
        odder = found.sum(-1).argmax(0)
        columns: Floats = found[odder, torch.arange(found.shape[1])].cpu().numpy()
        return np.pad(columns, ((0, 0), (0, 1)))

    def state(self) -> State:
        """Return what a model file holds of it."""
        return State({"views": [view.state() for view in self.views]})

    @classmethod
    def from_state(cls, state: State, encoder: Encoder, device: torch.device) -> "Neighbours":
        """Inverse of `state`, checked."""
        views = tuple(View.from_state(part, encoder, device) for part in state.parts("views"))
        is_each = [v.normals.space.coordinates.name for v in views] == list(COORDINATES)
        require(is_each, "its neighbours are not seen once on each scale.")
        return cls(views)
