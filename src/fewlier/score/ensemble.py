"""`Ensemble`: the density's part of the score, averaged over members."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, final

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from fewlier.density import settings_from, settings_record
from fewlier.density.base import Density, mean_over_passes, skeleton
from fewlier.density.conditionals import CONDITIONALS
from fewlier.density.joint import CellPlaces, Expected
from fewlier.density.networks import denormals_as_zero
from fewlier.density.rows import Rows
from fewlier.density.terms import Substitutes
from fewlier.errors import UserError
from fewlier.modelfile.state import Array, State, require
from fewlier.score.part import HeldOut, Part
from fewlier.score.passes import pass_terms, split_cost, total_cost
from fewlier.table import Encoder
from fewlier.table.arrays import Floats
from fewlier.training.folds import MAX_FOLDS
from fewlier.training.settings import Selection

MAX_ROW_LAYERS = 20_000
"""Layers on a row's way; a fit by default has some hundred."""


@final
@dataclass(frozen=True, eq=False)
class FittedMember:
    """One trained density.

    Parameters
    ----------
    lam : float
        Weight of the ranking term it was trained with.
    fold : int
        The fold it was trained on.
    density : Density
        The density, with parameters of its own.
    passes : tuple of o ints
        The density's passes that it scores with.
    substitutes : Substitutes
        Terms of cells without a value, shape (o, d): per pass and column.
    centre : array (d + 1,)
        What each column, and last the rest of a row, costs on average on normal rows.
    scale : float
        Standard deviation over normal rows of the member's cost.
    """

    lam: float
    fold: int
    density: Density
    passes: tuple[int, ...]
    substitutes: Substitutes
    centre: Floats
    scale: float

    def terms(self, rows: Rows) -> Float[Tensor, "o n _"]:
        """Return log p of every cell and, last, the rest of every row, in each of its passes."""
        return pass_terms(self.density, self.substitutes, rows, self.passes)

    def state(self) -> State:
        """Return what a model file holds of it, but for what all members share."""
        record = {"lam": self.lam, "fold": self.fold, "scale": self.scale}
        arrays = {f"parameters.{n}": _array(p) for n, p in self.density.named_parameters()}
        arrays |= {f"substitutes.{n}": _array(a) for n, a in self.substitutes._asdict().items()}
        return State(record | {"passes": list(self.passes)}, arrays | {"centre": self.centre})

    @classmethod
    def from_state(cls, state: State, template: Density, device: torch.device) -> "FittedMember":
        """Inverse of `state`, checked; the template has what all members share."""
        passes = state.counts("passes", template.n_passes - 1)
        is_ascending = len(passes) > 0 and passes == sorted(set(passes))
        require(is_ascending, f"'{state.name}.passes' must be ascending numbers.")
        n_columns = len(template.joint.log_scale)
        by_pass = torch.empty(len(passes), n_columns)
        parameters = {
            name: _tensor(state, f"parameters.{name}", like, device)
            for name, like in template.named_parameters()
        }
        return cls(
            state.number("lam", least=0),
            state.count("fold", most=MAX_FOLDS - 1),
            template.with_parameters(parameters),
            tuple(passes),
            Substitutes(
                *(_tensor(state, f"substitutes.{n}", by_pass, device) for n in Substitutes._fields)
            ),
            state.array("centre", np.float64, (n_columns + 1,)),
            state.positive("scale"),
        )


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

    def score(
        self,
        rows: Rows,
        before: Mapping[str, Floats],  # noqa: ARG002 - of the interface
        held_out: HeldOut | None = None,
    ) -> Floats:
        """Return the score less its baseline, shape (n,); held-out rows as in `contributions`."""
        rows, total = rows.by_column, np.zeros(len(rows.targets))
        for member, share in self._judges(held_out):
            cost = total_cost(member.terms(rows), self.selection)
            total += share * (cost - member.centre.sum())
        return total

    def contributions(
        self,
        rows: Rows,
        before: Mapping[str, Floats],  # noqa: ARG002 - of the interface
        held_out: HeldOut | None = None,
    ) -> Floats:
        """Return what columns and remainder add to the score, shape (n, d + 1).

        Held-out rows are scored by the members of their folds alone, whose weights are rescaled to
        sum to one.
        """
        rows, (n_rows, n_columns) = rows.by_column, rows.targets.shape
        cost = rows.targets.new_zeros(n_columns + 1, n_rows, dtype=torch.float64).mT
        centre = np.zeros(n_columns + 1)
        for member, share in self._judges(held_out):
            cost.add_(split_cost(member.terms(rows), self.selection), alpha=share)
            centre += share * member.centre
        parts: Floats = cost.cpu().numpy() - centre
        return parts

    def _judges(self, held_out: HeldOut | None) -> list[tuple[FittedMember, float]]:
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
        log_p = [
            mean_over_passes(member.terms(rows).double().sum(-1).T).cpu() for member in self.members
        ]
        log_weight = torch.tensor(self.weights, dtype=torch.float64).log()
        mixture: Floats = torch.logsumexp(torch.stack(log_p, -1) + log_weight, -1).numpy()
        return mixture

    def stand_ins(self, rows: Rows) -> tuple[Float[Tensor, "n d"], Float[Tensor, "n d"]]:
        """Return the likeliest and the least likely target of cells, as `Joint.stand_ins`.

        By the likeliest member, in a pass that knows most of a column.
        """
        density = self.likeliest.density
        likeliest = least = torch.zeros_like(rows.targets)
        with torch.no_grad(), denormals_as_zero():
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
            with torch.no_grad(), denormals_as_zero():
                found = member.density.expect(rows, index, some)
            share = 1 / informed.sum(0).double()[some.columns]
            for sums, values in zip(total, found, strict=True):
                sums[lines] += share.reshape(-1, *[1] * (values.ndim - 1)) * values
        return total

    def state(self) -> State:
        """Return what a model file holds of it."""
        drawn = {name: _array(value) for name, value in self.density.drawn().items()}
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
        require(
            ensemble.n_layers <= MAX_ROW_LAYERS,
            f"a row passes more than {MAX_ROW_LAYERS} layers.",
        )
        return ensemble

    @property
    def n_layers(self) -> int:
        """Layers that scoring a row evaluates; each takes time, however small the file."""
        return sum(len(member.passes) * member.density.n_layers for member in self.members)


def _array(tensor: Tensor) -> Array:
    array: Array = tensor.detach().cpu().numpy()
    return array


def _tensor(state: State, name: str, like: Tensor, device: torch.device) -> Tensor:
    dtype = str(like.dtype).removeprefix("torch.")
    return torch.from_numpy(state.array(name, dtype, tuple(like.shape))).to(device)


def _read_template(state: State, encoder: Encoder, n_numbers: int, device: torch.device) -> Density:
    """Read what members share: sizes and structure. Its parameters take no memory."""
    for column in encoder.schema.columns:
        conditional = CONDITIONALS.get(column.scored_by)
        is_known = conditional is not None and conditional.coding is column.coding
        require(is_known, f"column {column.name!r} is scored by an unknown {column.scored_by!r}.")
    template = skeleton(settings_from(state), encoder, n_numbers, device)
    drawn = {n: _tensor(state, n, like, device) for n, like in template.drawn().items()}
    template.load_state_dict(drawn, strict=False, assign=True)
    template.check_structure()
    return template
