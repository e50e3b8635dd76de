"""Parquet: its rows in batches, and where a file is damaged."""

import os
import re
from collections.abc import Iterator
from typing import IO, final

import pyarrow as pa
import pyarrow.parquet as pq

from fewlier.errors import UserError
from fewlier.files.reading import TableFile, batch_rows
from fewlier.table.frame import check_names

MAGIC = b"PAR1"
"""First bytes of a Parquet file."""
BUFFER_BYTES = 8 * 2**20
"""Bytes that are read at a time."""


@final
class ParquetFile(TableFile):
    """A Parquet file that can be sought in; columns keep their types."""

    def __init__(self, name: str, file: IO[bytes]) -> None:
        self._size = file.seek(0, os.SEEK_END)
        file.seek(0)
        # Neither whole row groups nor whole columns are held: files may be larger than memory.
        self._parquet = pq.ParquetFile(file, pre_buffer=False, buffer_size=BUFFER_BYTES)
        found = self._parquet.schema_arrow
        self._n_read, self._n_rows = 0, self._parquet.metadata.num_rows
        check_names(found.names, self._n_rows)
        empty = {field.name: sound(field.name, pa.array([], field.type), 0) for field in found}
        super().__init__(name, pa.table(empty).schema)

    def chunks(self) -> Iterator[pa.Table]:
        """Yield the rows; if some cannot be read, say where they are."""
        most = batch_rows(len(self.schema))
        try:
            for batch in self._parquet.iter_batches(most, use_threads=False):
                start, self._n_read = self._n_read, self._n_read + batch.num_rows
                columns = zip(batch.schema.names, batch.columns, strict=True)
                yield pa.table({name: sound(name, column, start) for name, column in columns})
        except (OSError, pa.ArrowInvalid) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # of the disk
            where = _where_damaged(self._parquet, self._n_read, most)
            raise UserError(
                f"a table must be CSV or Parquet; got a damaged file: {where}{error}. Write it "
                "again."
            ) from error

    def share_read(self) -> float:
        """Return how much has been read, from 0 to 1."""
        return self._n_read / self._n_rows if self._n_rows else 1.0

    def bytes_read(self) -> int:
        """Return about how many bytes have been read."""
        return int(self._size * self.share_read())


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
