"""What a column of a table is: its `Kind`, and `Column`, which reads cells of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from itertools import repeat

import numpy as np

from fewlier.modelfile.state import State, require
from fewlier.table.arrays import Bools, Floats
from fewlier.table.cells import Cells, as_text, check_finite, is_text, number_text, without
from fewlier.table.date_parts import Aspect, DatePart
from fewlier.table.numbers import PLAIN, NumberForm
from fewlier.table.text_forms import Unread

# Counts are cut at this: float32 does not distinguish larger integers from their neighbours.
MAX_COUNT = 1e9
_TRUTH = {word: (word, word.title(), word.upper()) for word in ("true", "false")}


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
        table as text, most frequent first, ties in alphabetical order. Otherwise empty.
    form : NumberForm
        How its numbers are written where they are text.
    date : DatePart or None
        What it reads from a column of dates, if it does.
    conditional : str or None
        Name of the distribution that scores it; None is the usual one of its coding.
    missing : tuple of str
        What stands for a missing cell in it, beside `MISSING`.
    """

    name: str
    kind: Kind
    coding: Kind
    levels: tuple[str, ...] | tuple[float, ...] = ()
    form: NumberForm = PLAIN
    date: DatePart | None = None
    conditional: str | None = None
    missing: tuple[str, ...] = ()

    @property
    def source(self) -> str:
        """The user's column that it is read from."""
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
        """Return cells as numbers that the coding can score; NaN where missing or impossible.

        Real, count and positive cells are their own value; binary and category cells are their
        position among `levels`. Impossible are a negative or fractional count, a negative amount,
        a date far from all of training, and whatever is not among the levels.

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
        impossible = [*impossible_numbers(self.coding, cells).values()]
        impossible += [self.date.is_impossible(cells)] if self.date else []
        return np.where(np.any(impossible, axis=0), np.nan, cells) if impossible else cells

    def conform(self, cells: Cells) -> tuple[Cells, Unread | None]:
        """Return cells as text if the kind is category, else as numbers, read where they are text.

        Text in another form than the column's is missing, and counted; see `Form.read`.
        """
        cells = without(cells, self.missing)
        if self.kind is Kind.CATEGORY:
            return as_text(cells), None
        if not is_text(cells):
            return cells, None
        numbers, unread = self.form.read(self.name, cells)
        return without(check_finite(self.name, numbers), self.missing), unread

    def state(self) -> State:
        """Return what a model file holds of it."""
        kinds = {"kind": self.kind.value, "coding": self.coding.value}
        lists = {"levels": list(self.levels), "missing": list(self.missing)}
        parts = {"form": self.form.state(), "date": self.date and self.date.state()}
        return State(asdict(self) | kinds | lists | parts)

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
            tuple(state.texts("missing")),
        )
        require(column._has_possible_levels(), f"{state.name!r} has levels that it cannot hold.")
        is_weekday = date is not None and date.aspect is Aspect.WEEKDAY
        is_possible = date is None or is_weekday == (kind is Kind.CATEGORY)
        require(is_possible, f"{state.name!r} cannot be read from dates.")
        return column

    def _positions(self, cells: Cells) -> Floats:
        """Return the position of each cell among the levels; NaN for other cells."""
        if is_text(cells):
            position = {level: float(index) for index, level in enumerate(self.levels)}
            for level in self.levels:  # programs do not agree on how to spell a truth value
                for alias in _TRUTH.get(str(level).lower(), ()):
                    position.setdefault(alias, position[level])
            return np.fromiter(map(position.get, cells, repeat(np.nan)), np.float64, len(cells))
        levels = np.array([*self.levels, np.nan], np.float64)  # the values of a number are text
        order = np.argsort(levels)
        nearest = order[np.searchsorted(levels, cells, sorter=order).clip(max=len(self.levels))]
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
