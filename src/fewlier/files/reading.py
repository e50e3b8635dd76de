"""Data files in: CSV and Parquet, plain or compressed, batch by batch."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import final

import pyarrow as pa
import pyarrow.compute as pc

from fewlier.errors import UserError, locate
from fewlier.files.atomic import PathLike
from fewlier.process.progress import ReadProgress, no_progress
from fewlier.table.cells import Cells, as_text
from fewlier.table.columns import Column, Kind
from fewlier.table.dates import DateForm
from fewlier.table.frame import Table
from fewlier.table.numbers import PLAIN
from fewlier.table.schema import Schema

_BATCH_ROWS, _BATCH_CELLS = 65_536, 2**24


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


class TableFile(ABC):
    """An open file of rows: a header at least.

    Parameters
    ----------
    name : str
        What to call the file in errors.
    schema : pyarrow.Schema
        Its columns; those of a CSV file are text.
    delimiter : str or None
        What stands between the cells of a CSV file; None for Parquet.
    """

    def __init__(self, name: str, schema: pa.Schema, delimiter: str | None = None) -> None:
        self.name, self.schema, self.delimiter = name, schema, delimiter

    @abstractmethod
    def chunks(self) -> Iterator[pa.Table]:
        """Yield the rows as they come; some chunks may be empty."""

    @abstractmethod
    def share_read(self) -> float | None:
        """Return how much of the file has been read, from 0 to 1; None if that is unknown."""

    @abstractmethod
    def bytes_read(self) -> int:
        """Return how many bytes of the file have been read."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of its columns."""
        return tuple(self.schema.names)

    def batches(
        self, progress: Callable[[ReadProgress], None] = no_progress, *, may_be_empty: bool = False
    ) -> Iterator[Batch]:
        """Yield the rows in order, and tell after each batch how much was read.

        A file without rows is an error unless it may be empty; then it has one batch, without any.
        """
        start = 0
        with naming(self.name):
            for rows in self.chunks():
                if rows.num_rows:
                    yield Batch(self.name, rows, start, self.delimiter)
                start += rows.num_rows
                progress(ReadProgress(self.share_read(), self.bytes_read(), start))
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


@final
class RowsInMemory(TableFile):
    """Rows in memory, as if they came from a Parquet file."""

    def __init__(self, rows: pa.Table, name: str) -> None:
        super().__init__(name, rows.schema)
        self._rows = rows

    def chunks(self) -> Iterator[pa.Table]:
        """Yield them all."""
        yield self._rows

    def share_read(self) -> float:
        """Return 1: there is nothing to wait for."""
        return 1.0

    def bytes_read(self) -> int:
        """Return their size."""
        return int(self._rows.nbytes)


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
