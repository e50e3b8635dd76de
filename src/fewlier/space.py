"""`Space`: rows as points, in which distances and thresholds mean something."""

from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from fewlier.conditionals.joint import Rows
from fewlier.table import Encoder


@final
@dataclass(frozen=True, eq=False)
class Space:
    """What networks read, but for integers of few values: their order counts, and they are numbers.

    Parameters
    ----------
    kept : tensor (k,)
        The networks' inputs that are coordinates as they are.
    columns : tensor (c,)
        The columns of numbers that networks read value by value.
    numbers : tensor (c, levels)
        What their codes stand for; the first is the most frequent, which a missing cell reads as.
    owner : tensor (k + c,)
        The column each coordinate belongs to.
    """

    kept: Int[Tensor, " k"]
    columns: Int[Tensor, " c"]
    numbers: Float[Tensor, "c l"]
    owner: Int[Tensor, " p"]

    @classmethod
    def of(cls, encoder: Encoder, device: torch.device | str = "cpu") -> "Space":
        """Return the space of an encoder's rows."""
        columns, owner = np.flatnonzero(encoder.has_coded_numbers), encoder.input_owner
        is_missing = np.arange(len(owner)) >= len(owner) - encoder.missable.sum()
        kept = np.flatnonzero(is_missing | ~np.isin(owner, columns))
        n_levels = encoder.n_levels[columns]
        numbers = np.zeros((len(columns), max(n_levels, default=1)), dtype=np.float32)
        for line, column, n in zip(numbers, columns, n_levels, strict=True):
            levels = encoder.schema.columns[column].levels[:n]
            line[: len(levels)] = levels
        parts = kept, columns, numbers, np.concatenate([owner[kept], columns])
        return cls(*(torch.from_numpy(part).to(device) for part in parts))

    def points(self, rows: Rows) -> Float[Tensor, "n p"]:
        """Return the coordinates of n rows."""
        codes = rows.targets[:, self.columns].long()
        numbers = self.numbers.T.gather(0, codes)
        return torch.cat([rows.inputs[:, self.kept], numbers], 1)
