"""Data files in: CSV and Parquet, plain or compressed, batch by batch."""

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from fewlier.errors import UserError, locate
from fewlier.files.atomic import PathLike
from fewlier.files.parquet import readable, sound
from fewlier.files.text import Unpacked, first_bytes, not_utf8, read_header, surplus_columns
from fewlier.process.progress import ReadSoFar, Tell, untold
from fewlier.table.cells import Cells, as_text
from fewlier.table.columns import Column, Kind
from fewlier.table.dates import DateForm
from fewlier.table.frame import Table, check_names
from fewlier.table.numbers import PLAIN
from fewlier.table.schema import Schema

_BATCH_ROWS, _BATCH_CELLS = 65_536, 2**24
_BLOCK_BYTES = 8 * 2**20
_PARQUET = b"PAR1"
_RAGGED = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+): (.*)", re.DOTALL)
# Files that are often given for a table and are not one, by their first bytes.
_FOREIGN = {
    b"PK\x03\x04": "a spreadsheet, zip or model",
    b"\xff\xfe": "text in UTF-16",
    b"\xfe\xff": "text in UTF-16",
    b"ARROW1": "an Arrow or Feather file",
}


def batch_rows(n_columns: int) -> int:
    """Return how many rows of so many columns are looked at together at most."""
    return min(_BATCH_ROWS, max(_BATCH_CELLS // max(n_columns, 1), 1))


def is_standard(path: PathLike) -> bool:
    """Whether a path stands for standard input or output."""
    return str(path) == "-"


@final
@dataclass(frozen=True)
class Batch:
    """Some rows of a file as they are: text if it is CSV, typed columns if it is Parquet.

    Parameters
    ----------
    file : str
        What to call the file in errors.
    rows : pyarrow.Table
        All columns of the file.
    start : int
        Rows of the file before these.
    delimiter : str or None
        What stands between the cells of a CSV file; None for Parquet.
    """

    file: str
    rows: pa.Table
    start: int
    delimiter: str | None

    def table(self, schema: Schema) -> Table:
        """Return the columns of a schema; errors count rows from the file's first."""
        with naming(self.file, self.start):
            found = self.features(schema)
            return schema.match(Table.of(found) if found.num_columns else Table({}))

    def features(self, schema: Schema) -> pa.Table:
        """Return the columns that a schema reads, as they are in the file."""
        known = {column.source: column for column in schema.columns}
        found = {n: self.rows[n] for n in self.rows.column_names if n in known}
        if self.delimiter == ";":  # then a comma may stand in numbers
            found |= {n: _pointed(texts) for n, texts in found.items() if _is_plain(known[n])}
        return pa.table(found)

    def typed(self, table: Table, schema: Schema) -> pa.Table:
        """Return all columns, with types where the schema knows them, else as in the file.

        `table` is the result of the method of that name.
        """
        if self.delimiter is None:
            return self.rows
        columns = {name: self.rows[name] for name in self.rows.column_names}
        columns |= {c.name: pa.array(table.cells[c.name]) for c in schema.columns if not c.date}
        dates = {c.source: c.date.form for c in schema.columns if c.date}  # which may share one
        for name, form in dates.items():
            columns[name] = _moments(form, Table.of(self.rows.select([name])).cells[name])
        return pa.table(columns)


def _moments(form: DateForm, texts: Cells) -> pa.Array:
    """Return dates or times as Arrow has them; null where they are missing or unread."""
    moments, _ = form.parse(as_text(texts))
    seconds = moments.instant if form.has_day else moments.second
    zone = "UTC" if form.is_zoned else None
    dtype = pa.timestamp("us", zone) if form.has_day else pa.time64("us")
    return pc.round(pa.array(seconds * 1e6, from_pandas=True)).cast("int64").cast(dtype)


def _is_plain(column: Column) -> bool:
    is_number = column.kind is not Kind.CATEGORY and column.date is None
    return is_number and column.form == PLAIN


def _pointed(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Write a point for the comma of numbers that have no other mark."""
    return pc.replace_substring_regex(texts, r"^(\s*[+-]?\d*),(\d+\s*)$", r"\1.\2")


@final
@dataclass(frozen=True)
class TableFile:
    """An open file of rows: a header at least.

    Parameters
    ----------
    name : str
        What to call the file in errors.
    schema : pyarrow.Schema
        Its columns; those of a CSV file are text.
    chunks : callable
        Yields the rows as they come; some chunks may be empty.
    share_read : callable
        Returns how much of the file has been read, from 0 to 1; None if that is unknown.
    bytes_read : callable
        Returns how many bytes of the file have been read.
    delimiter : str or None
        What stands between the cells of a CSV file; None for Parquet.
    """

    name: str
    schema: pa.Schema
    chunks: Callable[[], Iterator[pa.Table]]
    share_read: Callable[[], float | None]
    bytes_read: Callable[[], int]
    delimiter: str | None = None

    @classmethod
    def of(cls, rows: pa.Table, name: str) -> "TableFile":
        """Read rows in memory as if they came from a Parquet file."""
        return cls(name, rows.schema, lambda: iter([rows]), lambda: 1.0, lambda: rows.nbytes)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of its columns."""
        return tuple(self.schema.names)

    def batches(self, tell: Tell = untold, *, may_be_empty: bool = False) -> Iterator[Batch]:
        """Yield the rows in order, and tell after each batch how much was read.

        A file without rows is an error unless it may be empty; then it has one batch, without any.
        """
        start = 0
        with naming(self.name):
            for rows in self.chunks():
                if rows.num_rows:
                    yield Batch(self.name, rows, start, self.delimiter)
                start += rows.num_rows
                tell(ReadSoFar(self.share_read(), self.bytes_read(), start))
            if not start and may_be_empty:
                yield Batch(self.name, self.schema.empty_table(), 0, self.delimiter)
            elif not start:
                raise UserError("a table must have rows; got only a header. Add rows.")

    def features(self, label: str | None) -> list[str]:
        """Name the columns to learn from: all but the label and the index that pandas writes.

        The index has no name.
        """
        return [name for name in self.columns if name not in ("", label)]

    def whole(self) -> Batch:
        """Return all rows at once."""
        parts = [batch.rows for batch in self.batches()]
        return Batch(self.name, pa.concat_tables(parts), 0, self.delimiter)


@contextmanager
def open_table(path: PathLike) -> Iterator[TableFile]:
    """Open a CSV or Parquet file, or standard input for ``-``, by what it holds, not its name.

    CSV: comma, semicolon, tab or bar between columns, UTF-8 with or without a mark, quoted cells,
    which may span lines; plain, or compressed by gzip, bz2 or zstd.
    """
    name = "standard input" if is_standard(path) else str(path)
    with ExitStack() as stack:
        with naming(name):
            file: IO[bytes] = sys.stdin.buffer
            if not is_standard(path):
                file = stack.enter_context(Path(path).open("rb"))
            head = first_bytes(file, len(_PARQUET) + 2)
            for magic, what in _FOREIGN.items():
                if head.startswith(magic):
                    raise UserError(
                        f"a table must be CSV in UTF-8 or Parquet; got {what}. Save it as CSV."
                    )
            if not head.startswith(_PARQUET):
                table = _open_csv(file, head, name)
            elif file.seekable():
                table = _open_parquet(file, name)
            else:  # Parquet is read from its end
                whole = stack.enter_context(tempfile.TemporaryFile())
                whole.write(head)
                shutil.copyfileobj(file, whole)
                table = _open_parquet(whole, name)
        yield table


@contextmanager
def naming(file: str, start: int = 0) -> Iterator[None]:
    """Put the name of a file before what is wrong with it; rows are counted from its first."""
    try:
        yield
    except UserError as error:
        if error.parameter is None:  # else it is the fault of the call
            locate(error, file, start)
        raise
    except pa.ArrowInvalid as error:
        found = f"a table must be CSV or Parquet; got a damaged file: {error}."
        raise UserError(found, file=file) from error
    except OSError as error:
        found = f"a table must be a file that can be read; {error.strerror or error}."
        raise UserError(found, file=file) from error


def _open_csv(file: IO[bytes], head: bytes, name: str) -> TableFile:
    """Read comma-separated values; every column as text, so that none is changed."""
    is_sized = file.seekable() and file is not sys.stdin.buffer
    size = os.fstat(file.fileno()).st_size if is_sized else 0
    text = Unpacked(head, file)
    delimiter, columns = read_header(text.head)
    nameless = surplus_columns(columns)
    kept = [place for place in range(len(columns)) if place not in nameless]
    names = [columns[place] for place in kept]
    check_names(names, 0)

    def chunks() -> Iterator[pa.Table]:
        last, n_read = "", 0
        try:
            for batch in pa_csv.open_csv(
                pa.PythonFile(text.stream, mode="r"),
                # One thread, because only then are faulty rows numbered.
                read_options=pa_csv.ReadOptions(use_threads=False, block_size=_BLOCK_BYTES),
                parse_options=pa_csv.ParseOptions(
                    delimiter=delimiter,
                    newlines_in_values=True,
                    # In a single column an empty line is a missing cell.
                    ignore_empty_lines=len(columns) > 1,
                ),
                convert_options=pa_csv.ConvertOptions(
                    column_types=dict.fromkeys(columns, pa.string()), strings_can_be_null=False
                ),
            ):
                text.check_growth()
                rows = pa.Table.from_batches([batch])
                last = rows[-1][-1].as_py() if rows.num_rows else last
                for place in nameless:
                    _check_empty(rows[place], n_read)
                n_read += rows.num_rows
                yield rows.select(kept)
        except pa.ArrowInvalid as error:
            if "Empty CSV" not in str(error):
                raise _csv_error(error) from error
        # Arrow takes what follows an opening quote for one cell, to the end of the file.
        if text.stream.n_quotes % 2 and "\n" in last:
            raise UserError(
                f"a quote that opens a cell must be closed; got none after {last[:40]!r}. Close "
                "it, or double a quote that belongs to the cell."
            )

    def share_read() -> float | None:
        return min(file.tell() / size, 1.0) if size else None

    schema = pa.schema(dict.fromkeys(names, pa.string()))
    return TableFile(name, schema, chunks, share_read, lambda: text.n_bytes, delimiter)


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


def _open_parquet(file: IO[bytes], name: str) -> TableFile:
    """Read Parquet; columns keep their types."""
    file.seek(0)
    # Neither whole row groups nor whole columns are held: files may be larger than memory.
    parquet = pq.ParquetFile(file, pre_buffer=False, buffer_size=_BLOCK_BYTES)
    n_read, n_rows = 0, parquet.metadata.num_rows
    check_names(parquet.schema_arrow.names, n_rows)

    def chunks() -> Iterator[pa.Table]:
        nonlocal n_read
        most = batch_rows(len(parquet.schema_arrow))
        for batch in readable(parquet, most):
            start, n_read = n_read, n_read + batch.num_rows
            columns = zip(batch.schema.names, batch.columns, strict=True)
            yield pa.table({name: sound(name, column, start) for name, column in columns})

    def share_read() -> float:
        return n_read / n_rows if n_rows else 1.0

    size = file.seek(0, os.SEEK_END)
    empty = pa.table({f.name: sound(f.name, pa.array([], f.type), 0) for f in parquet.schema_arrow})
    return TableFile(name, empty.schema, chunks, share_read, lambda: int(size * share_read()))
