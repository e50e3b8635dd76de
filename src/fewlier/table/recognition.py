"""What the text columns of a training table hold: dates or numbers in some form, or categories."""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from fewlier.arrays import Floats
from fewlier.errors import CellError, FormError, UserError, noting
from fewlier.table import dates
from fewlier.table.cells import Cells, as_text, is_text, missing
from fewlier.table.columns import first_unread, read_numbers
from fewlier.table.dates import DateForm, Moments, iso_form
from fewlier.table.frame import Table, Unread
from fewlier.table.numbers import MOSTLY, NumberForm, Recognised, recognise


class Read(NamedTuple):
    """A table whose text columns are numbers where they hold some, and the forms of these.

    `dates` has the form and the moments of columns of dates or times, whose cells stay text.
    """

    table: Table
    forms: dict[str, NumberForm]
    dates: dict[str, tuple[DateForm, Moments]]


def read_texts(
    table: Table,
    declared: Mapping[str, NumberForm | DateForm],
    as_texts: set[str],
    problems: dict[str, UserError],
) -> Read:
    """Read the text columns of a training table as what they hold.

    Parameters
    ----------
    table : Table
        The training rows.
    declared : mapping of str to NumberForm or DateForm
        How the numbers or dates of some columns are written.
    as_texts : set of str
        Columns that hold categories, whatever they look like.
    problems : dict of str to UserError
        Takes the columns whose numbers or dates may be read in two ways, or not as declared.
    """
    days = {name: form for name, form in declared.items() if isinstance(form, DateForm)}
    numeric = {name: form for name, form in declared.items() if isinstance(form, NumberForm)}
    kept = as_texts | table.categorical
    texts = {n: cells for n, cells in table.cells.items() if is_text(cells) and n not in kept}
    unknown = [name for name in texts if name not in declared]
    days |= _date_forms({name: texts[name] for name in unknown}, problems)
    found = {n: recognise(texts[n]) for n in unknown if n not in days and n not in problems}
    forms = numeric | _settled(found, problems)
    numbers: dict[str, Cells] = {}
    for name in (name for name in texts if name in forms):
        with noting(problems, name):
            numbers[name] = _numbers(name, texts[name], forms[name])
    moments: dict[str, tuple[DateForm, Moments]] = {}
    for name, form in days.items():
        with noting(problems, name):
            typed = iso_form(table.cells[name]) if name in table.temporal else None
            moments[name] = typed or form, _moments(name, table.cells[name], typed or form)
    return Read(replace(table, cells=table.cells | numbers), forms, moments)


def _date_forms(texts: Mapping[str, Cells], problems: dict[str, UserError]) -> dict[str, DateForm]:
    """Return the forms of columns that hold dates or times."""
    forms: dict[str, DateForm] = {}
    for name, cells in texts.items():
        found = dates.recognise(cells)
        if found is not None and found.other is not None:
            problems[name] = FormError(
                f"Column {name!r} must say which day {found.example!r} is: nowhere does it have a "
                "day above 12. Declare its form:",
                name,
                (str(found.form), str(found.other)),
            )
        elif found is not None:
            forms[name] = found.form
    return forms


def _moments(name: str, cells: Cells, form: DateForm) -> Moments:
    """Read dates in a form; if it was declared, too many cells may be in another."""
    texts = as_text(cells)
    moments, is_unread = form.parse(texts)
    _check_few(name, f"dates written as {form}", first_unread(texts, is_unread), texts)
    return moments


def _numbers(name: str, cells: Cells, form: NumberForm) -> Floats:
    """Read numbers in a form; if it was declared, too many cells may be in another."""
    numbers, unread = read_numbers(name, cells, form)
    _check_few(name, f"numbers written like {form}", unread, cells)
    return numbers


def _check_few(name: str, what: str, unread: Unread | None, cells: Cells) -> None:
    n_texts = np.count_nonzero(~missing(cells))
    if unread is not None and unread.n > (1 - MOSTLY) * n_texts:
        raise CellError(
            f"Column {name!r} must hold {what}; got {unread.n} texts of {n_texts} that are not, "
            f"such as {unread.text!r}",
            unread.row,
            "Declare another form, or 'category', or correct them.",
        )


def _settled(
    found: dict[str, Recognised | None], problems: dict[str, UserError]
) -> dict[str, NumberForm]:
    """Return the forms of columns that have one; the decimal mark of one may settle another's."""
    numbers = {name: recognised for name, recognised in found.items() if recognised is not None}
    marks = {recognised.decimal for recognised in numbers.values()} - {""}
    mark = marks.pop() if len(marks) == 1 else ""
    forms = {}
    for name, recognised in numbers.items():
        settled = recognised.settled(mark)
        if settled.other is None:
            forms[name] = settled.form
        else:
            problems[name] = _ambiguous(name, settled)
    return forms


def _ambiguous(name: str, found: Recognised) -> FormError:
    return FormError(
        f"Column {name!r} must say what the mark in {found.example!r} is; it may stand before a "
        "fraction or between thousands. Declare how its numbers are written by an example:",
        name,
        (str(found.form), str(found.other)),
    )
