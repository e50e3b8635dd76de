"""Rows as points, in which to measure distances and to place thresholds."""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from fewlier.conditionals.joint import Rows
from fewlier.table import Encoder
from fewlier.table.columns import Kind
from fewlier.table.encode import LOGGED


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
