"""Rows that wait on disk until all rows of their file have been seen."""

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fewlier.table.reading import Batch

Numbered: TypeAlias = tuple[Batch, npt.NDArray[np.float64]]
"""Rows of a file with a number each."""


@contextmanager
def waiting(batches: Iterable[Numbered]) -> Iterator[Iterator[Numbered]]:
    """Read all batches, and give them again in their order; memory holds one at a time."""
    with tempfile.TemporaryFile() as file:
        writer, first = None, None
        for batch, numbers in batches:
            # As one more column, the last; columns of Arrow may share a name.
            rows = batch.rows.append_column("", pa.array(numbers))
            writer = writer or pa.ipc.new_stream(file, rows.schema)
            first = first or replace(batch, rows=rows[:0])
            writer.write_table(rows)
        if writer is None or first is None:
            yield iter(())
            return
        writer.close()
        file.seek(0)
        yield _again(pa.ipc.open_stream(file), first)


def _again(reader: pa.ipc.RecordBatchStreamReader, first: Batch) -> Iterator[Numbered]:
    start = first.start
    for part in reader:
        rows = pa.Table.from_batches([part])
        last = rows.num_columns - 1
        yield (
            replace(first, rows=rows.remove_column(last), start=start),
            rows.column(last).to_numpy().copy(),
        )
        start += rows.num_rows
