"""Tables as text: how a header is read, and what cells mean."""

import pyarrow as pa
import pytest

from fewlier.errors import CellError, UserError
from fewlier.table.frame import MISSING
from fewlier.table.text import Layout, as_category, as_found, as_number

COMMA, SEMICOLON = Layout(",", ("x",)), Layout(";", ("x",))


def column(*cells):
    return pa.chunked_array([pa.array(cells, pa.string())])


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_the_one_that_gives_most_columns(delimiter):
    names = ("id", "a, b; c| d\te", 'the "x"', "")
    quoted = delimiter.join(f'"{name.replace(chr(34), chr(34) * 2)}"' for name in names)
    layout = Layout.of(f"{quoted}\n1,2,3,4,5,6,7;;;;||||\n".encode())
    assert layout == Layout(delimiter, names)
    assert layout.has_decimal_comma == (delimiter == ";")


def test_a_single_column_has_a_comma_that_never_comes():
    assert Layout.of(b"size\n1\n") == Layout(",", ("size",))


def test_a_character_cut_at_the_end_of_the_head_is_no_error():
    assert Layout.of("a,b\né".encode()[:-1]).names == ("a", "b")


def test_a_header_that_never_ends_is_refused():
    with pytest.raises(UserError, match="must begin with a header; got none: field larger"):
        Layout.of(b"x" * 200_000)


@pytest.mark.parametrize("spelling", [*MISSING, " ", "  NA ", "\tnan"])
def test_every_spelling_of_missing_is_null_as_number_and_category(spelling):
    assert as_number("x", column("1", spelling), COMMA).to_pylist() == [1.0, None]
    assert as_category(column("b", spelling)).to_pylist() == ["b", None]
    assert as_found("x", column("1", spelling), COMMA).to_pylist() == [1.0, None]


@pytest.mark.parametrize(
    ("text", "number"),
    [(" 2 ", 2), ("-1.50", -1.5), ("+3", 3), (".5", 0.5), ("1E5", 1e5)],
)
def test_numbers_have_many_spellings(text, number):
    assert as_found("x", column(text, "0"), COMMA).to_pylist() == [number, 0]


@pytest.mark.parametrize("text", ["1,5", "0x10", "1_000", "12 kg", "1 000", "--1"])
def test_a_column_with_one_text_holds_categories(text):
    assert as_found("x", column("1", text), COMMA).to_pylist() == ["1", text]


def test_commas_are_decimal_where_semicolons_are_between_columns():
    assert as_found("x", column("1,5", "-2,25", "3", "4.5", ""), SEMICOLON).to_pylist() == [
        *(1.5, -2.25, 3, 4.5),
        None,
    ]
    assert as_found("x", column("1.000,5"), SEMICOLON).to_pylist() == ["1.000,5"]


def test_a_category_that_is_a_whole_number_has_one_spelling():
    cells = column("3", "3.0", "-3.00", "3.5", "03.0", "v3.0")
    assert as_category(cells).to_pylist() == ["3", "3", "-3", "3.5", "03", "v3.0"]


@pytest.mark.parametrize("row", [0, 1, 6, 7, 12])
def test_the_error_names_the_first_cell_that_is_no_number(row):
    cells = ["1", "", "2,5"] * 4 + ["NA"]
    cells[row] = "many"
    texts = pa.chunked_array([cells[:5], cells[5:], []], pa.string())
    with pytest.raises(CellError, match=r"'x' must hold numbers; got the text 'many'") as caught:
        as_number("x", texts, SEMICOLON)
    assert caught.value.row == row
    assert caught.value.remedy.startswith("Correct the cell, or leave it empty")


def test_a_text_among_numbers_is_an_error_that_names_it():
    cells = column(*map(str, range(1, 60)), "?")
    with pytest.raises(
        CellError, match=r"'x' .*got 59 numbers and the text '\?' \(first at row 59\)"
    ):
        as_found("x", cells, COMMA)


def test_numbers_that_begin_with_a_zero_are_categories():
    assert as_found("x", column("01234", "80331"), COMMA).to_pylist() == ["01234", "80331"]
    assert as_found("x", column("0", "0.5", "-0.25"), COMMA).to_pylist() == [0, 0.5, -0.25]
