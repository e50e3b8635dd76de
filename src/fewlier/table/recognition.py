"""What the text columns of a training table hold: dates or numbers in some form, or categories."""

from collections.abc import Mapping
from typing import Any

from fewlier.errors import FormError, UserError
from fewlier.table import dates, numbers
from fewlier.table.cells import is_text
from fewlier.table.dates import DateForm, iso_form
from fewlier.table.declarations import Declared
from fewlier.table.forms import Recognised
from fewlier.table.frame import Table
from fewlier.table.numbers import NumberForm


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
        is_open = is_text(cells) and name not in table.categorical and name not in problems
        if not is_open or declared.get(name, Declared()).says_what_it_holds:
            continue
        if (date := dates.recognise(cells)) is not None:
            forms[name] = date.form
            if date.other is not None:
                problems[name] = _ambiguous(
                    name,
                    date,
                    f"which day {date.example!r} is: nowhere does it have a day above 12. Declare "
                    "its form:",
                )
        elif (number := numbers.recognise(cells)) is not None:
            found[name] = number
    for name in table.temporal & set(forms):  # by this type they are written as in ISO 8601
        forms[name] = iso_form(table.cells[name]) or forms[name]
    return forms | _settle(found, problems)


def _settle(
    found: Mapping[str, Recognised[NumberForm]], problems: dict[str, UserError]
) -> dict[str, NumberForm]:
    """Decide between two forms of numbers by the decimal mark that other columns show."""
    marks = {number.decimal for number in found.values()} - {""}
    forms = {}
    for name, number in found.items():
        forms[name] = number.form
        if number.other is not None and len(marks) == 1:
            forms[name] = number.form if number.form.decimal in marks else number.other
        elif number.other is not None:
            problems[name] = _ambiguous(
                name,
                number,
                f"what the mark in {number.example!r} is; it may stand before a fraction or "
                "between thousands. Declare how its numbers are written by an example:",
            )
    return forms


def _ambiguous(name: str, found: Recognised[Any], question: str) -> FormError:
    forms = str(found.form), str(found.other)
    return FormError(f"Column {name!r} must say {question}", name, forms)
