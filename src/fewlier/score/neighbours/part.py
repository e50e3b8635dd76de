"""`Neighbours`: how far a row is from normal rows, and how near to labelled anomalies."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

import torch
from jaxtyping import Float
from torch import Tensor

from fewlier.density.rows import Rows
from fewlier.modelfile.state import State, require
from fewlier.score.neighbours.coordinates import COORDINATES
from fewlier.score.neighbours.view import View
from fewlier.score.part import AddedPart, HeldOut, Known
from fewlier.score.shares import NEIGHBOURS
from fewlier.table import Encoder


@final
@dataclass(frozen=True, eq=False)
class Neighbours(AddedPart):
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
    def share(cls, n_anomalies: int) -> float:  # noqa: ARG003 - of the interface
        """Return the share of what the labels leave, whatever their number."""
        return NEIGHBOURS

    @classmethod
    def fit(cls, known: Known, before: Mapping[str, Tensor]) -> "Neighbours":  # noqa: ARG003
        """Compare with normals and labelled anomalies on each scale."""
        return cls(tuple(View.fit(scale, known) for scale in COORDINATES.values()))

    @property
    def meaning(self) -> str:
        """What its contributions mean."""
        near = ", and nearer to the labelled anomalies," if self.views[0].anomalies else ""
        return f"how much further from the nearest normal rows{near} the value is than is usual"

    @property
    def n_compared(self) -> int:
        """How many different rows a row is compared with; to fill groups, some are repeated."""
        sides = (self.views[0].normals, self.views[0].anomalies)
        return sum(len(side.points.unique(dim=0)) for side in sides if side is not None)

    def contributions(
        self,
        rows: Rows,
        before: Mapping[str, Tensor],  # noqa: ARG002 - of the interface
        held_out: HeldOut | None = None,
    ) -> Float[Tensor, "n _"]:
        """Return what each column adds to z, and a remainder of zeros, shape (n, d + 1).

        They are those of the view in which the row is odder.
        """
        ids = None if held_out is None else held_out.ids
        found = torch.stack([view.contributions(rows, ids) for view in self.views])  # (v, n, d)
        odder = found.sum(-1).argmax(0)[None, :, None]
        columns = found.gather(0, odder.expand(1, *found.shape[1:]))[0]
        return torch.cat([columns, torch.zeros_like(columns[:, :1])], 1)

    def state(self) -> State:
        """Return what a model file holds of it."""
        return State({"views": [view.state() for view in self.views]})

    @classmethod
    def from_state(cls, state: State, encoder: Encoder, device: torch.device) -> "Neighbours":
        """Inverse of `state`, checked."""
        views = tuple(View.from_state(part, encoder, device) for part in state.parts("views"))
        is_each = [v.space.coordinates.name for v in views] == list(COORDINATES)
        require(is_each, "its neighbours are not seen once on each scale.")
        return cls(views)
