"""How columns enter the graph, and how they become what the parts of the score read."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, final

import numpy as np
import torch
from torch import Tensor, nn

from fewlier.density.rows import Rows
from fewlier.score.part import exact
from fewlier.table import Encoder, Kind
from fewlier.table.cells import numbers_among
from fewlier.table.columns import MAX_COUNT, Column
from fewlier.table.date_parts import DAY, HOUR, WEEKDAYS, Aspect, DatePart
from fewlier.table.scaling import (
    HIGH_END,
    LOGGED,
    LOW_END,
    MAX_FLOAT,
    MAX_LEVELS,
    MAX_POSITIVE,
    MIN_POSITIVE,
)

NO_DATE = np.iinfo(np.int64).min
"""Stands for a missing date, as numpy and pandas write it."""
NO_CODE, UNSEEN = -1, -2
"""Stand for a missing category, and for one that training has not seen."""
MINUTE = 60_000_000
"""In the microseconds that dates are counted in."""
_MICROSECONDS = 1e6
_THURSDAY = 3  # 1 January 1970


@final
@dataclass(frozen=True)
class Input:
    """One input of the graph: a column of the user's, or the time zones of a column.

    Parameters
    ----------
    name : str
        Its name.
    column : str
        The user's column that it is read from.
    form : str
        "number" (float64, NaN where missing), "date" (int64, microseconds since 1970, in UTC where
        cells have a zone; the least integer where missing), "offset" (int32, how many minutes the
        clock that a zoned date was written by is ahead of UTC), or "category" (int64, the code of
        the level; -1 where missing, -2 for any other level).
    codes : dict of str to int, or None
        The code of each level of a category, and -1 of what the user said stands for none.
    """

    name: str
    column: str
    form: str
    codes: dict[str, int] | None = None

    def record(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self)


def inputs_of(encoder: Encoder) -> tuple[Input, ...]:
    """Return the inputs of a graph, in the order of the columns, and last the offsets of dates."""
    found: dict[str, Input] = {}
    for column in encoder.schema.columns:
        name = column.source
        if column.date is not None:
            found[name] = Input(name, name, "date")
        elif column.kind is Kind.CATEGORY:
            codes = {str(level): code for code, level in enumerate(column.levels)}
            codes |= dict.fromkeys(column.missing, NO_CODE)
            found[name] = Input(name, name, "category", codes)
        else:
            found[name] = Input(name, name, "number")
    parts = [column.date for column in encoder.schema.columns if column.date is not None]
    for source in dict.fromkeys(part.source for part in parts if _takes_offset(part)):
        name = f"{source}.offset"
        while name in found:
            name += "_"
        found[name] = Input(name, source, "offset")
    return tuple(found.values())


def _takes_offset(part: DatePart) -> bool:
    """Whether it is read by the clock of the cell, while the moment is in UTC."""
    return part.form.is_zoned and part.form.has_day and part.aspect is not Aspect.DATE


class Levels(NamedTuple):
    """Columns of numbers that are scored value by value, and their values, NaN after the last."""

    columns: Tensor
    values: Tensor


@final
class Encoding(nn.Module):
    """Encodes rows as `Encoder.encode` does, all columns at once."""

    unit: Tensor
    low: Tensor
    span: Tensor
    fill: Tensor
    is_real: Tensor
    is_count: Tensor
    is_positive: Tensor
    is_category: Tensor
    is_logged: Tensor
    is_text: Tensor
    n_levels: Tensor
    most: Tensor
    unscored_low: Tensor
    unscored_span: Tensor
    owner: Tensor
    code: Tensor
    missable: Tensor

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self._columns: Sequence[Column] = encoder.schema.columns
        self._inputs = inputs_of(encoder)
        self._levels = _levels(self._columns)
        codings = np.array([column.coding for column in self._columns])

        def keep(name: str, values: object, dtype: torch.dtype = torch.float64) -> None:
            self.register_buffer(name, torch.tensor(np.asarray(values), dtype=dtype))

        for name in ("unit", "low", "span", "fill"):
            keep(name, [getattr(stats, name) for stats in encoder.stats])
        for kind in (Kind.REAL, Kind.COUNT, Kind.POSITIVE, Kind.CATEGORY):
            keep(f"is_{kind.value}", codings == kind, torch.bool)
        keep("is_logged", np.isin(codings, LOGGED), torch.bool)
        keep("is_text", [c.kind is Kind.CATEGORY for c in self._columns], torch.bool)
        keep("n_levels", [_n_codes(column) for column in self._columns])
        keep("most", [_most(column) for column in self._columns])
        low, span = zip(*map(_unscored, self._columns), strict=True)
        keep("unscored_low", low)
        keep("unscored_span", span)
        owner = encoder.input_owner[: len(encoder.input_owner) - int(encoder.missable.sum())]
        _, first = np.unique(owner, return_index=True)
        keep("owner", owner, torch.int64)
        keep("code", np.arange(len(owner)) - first[owner])
        keep("missable", np.flatnonzero(encoder.missable), torch.int64)

    def forward(self, *columns: Tensor) -> Rows:
        """Return the rows of the columns, each of shape (n,)."""
        given = {
            (one.column, one.form): values
            for one, values in zip(self._inputs, columns, strict=True)
        }
        cells = torch.stack([_cells(column, given) for column in self._columns], 1)
        observed = ~cells.isnan()
        values = self._values(cells)
        known = ~values.isnan()
        impossible = observed & ~known
        numbers = self._bounded(torch.where(known, values, 0.0))
        scaled = self._scaled(numbers)
        linear = scaled.clamp(LOW_END, HIGH_END)
        excess = scaled - linear
        compressed = linear + excess.abs().log1p() * excess.sign()
        targets = torch.where(self.is_real, compressed, numbers)
        beyond = self._unscored(torch.where(observed, cells, 0.0))
        targets = torch.where(known, targets, torch.where(impossible, beyond, 0.0)).float()
        read = torch.where(known, linear, self.fill)[:, self.owner]
        is_level = (numbers[:, self.owner] == self.code) & known[:, self.owner]
        inputs = torch.where(self.is_category[self.owner], is_level.double(), read)
        gaps = (~observed[:, self.missable]).double()
        return Rows(torch.cat([inputs, gaps], 1).float(), targets, observed, impossible)

    def _values(self, cells: Tensor) -> Tensor:
        """Return cells as their column scores them; NaN where missing or impossible."""
        for levels in self._levels:
            some = cells[:, levels.columns]
            is_level = some.unsqueeze(-1) == levels.values
            place = (is_level * torch.arange(levels.values.shape[1])).sum(-1).double()
            found = torch.where(is_level.any(-1), place, torch.nan)
            cells = cells.index_copy(1, levels.columns, found)
        is_negative = (self.is_count | self.is_positive) & (cells < 0)
        is_fractional = self.is_count & (cells > cells.floor())
        is_code = self.is_text & ((cells < 0) | (cells >= self.n_levels))
        is_far = (cells < 0) | (cells > self.most)
        is_far = is_far & self.most.isfinite()
        return torch.where(is_negative | is_fractional | is_code | is_far, torch.nan, cells)

    def _bounded(self, values: Tensor) -> Tensor:
        counts = values.clamp_max(MAX_COUNT)
        amounts = values.minimum(exact(MAX_POSITIVE))
        amounts = torch.where(values < exact(MIN_POSITIVE), 0.0, amounts)
        codes = values.clamp_max(MAX_LEVELS - 1)
        found = torch.where(self.is_count, counts, values)
        found = torch.where(self.is_positive, amounts, found)
        return torch.where(self.is_category, codes, found)

    def _scaled(self, numbers: Tensor) -> Tensor:
        logs = torch.where(self.is_logged, numbers, 0.0).div(self.unit).log1p()
        distance = torch.where(self.is_logged, logs, numbers) - self.low
        return _within(_within(distance, MAX_FLOAT) / self.span, MAX_FLOAT)

    def _unscored(self, cells: Tensor) -> Tensor:
        """Return impossible cells as numbers; 0 if they are not numbers."""
        distance = _within(cells - self.unscored_low, MAX_FLOAT) / self.unscored_span
        return torch.where(self.is_text, 0.0, _within(distance, MAX_POSITIVE))


def _within(numbers: Tensor, most: float) -> Tensor:
    return numbers.clamp(exact(-most), exact(most))


def _cells(column: Column, given: dict[tuple[str, str], Tensor]) -> Tensor:
    """Return the cells of a column as numbers, NaN where missing; a category's are its codes."""
    if column.date is not None:
        moments = given[column.source, "date"]
        ahead = given.get((column.source, "offset"))
        local = moments if ahead is None else moments + ahead.long() * MINUTE
        cells = _date_cells(column, column.date, moments.double(), local.double())
        return torch.where(moments == NO_DATE, torch.nan, cells)
    if column.kind is Kind.CATEGORY:
        codes = given[column.source, "category"]
        return torch.where(codes == NO_CODE, torch.nan, codes.double())
    cells = given[column.source, "number"].double()
    for number in numbers_among(column.missing):
        cells = torch.where(cells == number, torch.nan, cells)
    return cells


def _date_cells(column: Column, part: DatePart, moments: Tensor, local: Tensor) -> Tensor:
    """Read microseconds, in UTC or by the clock of the cell, as `DatePart.cells` does."""
    instant, clock = moments / _MICROSECONDS, local / _MICROSECONDS
    match part.aspect:
        case Aspect.DATE:
            start, end, reach = map(exact, (part.start, part.end, part.reach))
            inside = instant.clamp(start, end)
            is_far = (instant - inside).abs() > reach
            cells = (torch.where(is_far, instant, inside) - start) / DAY
        case Aspect.TIME:
            cells = torch.remainder(torch.remainder(clock, DAY) - exact(part.start), DAY) / HOUR
        case _:
            codes = {str(level): float(code) for code, level in enumerate(column.levels)}
            positions = torch.tensor([codes.get(day, float(UNSEEN)) for day in WEEKDAYS]).double()
            weekday = torch.remainder((clock / DAY).floor() + _THURSDAY, 7)
            cells = positions[weekday.long().clamp(0, 6)]
    return cells


def _levels(columns: Sequence[Column]) -> list[Levels]:
    """Return the columns of numbers that have levels, those with few levels apart."""
    found = {
        d: [float(level) for level in column.levels]
        for d, column in enumerate(columns)
        if column.kind is not Kind.CATEGORY and column.coding in (Kind.BINARY, Kind.CATEGORY)
    }
    groups = []
    for is_wide in (False, True):
        some = {d: levels for d, levels in found.items() if (len(levels) > 2) is is_wide}
        if some:
            width = max(1, *map(len, some.values()))
            values = np.full((len(some), width), np.nan)
            for row, levels in enumerate(some.values()):
                values[row, : len(levels)] = levels
            groups.append(Levels(torch.tensor([*some]), torch.from_numpy(values)))
    return groups


def _n_codes(column: Column) -> float:
    return len(column.levels) if column.kind is Kind.CATEGORY else np.inf


def _most(column: Column) -> float:
    """Return the largest possible number of a column of dates; infinity for others."""
    if column.date is None or column.date.aspect is not Aspect.DATE:
        return np.inf
    if column.coding is Kind.CATEGORY:  # its cells have become places among its levels
        return np.inf
    return (column.date.end - column.date.start) / DAY


def _unscored(column: Column) -> tuple[float, float]:
    """Return where impossible numbers of a column are counted from, and in which unit."""
    if column.kind is Kind.BINARY and column.coding in (Kind.BINARY, Kind.CATEGORY):
        low, high = map(float, column.levels)
        return low, min(high - low, MAX_FLOAT)
    return 0.0, 1.0
