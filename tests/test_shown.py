"""Text of the user's on a screen: every character visible, and ordinary text as it is."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewlier.shown import shown


@given(st.text())
def test_what_is_shown_is_one_line_without_control_characters(text):
    result = shown(text)
    assert not {unicodedata.category(c) for c in result} & {"Cc", "Cs", "Zl", "Zp"}
    assert len(result.splitlines()) <= 1
    result.encode()  # halves of characters could not be


@pytest.mark.parametrize(
    "text",
    [
        "",
        "speed [km/h]",
        r"a\b",
        "Größe (m²)",
        "\u0642\u06cc\u0645\u062a\u200c\u0647\u0627",
        "重量",
        "👩\u200d🔬 – €",
    ],
)
def test_ordinary_text_is_shown_as_it_is(text):
    assert shown(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[31mred", r"\x1b[31mred"),
        ("\x9b31mred", r"\x9b31mred"),
        ("two\nlines\tand\ra bell\a", r"two\nlines\tand\ra bell\x07"),
        ("user\u202egpj.exe", r"user\u202egpj.exe"),
        ("a\u2066b\u2069", r"a\u2066b\u2069"),
        ("pass\u200bword\ufeff", r"pass\u200bword\ufeff"),
        (b"bad\xff.csv".decode(errors="surrogateescape"), r"bad\udcff.csv"),
    ],
)
def test_what_would_hide_or_do_something_is_written_out(text, expected):
    assert shown(text) == expected


def test_long_text_is_cut_to_a_length_as_it_is_shown():
    assert shown("abcdef", 6) == "abcdef"
    assert shown("abcdefg", 6) == "abcde…"
    assert shown("\x1b" * 10**6, 6) == r"\x1b\…"
