"""Tables as text: how a header is read."""

import pytest

from fewlier.errors import UserError
from fewlier.table.text import Layout


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
