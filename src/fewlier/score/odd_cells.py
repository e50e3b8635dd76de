"""`OddCells`: what stands in for impossible and far cells, so that they hide no other evidence."""

from collections.abc import Iterator
from typing import final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from fewlier.density.rows import Rows
from fewlier.table import Encoder, Kind
from fewlier.table.arrays import Bools, Floats
from fewlier.table.scaling import HIGH_END, LOGGED, LOW_END

# Between the lowest and the highest number of training.
_STEPS = (0.0, 0.25, 0.5, 0.75, 1.0)
# Of so many odd cells of a row, at most, each is also replaced without the others.
_MAX_APART = 3


@final
class OddCells(nn.Module):
    """The odd cells of rows: impossible ones, and numbers far from all that training held.

    Networks read such a cell as something else, and it leads a row away from its neighbours. So
    what is odd in other columns, or in how they belong together, may go unnoticed. A row therefore
    scores at least what it would with other values in its odd cells: the likeliest given the
    others; of numbers, values from the lowest of training to the highest, and on either side the
    nearest that is far; of levels, the most frequent, and the least likely.

    A number is far that lies beyond what training held by more than its whole range.

    Two or three odd cells of a row are replaced together and one at a time, so that what one of
    them adds is not lost with the others; more are replaced together.

    Parameters
    ----------
    encoder : Encoder
        How rows are read.
    """

    owner: Tensor
    code: Tensor
    has_codes: Tensor
    is_logged: Tensor
    has_levels: Tensor
    unit: Tensor
    low: Tensor
    span: Tensor
    fill: Tensor
    values: Tensor

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        columns = encoder.schema.columns
        codings = np.array([column.coding for column in columns])
        owner = encoder.input_owner[: encoder.n_inputs - int(encoder.missable.sum())]
        _, first = np.unique(owner, return_index=True)
        values = np.stack([_values(encoder, d) for d in range(encoder.n_columns)], 1)
        arrays = {
            "owner": owner,
            "code": np.arange(len(owner)) - first[owner],
            "has_codes": codings == Kind.CATEGORY,
            "is_logged": np.isin(codings, LOGGED),
            "has_levels": np.isin(codings, (Kind.BINARY, Kind.CATEGORY)),
            "values": values.astype(np.float32),
        }
        for name in ("unit", "low", "span", "fill"):
            arrays[name] = np.array([getattr(stats, name) for stats in encoder.stats])
        for name, array in arrays.items():
            self.register_buffer(name, torch.from_numpy(array), persistent=False)

    def mark(self, rows: Rows) -> Bool[Tensor, "n d"]:
        """Mark the odd cells."""
        is_far = (rows.targets < self.values[0]) | (rows.targets > self.values[-1])
        return rows.impossible | (rows.observed & ~self.has_levels & is_far)

    @staticmethod
    def groups(cells: Bool[Tensor, "n d"]) -> tuple[Int[Tensor, " g"], Bool[Tensor, "g d"]]:
        """Return the numbers of rows, and which of their odd cells are replaced at a time."""
        count, place = cells.long().sum(1), cells.long().cumsum(1) - 1
        some = cells & ((count > 1) & (count <= _MAX_APART)).unsqueeze(1)
        apart = (some & (place == index) for index in range(_MAX_APART))
        found = torch.stack([cells, *apart])
        group, line = found.any(2).nonzero().unbind(1)
        return line, found[group, line]

    def versions(
        self,
        rows: Rows,
        cells: Bool[Tensor, "n d"],
        likeliest: Float[Tensor, "n d"],
        least: Float[Tensor, "n d"],
    ) -> Iterator[Rows]:
        """Yield rows with other values in some cells, which are likeliest and least likely."""
        inside = likeliest.clamp(self.values[1], self.values[-2])
        found = [torch.where(self.has_levels, likeliest, inside), *self.values]
        found.append(torch.where(self.has_levels, least, inside))
        yield from (self._replaced(rows, cells, targets) for targets in found)

    def _replaced(
        self, rows: Rows, cells: Bool[Tensor, "n d"], targets: Float[Tensor, "*n d"]
    ) -> Rows:
        """Return rows with other values in some cells, as `Encoder.encode` encodes them."""
        targets = torch.where(cells, targets, rows.targets)
        logs = torch.where(self.is_logged, targets.double(), 0.0).div(self.unit).log1p()
        read = torch.where(self.is_logged, (logs - self.low) / self.span, targets.double())
        read = read.clamp(LOW_END, HIGH_END)[:, self.owner]
        is_code = (targets[:, self.owner] == self.code).double()
        inputs = torch.where(self.has_codes[self.owner], is_code, read).float()
        n = len(self.owner)
        inputs = torch.where(cells[:, self.owner], inputs, rows.inputs[:, :n])
        return rows._replace(
            inputs=torch.cat([inputs, rows.inputs[:, n:]], 1),
            targets=targets,
            impossible=rows.impossible & ~cells,
        )

    def made_impossible(self, rows: Rows, cells: Bool[Tensor, "n d"]) -> Rows:
        """Return rows whose cells are impossible, and as near to what is possible as can be."""
        n = len(self.owner)
        read = torch.where(self.has_codes, 0.0, self.fill).float()[self.owner]
        inputs = torch.where(cells[:, self.owner], read, rows.inputs[:, :n])
        return rows._replace(
            inputs=torch.cat([inputs, rows.inputs[:, n:]], 1),
            targets=torch.where(cells, torch.where(self.has_levels, 0.0, -1.0), rows.targets),
            observed=rows.observed | cells,
            impossible=rows.impossible | cells,
        )


def raised(parts: Floats, other: Floats) -> Floats:
    r"""Raise contributions c (n, d + 1) where others c' sum to more, to the same sum.

    c + g u / \sum u, with u = max(c' - c, 0) and g = \sum c' - \sum c: what a cell hid goes to the
    columns where it was hidden.
    """
    gap = (other.sum(1) - parts.sum(1)).clip(0)[:, None]
    more = (other - parts).clip(0)
    total = more.sum(1, keepdims=True)
    found: Floats = parts + more * np.divide(gap, total, out=np.zeros_like(gap), where=total > 0)
    return found


def may_be_impossible(encoder: Encoder) -> Bools:
    """Mark the columns that some value is impossible in, shape (D,)."""
    columns = encoder.schema.columns
    return np.array([c.coding is not Kind.REAL or c.date is not None for c in columns])


def _values(encoder: Encoder, d: int) -> Floats:
    """Return the targets that stand in for odd cells of a column, in order; shape (7,)."""
    coding, stats = encoder.schema.columns[d].coding, encoder.stats[d]
    if coding in (Kind.BINARY, Kind.CATEGORY):
        n_levels = 2 if coding is Kind.BINARY else max(int(encoder.n_levels[d]), 1)
        codes: Floats = np.minimum(np.arange(len(_STEPS) + 2.0), n_levels - 1)
        return codes
    low, high = stats.ends(coding) if coding in LOGGED else (0.0, 1.0)
    steps = low + np.array(_STEPS) * (high - low)
    if coding in LOGGED:  # in even steps of what networks read
        steps = stats.unit * np.expm1(stats.low + np.array(_STEPS) * stats.span)
        steps = np.clip(np.floor(steps) if coding is Kind.COUNT else steps, low, high)
    least = low - (high - low)
    return np.array([max(least, 0.0) if coding in LOGGED else least, *steps, 2 * high - low])
