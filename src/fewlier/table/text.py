"""Tables written as text: how a CSV file is laid out."""

import csv
import io
from dataclasses import dataclass
from typing import final

from fewlier.errors import UserError

DELIMITERS = (",", ";", "\t", "|")


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
