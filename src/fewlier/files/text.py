"""The text of a CSV file: unpacked within bounds, and its header recognised."""

import csv
import io
from collections.abc import Sequence
from typing import IO, Any, final

import pyarrow as pa

from fewlier.errors import UserError

DELIMITERS = (",", ";", "\t", "|")
MAX_HEADER_BYTES = 2**20
"""The longest first line that is taken for a header."""
MAX_GROWTH = 200
"""Bytes that one compressed byte may become: text grows by 3 to 30 times, bombs a thousandfold."""
# Growth is judged only once this much has been unpacked.
_PEEK_BYTES = 16 * 2**20
_CODECS = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd"}


def read_header(head: bytes) -> tuple[str, tuple[str, ...]]:
    """Return the delimiter of a CSV file, the one that gives most columns, and their names."""
    end = max(head.rfind(b"\n"), head.rfind(b"\r"))  # beyond it a character may be cut in two
    try:
        text = (head if end < 0 else head[:end]).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise not_utf8(error) from error
    most: list[str] = []
    delimiter, problem = ",", "the file is empty"
    for is_strict in (True, False):  # where quotes are wrong for all, they do not decide
        for mark in DELIMITERS if len(most) <= 1 else ():
            lines = csv.reader(io.StringIO(text, ""), delimiter=mark, strict=is_strict)
            try:
                names = next(lines, [])
            except csv.Error as error:
                names, problem = [], str(error)
            if len(names) > len(most):
                most, delimiter = names, mark
    if not most:
        raise UserError(f"a table must begin with a header, with rows below; {problem}.")
    return delimiter, tuple(most)


def surplus_columns(names: Sequence[str]) -> frozenset[int]:
    """Return the places of columns that spreadsheets add: without a name, where there are several.

    One may be the index that pandas writes, which stands first.
    """
    nameless = [place for place, name in enumerate(names) if not name]
    return frozenset(place for place in nameless if place) if len(nameless) > 1 else frozenset()


def not_utf8(found: Exception) -> UserError:
    """Return the error for text in another encoding."""
    return UserError(
        f"text must be UTF-8; got other bytes: {found}. Save it as UTF-8; spreadsheets call it "
        "'CSV UTF-8'."
    )


@final
class Unpacked:
    """An open file as text: `stream`, and its first bytes, `head`.

    Parameters
    ----------
    head : bytes
        The bytes that have been read from the file already.
    file : binary file
        The rest of it.
    """

    def __init__(self, head: bytes, file: IO[bytes]) -> None:
        self._packed = Rejoined(head, file)
        codec = next((name for magic, name in _CODECS.items() if head.startswith(magic)), None)
        source: Any = self._packed
        if codec:
            source = pa.CompressedInputStream(pa.PythonFile(source, mode="r"), codec)
        start = first_bytes(source, _PEEK_BYTES if codec else MAX_HEADER_BYTES)
        self.stream = Rejoined(start, source)
        self.check_growth(len(start))
        self.head = start[:MAX_HEADER_BYTES]
        if len(start) >= MAX_HEADER_BYTES and not {10, 13} & set(self.head):
            raise UserError(
                f"a table must begin with a header of at most {MAX_HEADER_BYTES:,} bytes; got a "
                "longer line. Check that it is a table."
            )

    @property
    def n_bytes(self) -> int:
        """Bytes of the file that were read so far."""
        return self._packed.n_bytes

    def check_growth(self, n_ahead: int = 0) -> None:
        """Refuse a file that has grown too much: what was read, or `n_ahead` bytes of it."""
        n_bytes = max(self.stream.n_bytes, n_ahead)
        if n_bytes >= _PEEK_BYTES and n_bytes > MAX_GROWTH * self._packed.n_bytes:
            raise UserError(
                f"a compressed table may grow {MAX_GROWTH}-fold when it is unpacked; got "
                f"{n_bytes:,} bytes from {self._packed.n_bytes:,}. If it is a table all the same, "
                "unpack it first."
            )


@final
class Rejoined(io.RawIOBase):
    """A stream whose first bytes have been read already, from its beginning; it counts."""

    def __init__(self, head: bytes, rest: Any) -> None:  # noqa: ANN401 - Python's files or arrow's
        self._head, self._rest = memoryview(head), rest
        self.n_bytes = self.n_quotes = 0  # read so far

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - a memory view
        """Fill a buffer, or some of it."""
        chunk = self._head[: len(buffer)].tobytes()
        self._head = self._head[len(chunk) :]
        chunk = chunk or self._rest.read(len(buffer))
        buffer[: len(chunk)] = chunk
        self.n_bytes += len(chunk)
        self.n_quotes += chunk.count(b'"')
        return len(chunk)


def first_bytes(stream: Any, n: int) -> bytes:  # noqa: ANN401 - Python's files or arrow's
    """Read up to n bytes; a pipe may give them in pieces."""
    found = b""
    while len(found) < n and (part := stream.read(n - len(found))):
        found += part
    return found
