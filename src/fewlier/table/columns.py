"""What the columns of a table are: `Kind`, `Column`, and `Schema`, which checks tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from functools import cached_property
from itertools import repeat
from typing import NamedTuple

import numpy as np

from fewlier.arrays import Bools, Floats
from fewlier.errors import UserError
from fewlier.state import State, require
from fewlier.table.aspects import Aspect, DatePart
from fewlier.table.cells import Cells, as_text, check_finite, is_text, number_text
from fewlier.table.dates import Moments, iso_form
from fewlier.table.forms import Unread
from fewlier.table.frame import Table, told
from fewlier.table.numbers import PLAIN, NumberForm

# Counts above this are read as this: float32 cannot tell them from their neighbours anyway.
MAX_COUNT = 1e9
_TRUTH = {word: (word, word.title(), word.upper()) for word in ("true", "false")}
# An error names at most this many columns.
_MAX_NAMED = 5


class Kind(StrEnum):
    """What the values of a column are, and which distribution scores them unless another is named.

    ===========  ====================================  ============================
    kind         values                                scored by
    ===========  ====================================  ============================
    real         any numbers                           a mixture of Gaussians
    binary       two numbers, a low and a high one     a Bernoulli
    count        integers 0, 1, 2, ...                 a Poisson
    positive     numbers >= 0 with a long right tail   mass at zero, a Gamma above
    category     text, one of finitely many            a categorical
    ===========  ====================================  ============================
    """

    REAL = "real"
    BINARY = "binary"
    COUNT = "count"
    POSITIVE = "positive"
    CATEGORY = "category"


CODINGS: Mapping[Kind, frozenset[Kind]] = {
    Kind.REAL: frozenset({Kind.REAL}),
    Kind.BINARY: frozenset({Kind.BINARY, Kind.REAL, Kind.COUNT, Kind.CATEGORY}),
    Kind.COUNT: frozenset({Kind.COUNT, Kind.REAL, Kind.POSITIVE, Kind.CATEGORY}),
    Kind.POSITIVE: frozenset({Kind.POSITIVE, Kind.REAL}),
    Kind.CATEGORY: frozenset({Kind.CATEGORY}),
}
"""The ways in which values of each kind can be encoded and scored by choice of the user."""

USUAL: Mapping[Kind, str] = {
    Kind.REAL: "gaussian_mixture",
    Kind.BINARY: "bernoulli",
    Kind.COUNT: "poisson",
    Kind.POSITIVE: "gamma",
    Kind.CATEGORY: "categorical",
}
"""The distribution that scores each coding, unless the user names another of that coding."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the training table.

    Parameters
    ----------
    name : str
        Its name.
    kind : Kind
        What its values are.
    coding : Kind
        How they are encoded and scored: `kind`, unless the user chose another of `CODINGS`, or
        the column hardly varies and is coded as category.
    levels : tuple of str or tuple of float
        Binary: the low and the high value. Coded as category: every category of the training
        table, most frequent first, ties in alphabetical order; those of a number are its values
        as text. Otherwise empty.
    form : NumberForm
        How its numbers are written where they are text.
    date : DatePart or None
        What it reads of the dates in another column of the user's, if it does.
    conditional : str or None
        Name of the distribution that scores it; None is the usual one of its coding.
    """

    name: str
    kind: Kind
    coding: Kind
    levels: tuple[str, ...] | tuple[float, ...] = ()
    form: NumberForm = PLAIN
    date: DatePart | None = None
    conditional: str | None = None

    @property
    def source(self) -> str:
        """The column of the user's that it is read from."""
        return self.name if self.date is None else self.date.source

    @property
    def scored_by(self) -> str:
        """Name of the distribution that scores it, in `density.conditionals.CONDITIONALS`."""
        return self.conditional or USUAL[self.coding]

    @property
    def hardly_varies(self) -> bool:
        """Whether it holds numbers that are nearly always the same, and so have no unit."""
        return self.kind is Kind.REAL and self.coding is Kind.CATEGORY

    @property
    def is_constant(self) -> bool:
        """Whether training saw a single value."""
        return self.coding is Kind.CATEGORY and len(self.levels) == 1

    @property
    def is_empty(self) -> bool:
        """Whether training saw no value."""
        return self.coding is Kind.CATEGORY and not self.levels

    @property
    def description(self) -> str:
        """What it is in words: its kind, and how it is scored where that is another."""
        if self.is_constant or self.is_empty:
            return "constant" if self.is_constant else "empty"
        if self.hardly_varies:
            return "nearly constant"
        kind, coding = self.kind.value, self.coding.value
        return kind if kind == coding else f"{kind} as {coding}"

    def values(self, cells: Cells) -> Floats:
        """Cells as numbers that the coding can score; NaN where missing or outside its domain.

        Real, count and positive cells stand for themselves; binary and category cells for their
        position among `levels`. A negative or fractional count, a negative positive, a date far
        from all of training, and whatever is not among the levels are outside.

        Parameters
        ----------
        cells : array of shape (n,)
            Text if `kind` is category, else numbers.

        Returns
        -------
        array of float64, shape (n,)
        """
        if self.coding in (Kind.BINARY, Kind.CATEGORY):
            return self._positions(cells)
        values = cells
        for is_impossible in impossible_numbers(self.coding, cells).values():
            values = np.where(is_impossible, np.nan, values)
        return (
            values
            if self.date is None
            else np.where(self.date.is_impossible(cells), np.nan, values)
        )

    def conform(self, cells: Cells) -> tuple[Cells, Unread | None]:
        """Cells as text if the kind is category, else as numbers, read where they are text.

        Cells that are not written as numbers of this column are missing, and returned too. If
        they are most of many, the column must be another one, and a `CellError` says so.
        """
        if self.kind is Kind.CATEGORY:
            return as_text(cells), None
        if not is_text(cells):
            return cells, None
        numbers, unread = self.form.read(self.name, cells)
        return check_finite(self.name, numbers), unread

    def state(self) -> State:
        """Return what a model file holds of it."""
        return State(
            {
                "name": self.name,
                "kind": self.kind.value,
                "coding": self.coding.value,
                "levels": list(self.levels),
                "form": self.form.state(),
                "date": self.date and self.date.state(),
                "conditional": self.conditional,
            }
        )

    @classmethod
    def from_state(cls, state: State) -> Column:
        """Inverse of `state`, checked."""
        kind = Kind(state.text("kind", [*Kind]))
        found = state.optional("date")
        date = None if found is None else DatePart.from_state(found)
        column = cls(
            state.text("name"),
            kind,
            Kind(state.text("coding", [*CODINGS[kind], Kind.CATEGORY])),
            tuple(state.numbers("levels")) if kind is Kind.BINARY else tuple(state.texts("levels")),
            NumberForm.from_state(state.part("form")),
            date,
            state.text("conditional") if state.has("conditional") else None,
        )
        require(column._has_possible_levels(), f"{state.name!r} has levels that it cannot hold.")
        is_weekday = date is not None and date.aspect is Aspect.WEEKDAY
        is_possible = date is None or is_weekday == (kind is Kind.CATEGORY)
        require(is_possible, f"{state.name!r} cannot be read of dates.")
        return column

    def _positions(self, cells: Cells) -> Floats:
        """Position of each cell among the levels, NaN for a cell that is none of them."""
        if is_text(cells):
            position = {level: float(index) for index, level in enumerate(self.levels)}
            for level in self.levels:  # programs do not agree on how to spell a truth value
                for alias in _TRUTH.get(str(level).lower(), ()):
                    position.setdefault(alias, position[level])
            return np.fromiter(map(position.get, cells, repeat(np.nan)), np.float64, len(cells))
        if not self.levels:
            return np.full(len(cells), np.nan)
        levels = np.array(self.levels, dtype=np.float64)  # the values of a number are text
        order = np.argsort(levels)
        found = np.searchsorted(levels, cells, sorter=order).clip(max=len(levels) - 1)
        nearest = order[found]
        return np.where(levels[nearest] == cells, nearest, np.nan)

    def _has_possible_levels(self) -> bool:
        """Whether the levels, all of them text or all numbers, fit the kind and the coding."""
        if self.kind is Kind.BINARY:
            return len(self.levels) == 2 and float(self.levels[0]) < float(self.levels[1])
        if self.kind is Kind.COUNT and self.coding is Kind.CATEGORY:
            fits = bool(self.levels) and all(str(level).isdecimal() for level in self.levels)
        elif self.hardly_varies:
            fits = all(map(_is_number_text, self.levels))
        else:
            fits = self.coding is Kind.CATEGORY or not self.levels
        return fits and len(set(self.levels)) == len(self.levels)


LEFT_OUT = "left out"
"""Stands for the kind of a column that is not learned from."""


class LeftOut(NamedTuple):
    """A column of the training table that is not learned from: its name, its place, and why."""

    name: str
    position: int
    reason: str

    @classmethod
    def from_state(cls, state: State) -> LeftOut:
        """Read what a file holds of it: its fields."""
        return cls(state.text("name"), state.count("position"), state.text("reason"))


@dataclass(frozen=True)
class Schema:
    """The columns a model was trained on, in order.

    Parameters
    ----------
    columns : tuple of Column
        At least one, of different names.
    left_out : tuple of LeftOut
        Columns of the training table that it does not learn from, in order. Tables may have them.
    """

    columns: tuple[Column, ...]
    left_out: tuple[LeftOut, ...] = ()

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return tuple(column.name for column in self.columns)

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the columns of the user's that they are read from, in order."""
        return tuple(dict.fromkeys(column.source for column in self.columns))

    @property
    def given(self) -> tuple[str, ...]:
        """Names of all columns of the training table, in order."""
        names = list(self.sources)
        for left in self.left_out:
            names.insert(left.position, left.name)
        return tuple(names)

    def match(self, table: Table) -> Table:
        """Bring a table into the form of the training table: its columns, their order and type.

        Text in a numeric column is read as numbers in the form of that column; cells in another
        form are missing, and the table's `unread`. In a category column numbers become text, and
        ``3.0`` is ``"3"`` there. A column of dates becomes what is read of it, and the table's
        `written` has how it was written.

        Raises
        ------
        UserError
            For missing or unexpected columns, and for a column of which most is unread.
        """
        sources = self.sources
        known = {*sources, *(left.name for left in self.left_out)}
        absent = [name for name in sources if name not in table.cells]
        unexpected = [name for name in table.names if name not in known]
        if absent or unexpected:
            found = [f"without {listed(absent)}"] if absent else []
            found += [f"with the unexpected {listed(unexpected)}"] if unexpected else []
            raise UserError(
                f"The table must have the {len(sources)} columns of training; got it "
                f"{' and '.join(found)}. Add, drop or rename columns."
            )
        parts = {column.source: column.date for column in self.columns if column.date is not None}
        dates = {
            source: _read_dates(part, table.cells[source], source in table.temporal)
            for source, part in parts.items()
        }
        unread = {name: missed for name, (*_, missed) in dates.items() if missed is not None}
        cells, written = {}, {}
        for column in self.columns:
            if column.date is None:
                cells[column.name], missed = column.conform(table.cells[column.name])
                unread |= {} if missed is None else {column.name: missed}
            else:
                texts, moments, _ = dates[column.source]
                cells[column.name] = column.date.cells(moments)
                written[column.name] = column.date.written(texts, moments)
        return Table(cells, unread=unread, written=written)

    def state(self) -> State:
        """Return what a model file holds of it."""
        columns = [column.state() for column in self.columns]
        return State({"columns": columns, "left_out": [left._asdict() for left in self.left_out]})

    @classmethod
    def from_state(cls, state: State) -> Schema:
        """Inverse of `state`, checked."""
        columns = tuple(map(Column.from_state, state.parts("columns")))
        schema = cls(columns, tuple(map(LeftOut.from_state, state.parts("left_out"))))
        require(len(columns) > 0, "it has no columns.")
        for names in (schema.names, schema.given):
            require(len(set(names)) == len(names), "two of its columns have the same name.")
        return schema


def impossible_numbers(coding: Kind, numbers: Cells) -> dict[str, Bools]:
    """Mark the numbers that a numeric coding cannot score, by what is wrong with them."""
    impossible = {}
    if coding in (Kind.COUNT, Kind.POSITIVE):
        impossible["negative"] = numbers < 0
    if coding is Kind.COUNT:
        impossible["fractional"] = numbers > np.floor(numbers)
    return impossible


def _is_number_text(text: object) -> bool:
    """Whether a text is how `number_text` writes a finite number."""
    try:
        number = float(str(text))
    except ValueError:
        return False
    return math.isfinite(number) and number_text(number) == text


def _read_dates(
    part: DatePart, cells: Cells, is_typed: bool
) -> tuple[Cells, Moments, Unread | None]:
    """Read a column of dates: as text, as moments, and what could not be read.

    Dates that are no text in the user's table are not in the form of the column, and need not be.
    """
    texts = as_text(cells)
    form = iso_form(texts) if is_typed else None
    is_other = form is None or form.has_day != part.form.has_day
    moments, unread = (part.form if is_other or form is None else form).read(part.source, texts)
    return texts, moments, unread


def listed(names: Iterable[str]) -> str:
    """Names in quotes, the first few of them."""
    return told(map(repr, names), _MAX_NAMED)


def choices(wrong: str, names: Iterable[str]) -> str:
    """Say which name was meant, if one is close, or which there are."""
    names = list(names)
    close = get_close_matches(wrong, names, n=1)
    return f"Did you mean {close[0]!r}?" if close else f"Choose from {listed(names)}."
