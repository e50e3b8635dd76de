"""Parquet: its rows in batches, and where a file is damaged."""

import re
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from fewlier.errors import UserError


def readable(parquet: pq.ParquetFile, most: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file; if some cannot be read, say where they are."""
    n_read = 0
    try:
        for batch in parquet.iter_batches(most, use_threads=False):
            yield batch
            n_read += batch.num_rows
    except (OSError, pa.ArrowInvalid) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # of the disk
        where = _where_damaged(parquet, n_read, most)
        raise UserError(
            f"a table must be CSV or Parquet; got a damaged file: {where}{error}. Write it again."
        ) from error


def _where_damaged(parquet: pq.ParquetFile, n_read: int, most: int) -> str:
    """Name the first column and row group that cannot be read among the next rows."""
    meta, start = parquet.metadata, 0
    for group in range(meta.num_row_groups):
        end = start + meta.row_group(group).num_rows
        if start < n_read + most and end > n_read:
            for name in parquet.schema_arrow.names:
                try:
                    for _ in parquet.iter_batches(most, row_groups=[group], columns=[name]):
                        pass
                except (OSError, pa.ArrowInvalid):
                    return f"column {name!r} of row group {group}, rows {start} to {end - 1}: "
        start = end
    return ""


def sound(name: str, column: pa.Array, start: int) -> pa.Array:
    """Return a column that is safe to compute with; Parquet does not promise that text is UTF-8."""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid as error:
        row = re.search(r"string index (\d+)", str(error))
        where = f" (first at row {start + int(row[1])})" if row else ""
        raise UserError(
            f"column {name!r} must hold text in UTF-8; got other bytes{where}. Write it again as "
            "UTF-8, or without the column.",
            column=name,
        ) from error
    # Some of arrow's functions have no kernel for views.
    return column.cast(pa.string()) if pa.types.is_string_view(column.type) else column
