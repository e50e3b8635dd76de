"""Text of the user's on a screen: every character visible, and ordinary text as it is."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewlier.process.escape import full_number, number, rounded, shown


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


@pytest.mark.parametrize(
    "value", [0.1, 2e-4, 3.25, 912.0, 2024.0, 99999.5, 1234567.891, 4e14, -7e5]
)
def test_numbers_are_written_without_exponents_and_their_whole_part_is_exact(value):
    text = number(value)
    assert "e" not in text
    read = float(text.replace(",", ""))
    assert read == pytest.approx(value, rel=5e-5, abs=0)
    assert abs(read - value) <= 0.5
    assert ("," in text) == (abs(value) >= 10_000)


@given(st.floats(-1e300, 1e300))
def test_every_number_is_written_alone_and_beside_others(value):
    for text in (number(value), number(value, [1e6]), rounded(value, 2), full_number(value)):
        read = float(text.replace(",", ""))
        assert read == pytest.approx(value, rel=1e-4, abs=0.005 + 1e-9)
    assert float(full_number(value).replace(",", "")) == pytest.approx(value, rel=1e-11, abs=0)
