"""The conditionals of all columns together, and whether cells are missing."""

import math
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from fewlier.density.conditionals import CONDITIONALS
from fewlier.density.conditionals.base import (
    Conditional,
    LevelConditional,
    NumberConditional,
    Traits,
)
from fewlier.density.conditionals.bernoulli import Bernoulli
from fewlier.density.missing_cells import Terms
from fewlier.density.rows import Rows
from fewlier.table.encode import Encoder

SHARES = (0.05, 0.5, 0.95)
"""Quantiles that say what was expected: a median, and the ends of a range of 90 %."""


class CellPlaces(NamedTuple):
    """m cells of n rows, by the numbers of their rows and columns."""

    rows: Int[Tensor, " m"]
    columns: Int[Tensor, " m"]


class Expected(NamedTuple):
    """What was expected of m cells, in float64.

    `quantiles` are targets at `SHARES`, NaN where the column has levels; `probabilities` belong to
    the codes of a column that has levels, else 0; `missing` is the probability of a missing cell.
    """

    quantiles: Float[Tensor, "m q"]
    probabilities: Float[Tensor, "m k"]
    missing: Float[Tensor, " m"]


@dataclass(frozen=True)
class Group:
    """The columns that share one conditional."""

    columns: Int[Tensor, " d"]
    conditional: Conditional

    @property
    def owner(self) -> Int[Tensor, " pd"]:
        """Return the column of each of the group's parameters, in their flat order."""
        return self.columns.repeat(self.conditional.n_parameters)

    @property
    def locates(self) -> Bool[Tensor, " pd"]:
        """Return which of the group's parameters say where a column's distribution lies."""
        return self.conditional.locates.repeat_interleave(len(self.columns))

    def log_prob(
        self, phi: Float[Tensor, "*n pd"], targets: Float[Tensor, "*n d"]
    ) -> Float[Tensor, "*n d"]:
        """Return log p of the group's columns from its block of flat parameters."""
        block = phi.unflatten(-1, (self.conditional.n_parameters, len(self.columns)))
        return self.conditional.log_prob(block, targets)

    def stand_ins(
        self, phi: Float[Tensor, "*n pd"]
    ) -> tuple[Float[Tensor, "*n d"], Float[Tensor, "*n d"]]:
        """Return the likeliest and the least likely targets, as `Joint.stand_ins`."""
        conditional = self.conditional
        block = phi.unflatten(-1, (conditional.n_parameters, len(self.columns)))
        likeliest = conditional.likeliest(block)
        if isinstance(conditional, LevelConditional):
            return likeliest, conditional.unlikeliest(block)
        return likeliest, likeliest

    def write_expected(
        self, phi: Float[Tensor, "n pd"], cells: CellPlaces, expected: Expected
    ) -> None:
        """Write what is expected of the group's cells into their lines."""
        lines = torch.isin(cells.columns, self.columns).nonzero().squeeze(-1)
        place = torch.searchsorted(self.columns, cells.columns[lines])
        block = phi.unflatten(-1, (self.conditional.n_parameters, len(self.columns)))
        parameters = block[cells.rows[lines], :, place].T
        conditional = self.conditional.take(place)
        if isinstance(conditional, NumberConditional):
            found = [conditional.quantile(parameters, share) for share in SHARES]
            expected.quantiles[lines] = torch.stack(found, -1)
        elif isinstance(conditional, LevelConditional):
            codes = conditional.probabilities(parameters)
            expected.probabilities[lines, : len(codes)] = codes.T
            expected.quantiles[lines] = torch.nan


@final
class Joint(nn.Module):
    """The conditionals of D columns, from one flat vector of parameters per row.

    Columns scored by one conditional form a group; the flat parameters are the groups' blocks, one
    after the other. Columns of which some cells were missing in training, but not all, form one
    more: the log odds of being missing, given the columns before. Their terms are relative to the
    column's own rate, log p(m | x_<d) - log rate, so that cells missing at random add nothing. A
    cell missing where training missed none, or present where it missed all, has probability
    1 / (n + 2).

    Attributes
    ----------
    input_owner : tensor (n_inputs,)
        The column each network input belongs to; masks are built from it.
    owner : tensor (n_parameters,)
        The column each parameter belongs to; masks are built from it.
    locates : tensor (n_parameters,)
        Whether it says where the column's distribution lies (see `Conditional.locates`).
    """

    input_owner: Int[Tensor, " i"]
    owner: Int[Tensor, " p"]
    locates: Bool[Tensor, " p"]
    log_scale: Float[Tensor, " d"]
    order: Int[Tensor, " d"]
    restore: Int[Tensor, " d"]
    mixed: Int[Tensor, " m"]
    base_rate: Float[Tensor, " m"]
    always_missing: Bool[Tensor, " d"]

    def __init__(self, encoder: Encoder, n_components: int = 3) -> None:
        super().__init__()
        self.n_components = n_components
        self.groups = _group_columns(encoder, n_components)
        # Codes of the widest column; a binary has two.
        self.n_levels = max(2, int(encoder.n_levels.max()))
        rate = torch.from_numpy(encoder.missing_rate).float()
        mixed = ((rate > 0) & (rate < 1)).nonzero().squeeze(-1)
        self.missing = Group(mixed, Bernoulli(Traits(rate[mixed], torch.zeros_like(mixed), 1)))
        self.blocks = [len(group.owner) for group in (*self.groups, self.missing)]
        self.log_never = -math.log(encoder.n_rows + 2)
        self._keep("input_owner", torch.from_numpy(encoder.input_owner))
        self._keep("owner", torch.cat([group.owner for group in (*self.groups, self.missing)]))
        self._keep("locates", torch.cat([g.locates for g in (*self.groups, self.missing)]))
        self._keep("log_scale", torch.from_numpy(encoder.log_scale).float())
        order = torch.cat([group.columns for group in self.groups])
        self.sizes = [len(group.columns) for group in self.groups]
        self._keep("order", order)
        self._keep("restore", order.argsort())
        self._keep("mixed", mixed)
        self._keep("base_rate", rate[mixed])
        self._keep("always_missing", rate == 1)

    @staticmethod
    def count(encoder: Encoder, n_components: int) -> int:
        """Count the parameters of all columns' values, before anything of that size is built."""
        groups = _group_columns(encoder, n_components)
        return sum(group.conditional.n_parameters * len(group.columns) for group in groups)

    def columns_of(self, kind: type[Conditional]) -> Int[Tensor, " r"]:
        """Return the columns that a conditional scores, ascending; none where it scores none."""
        found = [group.columns for group in self.groups if isinstance(group.conditional, kind)]
        return found[0] if found else self.mixed[:0]

    def _keep(self, name: str, value: Tensor) -> None:
        self.register_buffer(name, value, persistent=False)

    def initial(self) -> Float[Tensor, " p"]:
        """Return the flat parameters where training starts."""
        return torch.cat(
            [group.conditional.initial().flatten() for group in (*self.groups, self.missing)]
        )

    def terms(self, phi: Float[Tensor, "*n p"], rows: Rows) -> Terms:
        """Return log p of every cell in the user's units, given its parameters."""
        *blocks, missing = phi.split(self.blocks, -1)
        # Impossible values are numbers that none can score. `masked_fill` would lay them out anew.
        targets = torch.where(rows.impossible, 0, rows.targets).mT
        if len(self.groups) == 1:
            value = self.groups[0].log_prob(blocks[0], targets.mT)
        else:
            own = targets.index_select(-2, self.order).split(self.sizes, -2)
            parts = [
                group.log_prob(block, columns.mT).mT
                for group, block, columns in zip(self.groups, blocks, own, strict=True)
            ]
            value = torch.cat(parts, -2).index_select(-2, self.restore).mT
        presence = self._presence(missing, rows.observed)
        return Terms(value - self.log_scale, presence, presence.new_zeros(presence.shape[:-1]))

    def expect(self, phi: Float[Tensor, "n p"], cells: CellPlaces) -> Expected:
        """Return what the parameters of n rows say of some of their cells, on the CPU."""
        *blocks, missing = phi.detach().cpu().split(self.blocks, -1)
        expected = self.nothing_expected(len(cells.rows))
        expected.missing.copy_(self.always_missing.cpu()[cells.columns])
        for group, block in zip(self.groups, blocks, strict=True):
            group.write_expected(block, cells, expected)
        lines = torch.isin(cells.columns, self.missing.columns).nonzero().squeeze(-1)
        place = torch.searchsorted(self.missing.columns, cells.columns[lines])
        expected.missing[lines] = torch.sigmoid(missing[cells.rows[lines], place].double())
        return expected

    def stand_ins(
        self, phi: Float[Tensor, "*n p"]
    ) -> tuple[Float[Tensor, "*n d"], Float[Tensor, "*n d"]]:
        """Return the target of every cell that its parameters find likeliest, and least likely.

        Of numbers no least likely one: the likeliest again.
        """
        blocks = zip(self.groups, phi.split(self.blocks, -1), strict=False)  # but that of gaps
        found = zip(*(group.stand_ins(block) for group, block in blocks), strict=True)
        likeliest, least = (torch.cat(part, -1)[..., self.restore] for part in found)
        return likeliest, least

    def nothing_expected(self, m: int) -> Expected:
        """Return what is expected of m cells, still to be filled in: zeros."""
        shapes = ((m, len(SHARES)), (m, self.n_levels), (m,))
        quantiles, probabilities, missing = (torch.zeros(s, dtype=torch.float64) for s in shapes)
        return Expected(quantiles, probabilities, missing)

    def _presence(
        self, phi: Float[Tensor, "*n m"], observed: Bool[Tensor, "*n d"]
    ) -> Float[Tensor, "*n d"]:
        never_seen = observed == self.always_missing
        presence = torch.where(never_seen, self.log_never, 0.0).to(phi.dtype)
        if not len(self.mixed):
            return presence
        is_missing = (~observed[..., self.mixed]).to(phi.dtype)
        base = torch.where(is_missing > 0, self.base_rate, 1 - self.base_rate)
        learned = self.missing.log_prob(phi, is_missing) - base.log()
        return presence.index_copy(-1, self.mixed, learned)


def _group_columns(encoder: Encoder, n_components: int) -> list[Group]:
    scored_by = np.array([column.scored_by for column in encoder.schema.columns])
    mean = torch.from_numpy(encoder.mean_target).float()
    traits = Traits(mean, torch.from_numpy(encoder.n_levels).long(), n_components)
    members = {name: torch.from_numpy(np.flatnonzero(scored_by == name)) for name in CONDITIONALS}
    return [
        Group(columns, CONDITIONALS[name](traits.take(columns)))
        for name, columns in members.items()
        if len(columns)
    ]
