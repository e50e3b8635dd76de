"""How many rows of a stream have each level of its text columns; few of the rows are kept."""

from collections import Counter
from typing import final

import pyarrow as pa

from fewlier.files.streams import concatenated
from fewlier.table.cells import missing
from fewlier.table.columns import Column
from fewlier.table.frame import Table

MAX_LEVELS = 10_000
"""Different cells of a column that are counted; of more, the kept rows have the levels."""


@final
class LevelCounts:
    """Counts of the cells of text columns, over all rows of a stream."""

    def __init__(self) -> None:
        self._counts: dict[str, pa.Table | None] = {}  # None: too many

    def add(self, rows: pa.Table) -> None:
        """Count further rows."""
        for name, column in zip(rows.column_names, rows.columns, strict=True):
            before = self._counts.get(name, _EMPTY)
            if before is not None and _is_text(column.type):
                counts = _added(before, column)
                self._counts[name] = counts if counts.num_rows <= MAX_LEVELS else None

    def of(self, column: Column) -> Counter[str]:
        """Return how many rows have each level of a category; empty where they were too many."""
        counts, total = self._counts.get(column.name), Counter[str]()
        if counts is not None:
            cells, _ = column.conform(Table.of(counts.select(["level"])).cells["level"])
            known = ~missing(cells)
            for text, n in zip(cells[known], counts["n"].to_numpy()[known].tolist(), strict=True):
                total[text] += n
        return total


_EMPTY = pa.table({"level": pa.nulls(0), "n": pa.array([], pa.int64())})


def _added(before: pa.Table, column: pa.ChunkedArray) -> pa.Table:
    """Add the cells of a column to the counts before."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    found = pa.Table.from_struct_array(column.value_counts()).rename_columns(["level", "n"])
    groups = concatenated([before, found]).group_by("level", use_threads=False)
    return groups.aggregate([("n", "sum")]).rename_columns(["level", "n"])


def _is_text(dtype: pa.DataType) -> bool:
    """Whether cells of a type are read as text; moments are, too, but are no levels."""
    types = pa.types
    is_text = types.is_string(dtype) or types.is_large_string(dtype)
    return bool(is_text or types.is_boolean(dtype) or types.is_dictionary(dtype))
