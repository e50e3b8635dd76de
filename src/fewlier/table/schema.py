"""`Schema`: the columns that a model was trained on, and how other tables are matched to them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import NamedTuple, cast

from fewlier.errors import UserError
from fewlier.modelfile.state import State, require
from fewlier.process.escape import list_names
from fewlier.table.cells import Cells, as_text, without
from fewlier.table.columns import Column
from fewlier.table.date_parts import DatePart
from fewlier.table.dates import Moments, in_zone, iso_form
from fewlier.table.frame import Table
from fewlier.table.text_forms import Unread

LEFT_OUT = "left out"
"""Stands for the kind of a column that the model does not learn from."""


class LeftOut(NamedTuple):
    """A column of the training table that the model does not learn from: its place, and why."""

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
        Other columns of the training table, in order. Tables may have them or not.
    """

    columns: tuple[Column, ...]
    left_out: tuple[LeftOut, ...] = ()

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return tuple(column.name for column in self.columns)

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the user's columns that they are read from, in order."""
        return tuple(dict.fromkeys(column.source for column in self.columns))

    @property
    def given(self) -> tuple[str, ...]:
        """Names of all columns of the training table, in order."""
        names = list(self.sources)
        for left in self.left_out:
            names.insert(left.position, left.name)
        return tuple(names)

    def match(self, table: Table) -> Table:
        """Return a table as the training table was: its columns, in order, with their types.

        Text in a numeric column is read as numbers in the form of that column; cells in another
        form become missing, and `unread` counts them. In a category column numbers become text,
        ``3.0`` as ``"3"``. A column of dates becomes the columns that are read from it, and
        `written` keeps how the dates were written.

        Raises
        ------
        UserError
            For missing or unexpected columns, and for columns with mostly unread cells.
        """
        self.check_names(table.names)
        parts = {column.source: column for column in self.columns if column.date}
        dates = {name: _read_dates(column, table) for name, column in parts.items()}
        cells, unread, written = {}, {}, {}
        for column in self.columns:
            if column.date is None:
                cells[column.name], missed = column.conform(table.cells[column.name])
            else:
                texts, moments, missed = dates[column.source]
                cells[column.name] = column.date.cells(moments)
                written[column.name] = column.date.written(texts, moments)
            if missed is not None:
                unread[column.source] = missed
        return Table(cells, unread=unread, written=written)

    def check_names(self, names: Collection[str]) -> None:
        """Refuse a table whose columns have these names: it lacks some, or has unknown ones."""
        sources = self.sources
        known = {*sources, *(left.name for left in self.left_out)}
        absent = [name for name in sources if name not in names]
        unexpected = [name for name in names if name not in known]
        if absent or unexpected:
            found = {"without": absent, "with the unexpected": unexpected}
            words = " and ".join(f"{w} {list_names(names)}" for w, names in found.items() if names)
            raise UserError(
                f"The table must have the {len(sources)} columns of training; got one {words}. "
                f"{_meant(absent, unexpected)}Add, drop or rename columns."
            )

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


def _meant(absent: Collection[str], unexpected: Collection[str]) -> str:
    """Say which absent column the first unexpected one was meant to be, if it looks like one."""
    folded = {name.casefold(): name for name in absent}
    for name in unexpected:
        if close := get_close_matches(name.casefold(), folded, n=1):
            return f"{name!r}: did you mean {folded[close[0]]!r}? "
    return ""


def _read_dates(column: Column, table: Table) -> tuple[Cells, Moments, Unread | None]:
    """Read a column of dates: as text, as moments, and what could not be read.

    Dates that have a type of their own in the user's table need not be in the form of the column,
    nor in its time zone.
    """
    part = cast(DatePart, column.date)
    source, form = column.source, part.form
    texts = without(as_text(table.cells[source]), column.missing)
    own = iso_form(texts) if source in table.temporal else None
    form = own if own is not None and own.has_day == form.has_day else form
    if part.zone and table.temporal.get(source, "") not in ("", part.zone):
        texts = in_zone(texts, part.zone)
    return texts, *form.read(source, texts)
