"""Numbers as people write them: which form a column has, and what its cells are then."""

import numpy as np
import pytest
from growth import growth
from hypothesis import given
from hypothesis import strategies as st
from stored import read, record_of, reread

from fewlier.errors import FormatError, UserError
from fewlier.table import Table
from fewlier.table.declarations import find_forms
from fewlier.table.numbers import PLAIN, NumberForm, recognise


def column(*cells):
    return np.array(cells, dtype=object)


def numbers(*cells):
    """Return the numbers of a column in the form that it has; None where they are unread."""
    found = recognise(column(*cells))
    assert found is not None
    assert found.other is None
    read, unread = found.form.parse(column(*cells))
    return [None if is_unread else number for number, is_unread in zip(read, unread, strict=True)]


FORMS = {  # cells, what they are, and how 1200.50 is written so
    "plain": (["2", "-1.50", "+3", ".5", "5."], [2, -1.5, 3, 0.5, 5], "1200.50"),
    "exponents": (["1e5", "2.5E-3"], [1e5, 0.0025], "1200.50"),
    "dollars": (["$1,200", "$950.5", "-$3"], [1200, 950.5, -3], "$1,200.50"),
    "dollars without a fraction": (["$1,200", "$12,000"], [1200, 12000], "$1,200.50"),
    "euros": (["1.200,50 €", "3,5 €"], [1200.5, 3.5], "1.200,50 €"),
    "euros in front": (["€ 1.200", "€90"], [1200, 90], "€1.200,50"),
    "francs": (["CHF 1'200.50", "CHF 3"], [1200.5, 3], "CHF1'200.50"),
    "percent": (["12 %", "1.5%"], [12, 1.5], "12.50 %"),
    "parentheses": (["(300)", "200", "(1,200.5)"], [-300, 200, -1200.5], "(1,200.50)"),
    "thousands": (["1,200", "300"], [1200, 300], "1,200.50"),
    "millions": (["1.234.567", "1.234"], [1234567, 1234], "1.234,50".replace("234", "200")),
    "lakhs": (["1,00,000", "12,34,567.5"], [100000, 1234567.5], "1,200.50"),
    "spaces": (["1 200,5", "12 300", "7\u202f000"], [1200.5, 12300, 7000], "1 200,50"),
    "decimal commas": (["1,5", "-2,25", "3"], [1.5, -2.25, 3], "1200,50"),
    "kilograms": (["12 kg", "13.5kg", "7"], [12, 13.5, 7], "1200.50 kg"),
    "energies": (["5 eV", "1e3 eV"], [5, 1000], "1200.50 eV"),
    "a true minus": (["\u22125", "3"], [-5, 3], "1200.50"),
}


@pytest.mark.parametrize(("cells", "expected", "written"), FORMS.values(), ids=FORMS)
def test_the_form_of_a_column_is_recognised(cells, expected, written):
    assert numbers(*cells) == expected
    assert str(recognise(column(*cells)).form) == written


@pytest.mark.parametrize(
    "cells",
    [
        ["a", "b"],
        ["A12", "B3"],
        ["v3.0", "v4.0"],
        ["user7", "user8"],
        ["10.0.0.1", "10.0.0.27"],
        ["1_000", "2_000"],
        ["0x10", "0x20"],
        ["--1", "--2"],
        ["12ab34", "34cd12"],
        ["1st", "2nd", "3rd", "4th"],
        ["12 kg", "13 lb"],
        ["18-25", "26-35"],
        ["555 123 4567", "555 765 4321"],
        ["01234", "80331"],
        ["1", "x"],
        [None, None],
    ],
    ids=str,
)
def test_what_is_no_column_of_numbers_is_left_as_text(cells):
    assert recognise(column(*cells)) is None


def test_slips_among_numbers_are_unread():
    assert numbers(*["7"] * 19, "?") == [7] * 19 + [None]
    assert numbers(*["7 %"] * 19, "0.07") == [7] * 19 + [None]  # 0.07 or 7 percent?
    assert numbers(*["$7"] * 19, "7 €") == [7] * 19 + [None]
    assert numbers(*["7"] * 19, "7 kg") == [7] * 19 + [None]  # a unit of one cell is a slip


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1 vehicle", "2 vehicles", "3 vehicles"], [1, 2, 3]),
        (["1 box", "2 boxes", "7"], [1, 2, 7]),
        (["2 minutes", "3 minutes", "1 minute"], [2, 3, 1]),
        ([">100", "7", "≥ 90", "<= 1", "8"], [100, 7, 90, 1, 8]),
    ],
)
def test_plurals_and_bounds_are_numbers(cells, expected):
    assert numbers(*cells * 5) == expected * 5


@pytest.mark.parametrize(
    "cells",
    [
        ["1 vehicle"] * 90 + ["2 vehicles"] * 9 + ["3 to 4"],
        ["1 vehicle"] * 99 + ["more than 8"],
        ["<=50K", ">50K"],
        ["5 m", "7 ms", "3 m", "4 ms"] * 5,
    ],
)
def test_levels_that_begin_with_numbers_are_text(cells):
    assert recognise(column(*cells)) is None


@pytest.mark.parametrize("cells", [["1.200"], ["1.200", "12.300", "-7"], ["1,200", "345,678"]])
def test_a_mark_before_three_digits_throughout_is_ambiguous(cells):
    found = recognise(column(*cells))
    assert found.decimal == ""
    point, comma = found.form.parse(column(*cells))[0], found.other.parse(column(*cells))[0]
    assert point[0] == 1.2
    assert comma[0] == 1200


@pytest.mark.parametrize(
    "more", ["0.123", "1234.567", "1200", "1.2", "1.2345", "1e3", "-0.001"], ids=str
)
def test_one_cell_that_cannot_have_thousands_settles_it(more):
    found = recognise(column("1.200", "12.345", more))
    assert (found.form, found.decimal, found.other) == (PLAIN, ".", None)


@pytest.mark.parametrize(("other", "form"), [("0.5", "1200.50"), ("0,5", "1.200,50")])
def test_the_decimal_mark_of_other_columns_settles_it(other, form):
    table = Table({"mark": column("1.200", "12.345"), "other": column(other, other)})
    problems = {}
    assert str(find_forms(table, {}, problems)["mark"]) == form
    assert not problems
    other = Table({"mark": column("1.200"), "one": column("0.5"), "two": column("0,5")})
    find_forms(other, {}, problems)
    assert [*problems] == ["mark"]


@pytest.mark.parametrize(
    ("example", "form"),
    [
        ("1234.5", PLAIN),
        ("1.234,5", NumberForm(",", ".")),
        ("0,5", NumberForm(",")),
        ("$1,200", NumberForm(".", ",", prefix="$")),
        ("(1 234,5 kg)", NumberForm(",", " ", suffix="kg", parentheses=True)),
    ],
)
def test_an_example_declares_a_form(example, form):
    assert NumberForm.of_example(example) == form
    assert NumberForm.of_example(str(form)) == form


@pytest.mark.parametrize(
    ("example", "problem"),
    [("1.234", "may be 1.234 or 1234"), ("1.200", "may be 1.2 or 1200"), ("x", "is not one")],
)
def test_an_example_must_be_clear(example, problem):
    with pytest.raises(UserError, match=f"{example!r} .*{problem}"):
        NumberForm.of_example(example)


forms = st.sampled_from([(".", ""), (",", ""), (".", ","), (",", "."), (".", "'"), (",", " ")])


@given(
    forms,
    st.sampled_from(["", "$", "US$", "EUR"]),
    st.sampled_from(["", "%", "kg", "m/s", "°C"]),
    st.booleans(),
    st.lists(st.floats(-1e9, 1e9).map(lambda x: round(x, 2)), min_size=1),
)
def test_numbers_written_in_a_form_come_back(marks, prefix, suffix, parentheses, values):
    form = NumberForm(*marks, prefix, suffix, parentheses)

    def written(value):
        text = f"{abs(value):,.2f}".replace(",", "_").replace(".", form.decimal)
        text = f"{prefix}{text.replace('_', form.group)} {suffix}".strip()
        return text if value >= 0 else f"({text})" if parentheses else f"-{text}"

    read, unread = form.parse(column(*map(written, values)))
    assert read.tolist() == values
    assert not unread.any()
    assert reread(form) == form


@pytest.mark.parametrize(
    "change",
    [
        {"decimal": ";"},
        {"decimal": 1},
        {"group": "."},
        {"group": "''"},
        {"prefix": "v"},
        {"suffix": "(" * 3},
        {"suffix": None},
        {"parentheses": 1},
        {"more": ""},
    ],
    ids=str,
)
def test_a_form_that_cannot_have_been_written_is_refused(change):
    with pytest.raises(FormatError, match="one"):
        read(NumberForm, record_of(PLAIN) | change)


HOSTILE = ["-{}x", "({}x", "${}x", "-$ {}-{}x", "1{}x", "1{}kg{}x", "1,{}x"]


@pytest.mark.parametrize("cell", HOSTILE)
@pytest.mark.parametrize(
    "form",
    [
        PLAIN,
        NumberForm(",", " ", prefix="$", suffix="kg", parentheses=True),
        NumberForm(".", ",", suffix="%"),
    ],
    ids=str,
)
def test_a_cell_of_many_spaces_is_read_in_time_that_grows_with_its_length(form, cell):
    # Ten times as long; where spaces can be shared out in two ways, it would take a hundred times.
    few, many = (column(cell.replace("{}", " " * n)) for n in (60, 600))
    assert form.parse(many)[1].all()
    assert growth(form.parse, few, many) < 30


@pytest.mark.parametrize("cell", [*HOSTILE, "1{}1{}x", "1e{}1x"])
def test_a_column_of_many_spaces_is_recognised_in_time_that_grows_with_its_length(cell):
    few, many = (column("$1 kg", cell.replace("{}", " " * n)) for n in (60, 600))
    assert growth(recognise, few, many) < 30
