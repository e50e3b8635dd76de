"""Rows as points, between which to measure distances and to place thresholds."""

from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from fewlier.conditionals.joint import Rows
from fewlier.table import Encoder
from fewlier.table.columns import Kind
from fewlier.table.encode import LOGGED

LIMIT = 8.0
"""Standard deviations from the mean beyond which an input lies no further away."""
# An input that varies less is constant, and its differences count as they are.
_CONSTANT = 1e-9


class Number(NamedTuple):
    """A column of numbers that networks read as codes or as logarithms, from input `start` on.

    Of categories one is as far from another as from any; of counts 3 is nearer to 4 than to 9.
    `levels` are what the codes stand for, none where there are no codes; `unit` is the mean of a
    column without codes, so that numbers are of order 1 in any unit of the user's; `fill` is where
    a cell without a value lies.
    """

    column: int
    start: int
    levels: Float[Tensor, " c"]
    unit: float
    fill: float

    def of(self, rows: Rows) -> Float[Tensor, " n"]:
        """Return the numbers of rows."""
        targets = rows.targets[:, self.column]
        numbers = self.levels[targets.long()] if len(self.levels) else targets / self.unit
        has_value = rows.observed[:, self.column] & ~rows.outside[:, self.column]
        return torch.where(has_value, numbers, self.fill)


def find_numbers(encoder: Encoder, device: torch.device | str) -> tuple[Number, ...]:
    """Find the columns of numbers that networks do not read as they are."""
    found = []
    for d, (column, stats) in enumerate(zip(encoder.schema.columns, encoder.stats, strict=True)):
        is_coded = column.kind is Kind.COUNT and column.coding is Kind.CATEGORY
        if not is_coded and column.coding not in LOGGED:
            continue
        start = int(np.flatnonzero(encoder.input_owner == d)[0])
        # The rarer levels share the last code, which stands for the first of them.
        levels = torch.tensor([float(x) for x in column.levels[: encoder.n_levels[d]]])
        unit = 1.0 if is_coded else stats.unit
        # A file may say what no table can have: the mean in units of the mean is 1, or 0 of zeros.
        fill = float(levels.mean()) if is_coded else float(np.clip(stats.mean_target / unit, 0, 1))
        found.append(Number(d, start, levels.to(device), unit, fill))
    return tuple(found)


def points_of(rows: Rows, numbers: tuple[Number, ...]) -> Float[Tensor, "n i"]:
    """Return what networks read, but in place of codes and logarithms the number, then zeros."""
    if not numbers:
        return rows.inputs
    points = rows.inputs.clone()
    for number in numbers:
        points[:, number.start : number.start + len(number.levels)] = 0
        points[:, number.start] = number.of(rows)
    return points


@final
@dataclass(frozen=True, eq=False)
class Space:
    """Where rows lie: each input in standard deviations of normal rows, columns weighing as said.

    Parameters
    ----------
    mean, scale : tensor (i,)
        Of the inputs on normal rows.
    weight : tensor (d,)
        What a squared difference in each column counts, 1 on average.
    owner : tensor (i,)
        The column each input belongs to.
    numbers : tuple of Number
        The columns whose numbers networks do not read as they are.
    """

    mean: Float[Tensor, " i"]
    scale: Float[Tensor, " i"]
    weight: Float[Tensor, " d"]
    owner: Int[Tensor, " i"]
    numbers: tuple[Number, ...]

    @classmethod
    def of(cls, encoder: Encoder, normals: Rows) -> "Space":
        """Take means and deviations from normal rows; columns weigh alike."""
        device = normals.inputs.device
        numbers = find_numbers(encoder, device)
        inputs = points_of(normals, numbers).double().cpu().numpy()
        scale = inputs.std(0)
        scale[scale <= _CONSTANT] = 1.0
        mean, scale = (
            torch.from_numpy(part).to(device, torch.float32) for part in (inputs.mean(0), scale)
        )
        weight = torch.ones(encoder.n_columns, device=device)
        return cls(mean, scale, weight, input_owner(encoder, device), numbers)

    @property
    def limit(self) -> Float[Tensor, " i"]:
        """How far from the mean a row lies at most in each input."""
        return LIMIT * self._stretch

    @property
    def n_axes(self) -> Float[Tensor, " d"]:
        """How many inputs of each column differ between rows."""
        n_axes = self.owner.bincount(minlength=len(self.weight)).double()
        for number in self.numbers:
            n_axes[number.column] -= max(0, len(number.levels) - 1)
        return n_axes

    def place(self, rows: Rows) -> Float[Tensor, "n i"]:
        """Return where rows lie."""
        inputs = points_of(rows, self.numbers)
        return ((inputs - self.mean) / self.scale).clamp(-LIMIT, LIMIT) * self._stretch

    @property
    def _stretch(self) -> Float[Tensor, " i"]:
        return self.weight.sqrt()[self.owner]


def input_owner(encoder: Encoder, device: torch.device | str) -> Int[Tensor, " i"]:
    """Return the column of each input."""
    return torch.from_numpy(encoder.input_owner).to(device)
