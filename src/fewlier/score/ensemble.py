"""`Ensemble`: the density's part of the score, averaged over members."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from fewlier.density import settings_from, settings_record
from fewlier.density.base import Density, skeleton
from fewlier.density.conditionals import CONDITIONALS
from fewlier.density.joint import CellPlaces, Expected
from fewlier.density.rows import Rows
from fewlier.errors import UserError
from fewlier.modelfile.state import State, require
from fewlier.score.member import FittedMember, array_of, read_tensor
from fewlier.score.part import HeldOut, Part, exact
from fewlier.table import Encoder
from fewlier.table.arrays import Floats
from fewlier.training.settings import Selection

MAX_ROW_LAYERS = 20_000
"""Layers on a row's way; a fit by default has some hundred."""


@final
@dataclass(frozen=True, eq=False)
class Ensemble(Part):
    r"""The part s(x) = baseline + \sum_m weight_m / scale_m (cost_m(x) - centre_m).

    With `best` there is one member, whose scale is 1 and whose centre is the baseline, so that
    s(x) is exactly the member's cost, -log p(x) where it is a density. With `average` the baseline
    is 0 and the unit is the standard deviation of normal rows.

    Parameters
    ----------
    members : tuple of m FittedMember
        The members.
    weights : tuple of m floats
        Their weights, which sum to one.
    selection : {"average", "best"}
        How the members were selected, and how a member's passes are combined.
    """

    members: tuple[FittedMember, ...]
    weights: tuple[float, ...]
    selection: Selection

    name: ClassVar[str] = "density"

    @property
    def density(self) -> Density:
        """Any member's: the structure is the same in all of them."""
        return self.members[0].density

    @property
    def baseline(self) -> float:
        """What the member costs normal rows on average with `best`, else 0."""
        return float(self.members[0].centre.sum()) if self.selection == "best" else 0.0

    @property
    def meaning(self) -> str:
        """What its contributions mean."""
        return self.density.meaning

    @property
    def unit(self) -> str:
        """Unit of the score."""
        return self.density.unit if self.selection == "best" else "standard units"

    @property
    def folds(self) -> list[int]:
        """The folds that have a member in the score."""
        return sorted({member.fold for member in self.members})

    @property
    def passes_per_row(self) -> int:
        """Network evaluations that scoring one row takes."""
        return sum(len(member.passes) for member in self.members)

    @property
    def likeliest(self) -> FittedMember:
        """The member that costs normal rows least.

        Those of a large lambda rank rows at the expense of likelihood, and expect anything.
        """
        return min(self.members, key=lambda member: float(member.centre.sum()))

    def contributions(
        self,
        rows: Rows,
        before: Mapping[str, Tensor],  # noqa: ARG002 - of the interface
        held_out: HeldOut | None = None,
    ) -> Float[Tensor, "n _"]:
        """Return what columns and remainder add to the score, shape (n, d + 1).

        Held-out rows are scored by the members of their folds alone, whose weights are rescaled to
        sum to one.
        """
        rows, found = rows.by_column, []
        for member, share in self._members_of(held_out):
            cost = member.cost(rows, self.selection)
            found.append((cost - torch.from_numpy(member.centre).to(cost.device)) * exact(share))
        return torch.stack(found).sum(0)

    def _members_of(self, held_out: HeldOut | None) -> list[tuple[FittedMember, float]]:
        """Return the members that may score rows, and what a unit of their cost counts."""
        folds = self.folds if held_out is None or held_out.folds is None else held_out.folds
        members = zip(self.members, self.weights, strict=True)
        chosen = [(member, weight) for member, weight in members if member.fold in folds]
        total = sum(weight for _, weight in chosen)
        return [(member, weight / total / member.scale) for member, weight in chosen]

    def log_density(self, rows: Rows) -> Floats:
        """Return log sum_m weight_m p_m(x), each p_m the mean of its passes' densities."""
        if not self.density.is_probabilistic:
            raise UserError(
                "score_samples needs a density; an autoencoder has only reconstruction errors. Use "
                "anomaly_score, or fit with another 'density'."
            )
        log_p = [member.log_p(rows).cpu() for member in self.members]
        log_weight = torch.tensor(self.weights, dtype=torch.float64).log()
        mixture: Floats = torch.logsumexp(torch.stack(log_p, -1) + log_weight, -1).numpy()
        return mixture

    def stand_ins(self, rows: Rows) -> tuple[Float[Tensor, "n d"], Float[Tensor, "n d"]]:
        """Return the likeliest and the least likely target of cells, as `Joint.stand_ins`.

        By the likeliest member, in a pass that knows most of a column.
        """
        density = self.likeliest.density
        likeliest = least = torch.zeros_like(rows.targets)
        for index, is_known in self._knowing:
            found = density.joint.stand_ins(density.phi(rows, index))
            likeliest = torch.where(is_known, found[0], likeliest)
            least = torch.where(is_known, found[1], least)
        return likeliest, least

    @cached_property
    def _knowing(self) -> list[tuple[int, Bool[Tensor, " d"]]]:
        """The passes that know most of some columns, and of which."""
        informed, device = self.density.informed, self.likeliest.substitutes.floor.device
        return [(i, known.to(device)) for i, known in enumerate(informed) if bool(known.any())]

    def expect(self, rows: Rows, cells: CellPlaces) -> Expected:
        """Return what was expected of m cells of these rows, given the other columns.

        By the likeliest member alone, in all passes of the density: the mean over those that know
        most of a column.
        """
        member, informed = self.likeliest, self.density.informed
        total = self.density.joint.nothing_expected(len(cells.rows))
        for index in range(self.density.n_passes):
            lines = informed[index, cells.columns].nonzero().squeeze(-1)
            if not len(lines):
                continue
            some = CellPlaces(cells.rows[lines], cells.columns[lines])
            found = member.density.expect(rows, index, some)
            share = 1 / informed.sum(0).double()[some.columns]
            for sums, values in zip(total, found, strict=True):
                sums[lines] += share.reshape(-1, *[1] * (values.ndim - 1)) * values
        return total

    def state(self) -> State:
        """Return what a model file holds of it."""
        drawn = {name: array_of(value) for name, value in self.density.drawn().items()}
        return State(
            {
                "selection": self.selection,
                "density": State(settings_record(self.density.settings), drawn),
                "weights": list(self.weights),
                "members": [member.state() for member in self.members],
            }
        )

    @classmethod
    def from_state(cls, state: State, encoder: Encoder, device: torch.device) -> "Ensemble":
        """Inverse of `state`, checked."""
        is_best = state.text("selection", ("average", "best")) == "best"
        parts, weights = list(state.parts("members")), state.numbers("weights")
        is_weight = len(weights) == len(parts) > 0 and min(weights) > 0
        require(is_weight, "its members do not have a positive weight each.")
        require(abs(sum(weights) - 1) <= 1e-6, "the weights of its members do not sum to 1.")
        n_numbers = sum(array.size for array in state.arrays.values())
        template = _read_template(state.part("density"), encoder, n_numbers, device)
        members = tuple(FittedMember.from_state(part, template, device) for part in parts)
        is_scale = not is_best or (len(members) == 1 and members[0].scale == 1)
        require(is_scale, "its best member is not alone, or its scale is not 1.")
        ensemble = cls(members, tuple(weights), "best" if is_best else "average")
        n, most = ensemble.n_layers, MAX_ROW_LAYERS
        require(
            n <= most, f"a row passes {n} layers of networks, more than {most}; fit with fewer."
        )
        return ensemble

    @property
    def n_layers(self) -> int:
        """Layers of networks, passes and members; each takes time, however small the file."""
        return sum(len(member.passes) * member.density.n_layers for member in self.members)


def _read_template(state: State, encoder: Encoder, n_numbers: int, device: torch.device) -> Density:
    """Read what members share: sizes and structure. Its parameters take no memory."""
    for column in encoder.schema.columns:
        conditional = CONDITIONALS.get(column.scored_by)
        is_known = conditional is not None and conditional.coding is column.coding
        require(is_known, f"column {column.name!r} is scored by an unknown {column.scored_by!r}.")
    template = skeleton(settings_from(state), encoder, n_numbers, device)
    drawn = {n: read_tensor(state, n, like, device) for n, like in template.drawn().items()}
    template.load_state_dict(drawn, strict=False, assign=True)
    template.check_structure()
    return template
