"""One pass over a stream of rows of any length: the rows to learn from, and levels of all of them.

Every row gets a random number, in order, and those with the smallest are kept. So the sample is
uniform, and depends on the seed and on the order of rows alone.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import NamedTuple, final

import numpy as np
import pyarrow as pa

from fewlier.errors import UserError, noting, problems_of, raise_all
from fewlier.files.reading import Batch, naming
from fewlier.files.reservoir import Reservoir
from fewlier.files.streams import check_same, concatenated, rebatched
from fewlier.table.arrays import Codes, Ints
from fewlier.table.cells import check_finite, missing
from fewlier.table.columns import Column
from fewlier.table.frame import Table
from fewlier.table.label_column import LabelColumn, LabelReader
from fewlier.table.labels import ANOMALY, UNLABELLED, Labels, RowCounts, read_labels

MAX_NORMALS = 100_000
"""Normals that a fit learns from in an average; of more, a sample. Many more than it compares with,
trains on in all its epochs, or sets thresholds by; what ten times as many add is in
docs/evidence/COSTS.md.
"""
MAX_ANOMALIES = 10_000
"""Labelled anomalies that are kept of a stream; of more, a sample."""
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


@final
@dataclass(frozen=True, eq=False)
class Sample:
    """The rows of a stream to learn from, in their order, and what was counted of all.

    Parameters
    ----------
    rows : pyarrow.Table
        The features of the rows that were kept.
    labels : Labels or None
        Their labels; None without a label column.
    counts : RowCounts
        All rows of the stream, by label, and all labelled anomalies, by kind.
    levels : LevelCounts
        All rows of the stream, by the levels of text columns.
    places : Places
        Where the rows come from.
    """

    rows: pa.Table
    labels: Labels | None
    counts: RowCounts
    levels: LevelCounts
    places: "Places"

    @property
    def is_complete(self) -> bool:
        """Whether these are all rows of the stream."""
        return bool(self.rows.num_rows == self.counts.n_rows)

    @property
    def note(self) -> str:
        """What was left out, in a sentence; empty if nothing was."""
        n_kept, n_all = self.rows.num_rows, self.counts.n_rows
        if self.is_complete:
            return ""
        codes = Labels.of(self.labels, n_kept).codes
        n_anomalies, n_found = int((codes == ANOMALY).sum()), self.counts.n_anomaly
        of_them = "all" if n_anomalies == n_found else f"{n_anomalies:,} of"
        anomalies = f" and {of_them} {n_found:,} labelled anomalies" if n_found else ""
        return (
            f"Of {n_all:,} rows, {n_kept - n_anomalies:,} normal and unlabelled ones{anomalies} "
            "were drawn to learn from; kinds of columns are those of these rows, and levels of "
            "text columns those of all rows."
        )


@final
@dataclass(frozen=True, eq=False)
class Places:
    """Where the rows of a sample come from.

    Parameters
    ----------
    positions : array (n,)
        Their numbers in the stream, ascending.
    starts, files : list of int, list of str
        The number of the first row of each file, and its name.
    """

    positions: Ints
    starts: list[int]
    files: list[str]

    def of(self, row: int) -> tuple[str, int]:
        """Return the file of a row of the sample, and its number there."""
        position = int(self.positions[row])
        number = bisect_right(self.starts, position) - 1
        return self.files[number], position - self.starts[number]

    def name(self, row: int) -> str:
        """Return the number of a row of the sample, with its file where there are several."""
        file, number = self.of(row)
        return f"{number} of {file}" if len(self.files) > 1 else str(number)

    @contextmanager
    def naming(self) -> Iterator[None]:
        """Let errors about rows of the sample name the rows of their files."""
        try:
            yield
        except UserError as error:
            for problem in problems_of(error):
                if problem.row is not None:
                    file, problem.row = self.of(problem.row)
                    problem.file = file if len(self.files) > 1 else None
            raise


class _Drawn(NamedTuple):
    """Some rows, with the position of each, and the place of its label."""

    rows: pa.Table
    positions: Ints
    labels: Ints

    def take(self, chosen: Ints) -> "_Drawn":
        rows = self.rows.take(pa.array(chosen))
        return _Drawn(rows, self.positions[chosen], self.labels[chosen])

    @classmethod
    def joined(cls, parts: Sequence["_Drawn"]) -> "_Drawn":
        tables, positions, labels = zip(*parts, strict=True)
        rows = concatenated(tables).combine_chunks()
        return cls(rows, np.concatenate(positions), np.concatenate(labels))


@final
class Sampler:
    """Keeps rows of a stream to learn from: labelled anomalies, normals, and others, in that order.

    The key of a row is its random number u in [0, 1) if it is a labelled anomaly or normal, and
    u + 1 if it is unlabelled, so that others fill up what normals leave.

    Parameters
    ----------
    label : LabelColumn or None
        The label column.
    seed : int
        Seed of the random numbers.
    ignored : collection of str
        Columns that the user leaves out.
    """

    def __init__(self, label: LabelColumn | None, seed: int, ignored: Collection[str]) -> None:
        self._reader = label and LabelReader(label)
        self._rng = np.random.default_rng(seed)
        self._anomalies = Reservoir(MAX_ANOMALIES, _Drawn.joined)
        self._others = Reservoir(MAX_NORMALS, _Drawn.joined)
        self._counts = RowCounts(0, 0, 0)
        self._levels = LevelCounts()
        self._ignored = {*ignored}
        self._first: tuple[str, pa.Schema] | None = None
        self._starts: list[int] = []
        self._files: list[str] = []

    def read(self, batches: Iterable[Batch]) -> Sample:
        """Read all batches of a stream, and return what is to be learned from."""
        for batch in rebatched(batches):
            with naming(batch.file, batch.start):
                self._add(batch)
        if not self._files:
            raise UserError("a table must have rows; got none.")
        return self._sample()

    def _add(self, batch: Batch) -> None:
        rows, n_before = batch.rows, self._counts.n_rows
        if not self._files or self._files[-1] != batch.file:
            self._files.append(batch.file)
            self._starts.append(n_before)
        label = self._reader and self._reader.column
        if label:
            label.check(rows.column_names)
        places, codes = self._read_labels(rows)
        features = rows.select(
            [n for n in rows.column_names if n != "" and n != (label and label.name)]
        )
        self._check_schema(batch.file, features.schema)
        _check_finite(features.drop_columns([*(self._ignored & {*features.column_names})]))
        if self._first:
            features = features.select(self._first[1].names)
        self._counts = self._counts.updated(RowCounts.of(codes), codes[:0])
        self._levels.add(features)
        keys = self._rng.random(len(codes)) + (codes == UNLABELLED)
        part, is_anomaly = (
            _Drawn(features, n_before + np.arange(len(codes)), places),
            codes == ANOMALY,
        )
        self._anomalies.offer(np.where(is_anomaly, keys, np.inf), part)
        self._others.offer(np.where(is_anomaly, np.inf, keys), part)

    def _read_labels(self, rows: pa.Table) -> tuple[Ints, Codes]:
        """Return the place of each row's label, and what it means."""
        if self._reader is None:
            return np.zeros(rows.num_rows, np.int64), read_labels(None, rows.num_rows)
        column = rows[self._reader.column.name]
        if pa.types.is_dictionary(column.type):  # which may have gaps, and values of no row
            column = column.cast(column.type.value_type)
        column = column.combine_chunks().dictionary_encode("encode")
        index = column.indices.to_numpy(zero_copy_only=False)
        places = self._reader.add(column.dictionary.to_pylist(), index.astype(np.int64))
        return places, self._reader.codes[places]

    def _check_schema(self, file: str, schema: pa.Schema) -> None:
        """Refuse rows whose columns are not those of the first."""
        if not schema.names:
            raise UserError("a table must have a column to learn from; none is left.")
        if self._first is None:
            self._first = file, schema
            return
        first, expected = self._first
        where = f"those of {first}" if first != file else "the first rows"
        check_same(expected, schema, where)
        known = [
            mine if pa.types.is_null(theirs.type) else theirs
            for theirs, mine in ((field, schema.field(field.name)) for field in expected)
        ]
        self._first = first, pa.schema(known)

    def _sample(self) -> Sample:
        whole = _Drawn.joined(self._anomalies.drain() + self._others.drain())
        whole = whole.take(np.argsort(whole.positions))
        labels, kinds = None, dict[str, int]()
        if self._reader:
            labels = self._reader.read(whole.labels)
            counts = self._reader.counts
            kinds = {kind: counts[kind] for kind in labels.kinds}
        return Sample(
            whole.rows,
            labels,
            replace(self._counts, kinds=kinds),
            self._levels,
            Places(whole.positions, self._starts, self._files),
        )


def _check_finite(features: pa.Table) -> None:
    """Refuse infinite numbers in any row, also in those that are not kept."""
    problems: dict[str, UserError] = {}
    for name, column in zip(features.column_names, features.columns, strict=True):
        if pa.types.is_floating(column.type):
            with noting(problems, name):
                check_finite(name, column.to_numpy())
    raise_all(problems.values())
