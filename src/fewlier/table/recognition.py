"""What the text columns of a training table hold: numbers in some form, or categories."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from fewlier.errors import CellError, UserError
from fewlier.table.columns import read_numbers
from fewlier.table.frame import Cells, Floats, Table, is_text, missing
from fewlier.table.numbers import MOSTLY, NumberForm, Recognised, recognise


class Read(NamedTuple):
    """A table whose text columns are numbers where they hold some, and the forms of these."""

    table: Table
    forms: dict[str, NumberForm]


def read_texts(table: Table, declared: Mapping[str, NumberForm], as_texts: set[str]) -> Read:
    """Read the text columns of a training table as what they hold.

    Parameters
    ----------
    table : Table
        The training rows.
    declared : mapping of str to NumberForm
        How the numbers of some columns are written.
    as_texts : set of str
        Columns that hold categories, whatever they look like.

    Raises
    ------
    UserError
        For columns whose numbers may be read in two ways.
    """
    kept = as_texts | table.categorical
    texts = {n: cells for n, cells in table.cells.items() if is_text(cells) and n not in kept}
    found = {name: recognise(cells) for name, cells in texts.items() if name not in declared}
    forms = dict(declared) | _settled(found)
    numbers = {name: _numbers(name, texts[name], forms[name]) for name in texts if name in forms}
    return Read(Table(table.cells | numbers, table.categorical), forms)


def _numbers(name: str, cells: Cells, form: NumberForm) -> Floats:
    """Read numbers in a form; if it was declared, too many cells may be in another."""
    numbers, unread = read_numbers(name, cells, form)
    n_texts = np.count_nonzero(~missing(cells))
    if unread is not None and unread.n > (1 - MOSTLY) * n_texts:
        raise CellError(
            f"Column {name!r} must hold numbers written like {form}; got {unread.n} texts of "
            f"{n_texts} that are not, such as {unread.text!r}",
            unread.row,
            "Declare another form, or 'category', or correct them.",
        )
    return numbers


def _settled(found: dict[str, Recognised | None]) -> dict[str, NumberForm]:
    """Return the forms of columns that have one; the decimal mark of one may settle another's."""
    numbers = {name: recognised for name, recognised in found.items() if recognised is not None}
    marks = {recognised.decimal for recognised in numbers.values()} - {""}
    mark = marks.pop() if len(marks) == 1 else ""
    forms = {}
    for name, recognised in numbers.items():
        settled = recognised.settled(mark)
        if settled.other is not None:
            raise _ambiguous(name, settled)
        forms[name] = settled.form
    return forms


def _ambiguous(name: str, found: Recognised) -> UserError:
    first, second = (form for form in (found.form, found.other) if form is not None)
    return UserError(
        f"Column {name!r} must say what the mark in {found.example!r} is; it may stand before a "
        f"fraction or between thousands. Declare how its numbers are written by an example: "
        f"--column '{name}={first}' or --column '{name}={second}'."
    )
