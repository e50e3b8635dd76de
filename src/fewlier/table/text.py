"""Tables written as text: how a CSV file is laid out, and what its cells mean."""

import csv
import io
from dataclasses import dataclass
from typing import TypeAlias, final

import pyarrow as pa
import pyarrow.compute as pc

from fewlier.errors import CellError, UserError
from fewlier.table.frame import MISSING

DELIMITERS = (",", ";", "\t", "|")

# From this share of numbers on, a column is one of numbers with slips in it.
MOSTLY = 0.9
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"

Texts: TypeAlias = pa.ChunkedArray
"""One column as it stands in the file, without nulls."""


@final
@dataclass(frozen=True)
class Layout:
    """The delimiter of a CSV file, and the names in its header."""

    delimiter: str
    names: tuple[str, ...]

    @classmethod
    def of(cls, head: bytes) -> "Layout":
        """Recognise a CSV file by its beginning: the delimiter that gives most columns."""
        end = max(head.rfind(b"\n"), head.rfind(b"\r"))  # beyond it a character may be cut in two
        try:
            text = (head if end < 0 else head[:end]).decode("utf-8-sig")
            headers = _headers(text)
        except UnicodeDecodeError as error:
            raise not_utf8(str(error)) from error
        except csv.Error as error:
            raise UserError(f"a table must begin with a header; got none: {error}.") from error
        names = max(headers, key=len)
        if not names:
            raise UserError("a table must have a header and rows; got an empty file.")
        return cls(DELIMITERS[headers.index(names)], tuple(names))

    @property
    def has_decimal_comma(self) -> bool:
        """Whether commas may stand in numbers: between columns there are semicolons."""
        return self.delimiter == ";"


def _headers(text: str) -> list[list[str]]:
    """Return the names that each delimiter gives; where quotes tell, only those they allow."""
    found = []
    for delimiter in DELIMITERS:
        try:
            reader = csv.reader(io.StringIO(text, ""), delimiter=delimiter, strict=True)
            found.append(next(reader, []))
        except csv.Error:
            found.append([])
    if max(map(len, found)) > 1:
        return found
    return [next(csv.reader(io.StringIO(text, ""), delimiter=d), []) for d in DELIMITERS]


def not_utf8(found: str) -> UserError:
    """Return the error for text in another encoding."""
    return UserError(
        f"text must be UTF-8; got other bytes: {found}. Save it as UTF-8; spreadsheets call it "
        "'CSV UTF-8'."
    )


def as_category(texts: Texts) -> pa.ChunkedArray:
    """Return a column of categories, null where missing; ``3.0`` is ``3``, as elsewhere."""
    present = _nulled(texts)
    return pc.replace_substring_regex(present, r"^(-?\d+)\.0+$", r"\1")


def as_number(name: str, texts: Texts, layout: Layout) -> pa.ChunkedArray:
    """Return a column of numbers, null where missing; text that is none is an error."""
    numbers = _parsed(texts, layout)
    if numbers is None:
        row, text = _first_text(texts, layout)
        raise CellError(
            f"Column {name!r} must hold numbers; got the text {text!r}",
            row,
            "Correct the cell, or leave it empty if its value is unknown.",
        )
    return numbers


def as_found(name: str, texts: Texts, layout: Layout) -> pa.ChunkedArray:
    """Return a column as numbers if every cell is one or missing, else as categories.

    Numbers that begin with a zero, such as post codes, are categories. A text among numbers is
    more likely a slip than a category, and an error.
    """
    present = pc.utf8_trim_whitespace(_nulled(texts))
    if pc.any(pc.match_substring_regex(present, r"^-?0\d")).as_py():
        return as_category(texts)
    numbers = _parsed(texts, layout)
    if numbers is not None:
        return numbers
    is_number = pc.match_substring_regex(present, _NUMBER)
    if (pc.mean(is_number).as_py() or 0) < MOSTLY:
        return as_category(texts)
    row, text = _first_text(texts, layout)
    raise CellError(
        f"Column {name!r} must hold numbers or categories; got {pc.sum(is_number)} numbers and the "
        f"text {text!r}",
        row,
        f"Empty the cell if its value is unknown, or declare the column: --column {name}=category.",
    )


def _parsed(texts: Texts, layout: Layout) -> pa.ChunkedArray | None:
    """Return the numbers that a column holds, or None if one of its cells is no number."""
    present = _nulled(texts)
    for candidate in _spellings(present, layout):
        try:
            return pc.cast(candidate, pa.float64())
        except pa.ArrowInvalid:
            continue
    return None


def _spellings(present: pa.ChunkedArray, layout: Layout) -> list[pa.ChunkedArray]:
    trimmed = pc.utf8_trim_whitespace(present)
    if not layout.has_decimal_comma:
        return [trimmed]
    return [trimmed, pc.replace_substring(trimmed, ",", ".")]


def _first_text(texts: Texts, layout: Layout) -> tuple[int, str]:
    """Return the first cell, and its row, that is neither missing nor a number."""
    low, high = 0, len(texts)  # a text stands in rows low..high-1, and none before low
    while high - low > 1:
        middle = (low + high) // 2
        if _parsed(texts.slice(low, middle - low), layout) is None:
            high = middle
        else:
            low = middle
    return low, texts[low].as_py()


def _nulled(texts: Texts) -> pa.ChunkedArray:
    trimmed = pc.utf8_trim_whitespace(texts)
    is_missing = pc.is_in(trimmed, value_set=pa.array(MISSING))
    return pc.if_else(is_missing, pa.scalar(None, pa.string()), texts)
