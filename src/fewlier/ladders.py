"""Counts scored as categories, as the numbers they are."""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from fewlier.table import Encoder
from fewlier.table.columns import Kind


class Ladder(NamedTuple):
    """A count scored as a category: its codes are inputs from `start` on, of these values.

    Of categories one is as far from another as from any; of counts 3 is nearer to 4 than to 9.
    """

    column: int
    start: int
    values: Float[Tensor, " c"]


def find_ladders(encoder: Encoder, device: torch.device | str) -> tuple[Ladder, ...]:
    """Find the columns that are counts, scored as categories."""
    found = []
    for d, column in enumerate(encoder.schema.columns):
        if column.kind is Kind.COUNT and column.coding is Kind.CATEGORY:
            start = int(np.flatnonzero(encoder.input_owner == d)[0])
            # The rarer levels share the last code, which stands for the first of them.
            values = [float(level) for level in column.levels[: encoder.n_levels[d]]]
            found.append(Ladder(d, start, torch.tensor(values, device=device)))
    return tuple(found)


def numbered(inputs: Float[Tensor, "n i"], ladders: tuple[Ladder, ...]) -> Float[Tensor, "n i"]:
    """Write the number of a count in place of its first code, and zeros for the others."""
    if not ladders:
        return inputs
    points = inputs.clone()
    for _, start, values in ladders:
        codes = slice(start, start + len(values))
        points[:, codes] = 0
        points[:, start] = inputs[:, codes] @ values
    return points
