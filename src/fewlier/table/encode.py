"""`Encoder`: a table as arrays, some for a network to read, some for conditionals to score."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fewlier.modelfile.state import State, require
from fewlier.table.arrays import Bools, Floats, Ints, hash_rows
from fewlier.table.cells import missing
from fewlier.table.columns import Kind
from fewlier.table.frame import Table
from fewlier.table.scaling import (
    LOGGED,
    MAX_FLOAT,
    MAX_LEVELS,
    ColumnStats,
    impossible_targets,
    stretched,
)
from fewlier.table.schema import Schema

_BLOCK = 8192  # rows that are encoded at a time


@dataclass(frozen=True, eq=False)
class Encoded:
    """A table of n rows and D columns as arrays.

    Parameters
    ----------
    inputs : array of float32, shape (n, n_inputs)
        What a network reads; all within [-1, 2].
    targets : array of float32, shape (n, D)
        What the conditionals score; 0 where a cell is missing. They do not score an impossible
        cell: it is the number itself, or 0 if it is not a number.
    observed : array of bool, shape (n, D)
        Cells that are not missing.
    impossible : array of bool, shape (n, D)
        Observed cells that have no probability in their column: a category never seen, a
        negative or fractional count, a third value of a binary, a negative amount, a date far
        from all of training.
    """

    inputs: npt.NDArray[np.float32]
    targets: npt.NDArray[np.float32]
    observed: Bools
    impossible: Bools

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.inputs)

    def ids(self) -> Ints:
        """Return a number for each row, shape (n,), that only its copies share.

        A row has the same number in every table of one encoder.
        """
        columns = zip(self.targets.T, self.observed.T, self.impossible.T, strict=True)
        return hash_rows(_as_bits(*column) for column in columns)

    def take(self, rows: npt.NDArray[Any]) -> Encoded:
        """Return the rows given by integer positions or by a boolean mask."""
        return Encoded(*(array[rows] for array in vars(self).values()))

    def followed_by(self, other: Encoded) -> Encoded:
        """Return the rows of this table and then those of another."""
        both = zip(vars(self).values(), vars(other).values(), strict=True)
        return Encoded(*map(np.concatenate, both))

    def state(self) -> State:
        """Return what a model file holds of it."""
        return State({}, vars(self))

    @classmethod
    def from_state(cls, state: State, encoder: Encoder) -> Encoded:
        """Inverse of `state`; refuses rows that no table can have been encoded as."""
        inputs = state.array("inputs", np.float32, (None, encoder.n_inputs))
        shape = len(inputs), encoder.n_columns
        targets = state.array("targets", np.float32, shape)
        observed, impossible = (state.flags(name, shape) for name in ("observed", "impossible"))
        codings = np.array([column.coding for column in encoder.schema.columns])
        values = np.where(observed & ~impossible, targets, 0)
        is_code = (codings == Kind.BINARY) | (codings == Kind.CATEGORY)
        most = np.where(codings == Kind.BINARY, 1, encoder.n_levels - 1)[is_code]
        codes = values[:, is_code]
        are_codes = (codes >= 0) & (codes <= most) & (codes == np.floor(codes))
        require(bool(are_codes.all()), f"{state.name!r} has codes beyond the levels of a column.")
        amounts = values[:, np.isin(codings, LOGGED)]
        require(bool((amounts >= 0).all()), f"{state.name!r} has counts or amounts below 0.")
        return cls(inputs, targets, observed, impossible)


@dataclass(frozen=True)
class Encoder:
    """Turns tables of one schema into arrays, on the scale of the training normals.

    A numeric column has one input, a category one per code (one-hot; all zeros if it is missing
    or was never seen). After these comes one input per `missable` column, 1 where the cell is
    missing. The input of a missing number is the mean.

    Targets, per coding: *real* the value as a fraction of the training range, beyond [-1, 2]
    growing only logarithmically; *binary* 0 or 1; *count* and *positive* the value itself;
    *category* the position among the levels, most frequent first, at most ``MAX_LEVELS - 1``.

    Parameters
    ----------
    schema : Schema
        The columns.
    stats : tuple of ColumnStats
        What was measured on the training normals, one per column.
    n_rows : int
        Number of training normals.
    """

    schema: Schema
    stats: tuple[ColumnStats, ...]
    n_rows: int

    @classmethod
    def fit(cls, schema: Schema, table: Table) -> Encoder:
        """Measure the training normals, a table in the form of `schema` (see `Schema.match`)."""
        stats = tuple(
            ColumnStats.measure(column, table.cells[column.name]) for column in schema.columns
        )
        return cls(schema, stats, table.n_rows)

    @property
    def n_columns(self) -> int:
        """Number of columns D."""
        return len(self.stats)

    @property
    def n_inputs(self) -> int:
        """Number of inputs a network reads."""
        return len(self.input_owner)

    @property
    def input_owner(self) -> Ints:
        """Index of the column that each input belongs to, shape (n_inputs,)."""
        values = np.repeat(np.arange(self.n_columns), np.maximum(self.n_levels, 1))
        return np.concatenate([values, np.flatnonzero(self.missable)])

    @property
    def n_levels(self) -> Ints:
        """Number of codes of each column coded as category, 0 for the others, shape (D,)."""
        is_category = [column.coding is Kind.CATEGORY for column in self.schema.columns]
        n_levels = [len(column.levels) for column in self.schema.columns]
        return np.where(is_category, np.clip(n_levels, 1, MAX_LEVELS), 0)

    @property
    def log_scale(self) -> Floats:
        """Log of the span of each column coded as real, 0 for the others, shape (D,).

        A log density of targets minus their `log_scale` is one in the user's units, within the
        range where targets are linear.
        """
        is_real = [column.coding is Kind.REAL for column in self.schema.columns]
        return np.log(np.where(is_real, [stats.span for stats in self.stats], 1.0))

    @property
    def mean_target(self) -> Floats:
        """Mean target of the training normals, shape (D,)."""
        return np.array([stats.mean_target for stats in self.stats], dtype=np.float64)

    @property
    def ends(self) -> Floats:
        """The lowest and the highest number of the training normals, shape (D, 2)."""
        codings = [column.coding for column in self.schema.columns]
        return np.array([s.ends(c) for s, c in zip(self.stats, codings, strict=True)])

    @property
    def missing_rate(self) -> Floats:
        """Share of missing cells among the training normals, shape (D,)."""
        return np.array([stats.missing_rate for stats in self.stats], dtype=np.float64)

    @property
    def missable(self) -> Bools:
        """Columns with a missing cell among the training normals, shape (D,)."""
        return self.missing_rate > 0

    def encode(self, table: Table) -> Encoded:
        """Encode a table in the form of the schema (see `Schema.match`), row by row."""
        n, n_columns = table.n_rows, self.n_columns
        encoded = Encoded(
            inputs=np.zeros((n, self.n_inputs), dtype=np.float32),
            targets=np.zeros((n, n_columns), dtype=np.float32),
            observed=np.zeros((n, n_columns), dtype=np.bool_),
            impossible=np.zeros((n, n_columns), dtype=np.bool_),
        )
        for start in range(0, n, _BLOCK):
            self._fill(encoded, table, slice(start, start + _BLOCK))
        return encoded

    def _fill(self, encoded: Encoded, table: Table, rows: slice) -> None:
        """Encode some rows of a table, column by column; few enough to stay in the cache."""
        inputs, targets, observed, impossible = (array[rows] for array in vars(encoded).values())
        *own, gaps = np.split(inputs, np.maximum(self.n_levels, 1).cumsum(), axis=1)
        for d, (column, stats) in enumerate(zip(self.schema.columns, self.stats, strict=True)):
            cells = table.cells[column.name][rows]
            values = column.values(cells)
            known = ~np.isnan(values)
            scored, read = stats.encode(column.coding, values)
            observed[:, d] = ~missing(cells)
            impossible[:, d] = observed[:, d] & ~known
            targets[:, d] = np.where(known, scored, 0.0)
            if impossible[:, d].any():
                beyond = impossible_targets(column, cells)
                targets[:, d] = np.where(impossible[:, d], beyond, targets[:, d])
            if column.coding is Kind.CATEGORY:
                own[d][known, scored[known].astype(np.int64)] = 1.0
            else:
                own[d][:, 0] = np.where(known, read, stats.fill)
        gaps[:] = ~observed[:, self.missable]

    def as_never_seen(self, encoded: Encoded, cells: Bools) -> Encoded:
        """Encode marked cells, shape (n, D), as if training had never seen their level."""
        inputs, targets = encoded.inputs.copy(), encoded.targets.copy()
        inputs[cells[:, self.input_owner]] = 0
        for d in np.flatnonzero(cells.any(0)):
            column, rows = self.schema.columns[d], cells[:, d]
            is_number = column.kind is not Kind.CATEGORY
            codes = targets[rows, d].astype(np.int64)
            targets[rows, d] = np.array(column.levels, np.float64)[codes] if is_number else 0
        return Encoded(inputs, targets, encoded.observed, encoded.impossible | cells)

    def outermost(self, encoded: Encoded, ids: Ints) -> Bools:
        """Mark the cells of training normals that alone hold the lowest or the highest number.

        Copies of a row, which share its id, are one row. Returns shape (n, D).
        """
        found = np.zeros_like(encoded.observed)
        for d, start in self._numbers():
            known = encoded.observed[:, d] & ~encoded.impossible[:, d]
            x = encoded.inputs[:, start]
            for at_end in (known & (x <= 0), known & (x >= 1)):
                rows = np.flatnonzero(at_end)
                found[rows, d] = len(rows) > 0 and bool((ids[rows] == ids[rows[0]]).all())
        return found

    def as_outside(self, encoded: Encoded, cells: Bools) -> Encoded:
        """Encode marked cells, `outermost` ones, as if training had never seen their number."""
        inputs, targets = encoded.inputs.copy(), encoded.targets.copy()
        for d, start in self._numbers():
            rows = np.flatnonzero(cells[:, d])
            scored, inputs[rows, start] = self.stats[d].as_outside(inputs[rows, start])
            if self.schema.columns[d].coding is Kind.REAL:
                targets[rows, d] = scored
        return Encoded(inputs, targets, encoded.observed, encoded.impossible)

    def _numbers(self) -> Iterator[tuple[int, int]]:
        """Yield the columns that networks read as numbers within a range, and their inputs."""
        start = np.cumsum(np.maximum(self.n_levels, 1)) - np.maximum(self.n_levels, 1)
        for d, column in enumerate(self.schema.columns):
            if column.coding not in (Kind.BINARY, Kind.CATEGORY):
                yield d, int(start[d])

    def decode(self, column: Ints, targets: Floats) -> Floats:
        """Return targets of numeric columns in the user's units; counts as integers.

        Parameters
        ----------
        column : array (m,)
            The column of each line.
        targets : array (m, q)
        """
        codings = np.array([c.coding for c in self.schema.columns])[column]
        low, span = np.array([(s.low, s.span) for s in self.stats]).T[:, column, None]
        with np.errstate(over="ignore"):
            real = np.clip(low + span * stretched(targets), -MAX_FLOAT, MAX_FLOAT)
        values = np.where((codings == Kind.REAL)[:, None], real, targets)
        return np.where((codings == Kind.COUNT)[:, None], np.round(values), values)

    def state(self) -> State:
        """Return what a model file holds of it."""
        stats = [asdict(stats) for stats in self.stats]
        return State({"schema": self.schema.state(), "stats": stats, "n_rows": self.n_rows})

    @classmethod
    def from_state(cls, state: State) -> Encoder:
        """Inverse of `state`, checked."""
        schema = Schema.from_state(state.part("schema"))
        stats = tuple(map(ColumnStats.from_state, state.parts("stats")))
        require(len(stats) == len(schema.columns), "not all of its columns have statistics.")
        return cls(schema, stats, state.count("n_rows"))


def _as_bits(
    targets: npt.NDArray[np.float32], observed: Bools, impossible: Bools
) -> npt.NDArray[np.uint64]:
    """Return a number for each cell of a column that equal cells share, shape (n,)."""
    known = np.where(observed, targets, np.float32(0)) + np.float32(0)  # -0 is 0
    flags = observed.astype(np.uint64) + 2 * impossible.astype(np.uint64)
    return known.view(np.uint32) | flags << np.uint64(32)
