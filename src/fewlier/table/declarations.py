"""What columns of text hold: as the user declares it, or in the form that is recognised."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, NamedTuple, final

import numpy as np

from fewlier.errors import UserError, check_parameter, declaration, noting, parameter
from fewlier.process.escape import suggest
from fewlier.table import dates, numbers
from fewlier.table.cells import cell_text, is_text
from fewlier.table.columns import Kind
from fewlier.table.dates import DateForm
from fewlier.table.frame import Table
from fewlier.table.numbers import NumberForm
from fewlier.table.text_forms import Recognised

_MAX = float(np.finfo(np.float64).max)
IGNORE = "ignore"
"""What declares that a column is to be left out."""


class Declared(NamedTuple):
    """What the user said of a column; all of it may be absent.

    `coding` is how it is to be scored if it can be; `missing` stands for its missing cells.
    """

    kind: Kind | None = None
    form: NumberForm | DateForm | None = None
    is_ignored: bool = False
    coding: Kind | None = None
    missing: tuple[str, ...] = ()

    @property
    def says_what_it_holds(self) -> bool:
        """Whether nothing is left to recognise in the text of the column."""
        return self.is_ignored or self.kind is Kind.CATEGORY or self.form is not None


@final
@dataclass(frozen=True)
class StandIns:
    """What stands for a missing cell, beside the usual spellings: texts, ``-200`` for -200.0.

    Parameters
    ----------
    everywhere : tuple of str
        In every column.
    by_column : mapping of str to tuple of str
        In some columns.
    """

    everywhere: tuple[str, ...] = ()
    by_column: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def read(cls, said: object) -> StandIns:
        """Read a value, several, or a mapping of columns to either; None stands for nothing."""
        if not isinstance(said, Mapping):
            return cls(_values(said))
        return cls((), {str(name): _values(values) for name, values in said.items()})

    def of(self, name: str) -> tuple[str, ...]:
        """Return what stands for a missing cell in a column."""
        return self.everywhere + self.by_column.get(name, ())

    def check(self, names: Collection[str], problems: dict[str, UserError]) -> None:
        """Note the columns that a table does not have."""
        for name in self.by_column:
            if name not in names:
                problems[name] = UserError(
                    f"{parameter('missing', self.by_column[name][0], name)} must name a column of "
                    f"the table; got {name!r}. {suggest(name, names)}",
                    column=name,
                )

    def state(self) -> list[list[str]]:
        """Return what a model file holds of it: pairs of a column, or nothing, and a value."""
        pairs = [["", value] for value in self.everywhere]
        return pairs + [[name, value] for name, own in self.by_column.items() for value in own]

    @staticmethod
    def said(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]] | list[str] | None:
        """Return what `read` takes, given pairs as `state` has them."""
        found: dict[str, list[str]] = {}
        for name, value in pairs:
            found.setdefault(name, []).append(value)
        return found.get("", found or None)


NONE_STANDS_IN = StandIns()


def _values(said: object) -> tuple[str, ...]:
    if said is None:
        return ()
    is_several = isinstance(said, Iterable) and not isinstance(said, str)
    values: list[Any] = [*said] if is_several else [said]  # type: ignore[misc]
    is_known = all(isinstance(v, str) or (_is_number(v) and abs(v) <= _MAX) for v in values)
    expected = "numbers or texts that stand for a missing cell, or a mapping of columns to these"
    check_parameter("missing", said, is_known, expected)
    return tuple(cell_text(float(v) if _is_number(v) else v) for v in values)


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def read_declarations(
    names: Collection[str],
    columns: Mapping[str, str] | str,
    stand_ins: StandIns,
    problems: dict[str, UserError],
) -> dict[str, Declared]:
    """Read what is declared of each of the named columns.

    A kind alone is the coding of all that can take it. `problems` takes what cannot be meant.
    """
    everywhere = Declared()
    if isinstance(columns, str):
        everywhere, columns = Declared(coding=read_kind(columns, "Every column")), {}
    declared = dict.fromkeys(names, everywhere)
    for name, said in columns.items():
        with noting(problems, name):
            if name not in names:
                raise UserError(
                    f"{declaration(name, said)} must name a column of the table; got {name!r}. "
                    f"{suggest(name, names)}",
                    column=name,
                )
            declared[name] = _read(name, said)
    stand_ins.check(names, problems)
    return {name: said._replace(missing=stand_ins.of(name)) for name, said in declared.items()}


def _read(name: str, said: object) -> Declared:
    """Read a kind, an example of a number, ``kind:example``, or the pattern of a date."""
    if said == IGNORE:
        return Declared(is_ignored=True)
    text, subject = str(said), f"Column {name!r}"
    kind, _, example = text.partition(":")
    if ":" not in text and any(map(str.isdigit, text)):
        kind, example = "", text
    try:
        if dates.is_pattern(text):
            return Declared(form=DateForm.of_pattern(text))
        form = NumberForm.of_example(example) if example else None
    except UserError as error:
        raise UserError(f"{subject} is declared {said!r}. {error}", column=name) from error
    return Declared(read_kind(kind, subject) if kind else None, form)


def read_kind(kind: str, subject: str) -> Kind:
    """Return the kind of this name."""
    if kind not in list(Kind):
        names = ", ".join(repr(choice.value) for choice in Kind)
        raise UserError(
            f"{subject} must be declared one of {names}, {IGNORE!r}, or by an example of its "
            f"numbers, such as '1.234,5'; got {kind!r}."
        )
    return Kind(kind)


def find_forms(
    table: Table, declared: Mapping[str, Declared], problems: dict[str, UserError]
) -> dict[str, NumberForm | DateForm]:
    """Return the form of each column that holds numbers or dates, as declared or recognised.

    `problems` takes the columns that may be read in two ways. Where a mark in numbers may stand
    before a fraction or between thousands, other columns decide, if all of them have one decimal
    mark.
    """
    forms = {name: said.form for name, said in declared.items() if said.form is not None}
    found: dict[str, Recognised[NumberForm]] = {}
    for name, cells in table.cells.items():
        is_settled = declared.get(name, Declared()).says_what_it_holds or name in problems
        if is_settled or not is_text(cells) or name in table.categorical:
            continue
        if date := dates.recognise(cells):
            forms[name] = date.form
            if date.other:
                question = f"which day {date.example!r} is, because no day is above 12"
                problems[name] = _ambiguous(name, date, question)
        elif number := numbers.recognise(cells):
            found[name] = number
    for name in table.temporal.keys() & forms:  # by this type they are written as in ISO 8601
        forms[name] = dates.iso_form(table.cells[name]) or forms[name]
    return forms | _settle(found, problems)


def _settle(
    found: Mapping[str, Recognised[NumberForm]], problems: dict[str, UserError]
) -> dict[str, NumberForm]:
    """Decide between two forms of numbers by the decimal mark that other columns show."""
    forms = {}
    marks = {number.decimal for number in found.values()} - {""}
    for name, number in found.items():
        forms[name] = number.form
        if number.other and len(marks) == 1:
            forms[name] = number.form if number.form.decimal in marks else number.other
        elif number.other:
            question = f"whether {number.example!r} has a fraction or thousands"
            problems[name] = _ambiguous(name, number, question)
    return forms


def _ambiguous(name: str, found: Recognised[Any], question: str) -> UserError:
    readings = str(found.form), str(found.other)
    return UserError(
        f"Column {name!r} does not show {question}",
        column=name,
        remedy="Declare how it is written: "
        f"{' or '.join(declaration(name, reading) for reading in readings)}.",
        readings=readings,
    )
