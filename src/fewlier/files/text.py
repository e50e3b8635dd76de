"""CSV: text that is unpacked within bounds, its header recognised, and its rows in batches."""

import csv
import io
import os
import re
import sys
from collections.abc import Iterator, Sequence
from typing import IO, Any, final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from fewlier.errors import UserError
from fewlier.files.reading import TableFile
from fewlier.table.frame import check_names

DELIMITERS = (",", ";", "\t", "|")
MAX_HEADER_BYTES = 2**20
"""Bytes of the longest first line that is taken for a header."""
BLOCK_BYTES = 8 * 2**20
"""Bytes of text that are read at a time."""
MAX_GROWTH = 200
"""Bytes that one compressed byte may become: text grows by 3 to 30 times, bombs a thousandfold."""
# Growth is judged only once this much has been unpacked.
_PEEK_BYTES = 16 * 2**20
_RAGGED = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+): (.*)", re.DOTALL)
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
    """A stream with its first bytes put back; counts bytes and quotes."""

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
    """Read up to n bytes; a pipe may give few at a time."""
    found = b""
    while len(found) < n and (more := stream.read(n - len(found))):
        found += more
    return found


@final
class CsvFile(TableFile):
    """A CSV file; every column as text, so that none is changed.

    Parameters
    ----------
    name : str
        What to call the file in errors.
    file : binary file
        The file.
    head : bytes
        The bytes that have been read from it already.
    """

    def __init__(self, name: str, file: IO[bytes], head: bytes) -> None:
        is_sized = file.seekable() and file is not sys.stdin.buffer
        self._file = file
        self._size = os.fstat(file.fileno()).st_size if is_sized else 0
        self._text = Unpacked(head, file)
        delimiter, self._columns = read_header(self._text.head)
        self._nameless = surplus_columns(self._columns)
        places = range(len(self._columns))
        self._kept = [place for place in places if place not in self._nameless]
        names = [self._columns[place] for place in self._kept]
        check_names(names, 0)
        super().__init__(name, pa.schema(dict.fromkeys(names, pa.string())), delimiter)

    def chunks(self) -> Iterator[pa.Table]:
        """Yield the rows as they come; some chunks may be empty."""
        last, n_read = "", 0
        try:
            for batch in self._batches():
                self._text.check_growth()
                rows = pa.Table.from_batches([batch])
                last = rows[-1][-1].as_py() if rows.num_rows else last
                for place in self._nameless:
                    _check_empty(rows[place], n_read)
                n_read += rows.num_rows
                yield rows.select(self._kept)
        except pa.ArrowInvalid as error:
            if "Empty CSV" not in str(error):
                raise _csv_error(error) from error
        # Arrow takes what follows an opening quote for one cell, to the end of the file.
        if self._text.stream.n_quotes % 2 and "\n" in last:
            raise UserError(
                f"a quote that opens a cell must be closed; got none after {last[:40]!r}. Close "
                "it, or double a quote that belongs to the cell."
            )

    def _batches(self) -> pa_csv.CSVStreamingReader:
        return pa_csv.open_csv(
            pa.PythonFile(self._text.stream, mode="r"),
            # One thread, because only then are faulty rows numbered.
            read_options=pa_csv.ReadOptions(use_threads=False, block_size=BLOCK_BYTES),
            parse_options=pa_csv.ParseOptions(
                delimiter=self.delimiter,
                newlines_in_values=True,
                # In a single column an empty line is a missing cell.
                ignore_empty_lines=len(self._columns) > 1,
            ),
            convert_options=pa_csv.ConvertOptions(
                column_types=dict.fromkeys(self._columns, pa.string()), strings_can_be_null=False
            ),
        )

    def share_read(self) -> float | None:
        """Return how much has been read, from 0 to 1; None if that is unknown."""
        return min(self._file.tell() / self._size, 1.0) if self._size else None

    def bytes_read(self) -> int:
        """Return how many bytes have been read."""
        return self._text.n_bytes


def _check_empty(column: pa.ChunkedArray, start: int) -> None:
    """Refuse a value in one of several columns without a name."""
    is_full = pc.not_equal(pc.utf8_trim_whitespace(column), "")
    row = pc.index(is_full, value=True).as_py()
    if row >= 0:
        raise UserError(
            "Columns without a name must be empty where there are several; got "
            f"{column[row].as_py()[:40]!r}",
            row=start + row,
            remedy="Name them in the header, or delete them.",
        )


def _csv_error(error: pa.ArrowInvalid) -> Exception:
    """Return what arrow's message means; its own handler of rows fails where they are not UTF-8."""
    if ragged := _RAGGED.search(str(error)):
        number, expected, actual, text = ragged.groups()
        return UserError(
            f"every row must have {expected} cells, as the header has; got {actual} in row "
            f"{int(number) - 2}: {text[:60]!r}. Correct the row, or put quotes around cells that "
            "contain the delimiter."
        )
    return not_utf8(error) if "UTF8" in str(error) else error
