"""`Encoder`: a table as arrays, some for a network to read, some for conditionals to score."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fewlier.arrays import Bools, Floats, Ints, hash_rows
from fewlier.state import State, require
from fewlier.table.cells import Cells, missing
from fewlier.table.columns import MAX_COUNT, Column, Kind, Schema
from fewlier.table.frame import Table

MAX_LEVELS = 64
"""Codes per category column; the rarer categories share the last one."""
# What a network reads, and where the target of a real value starts to grow only logarithmically.
_LOW_END, _HIGH_END = -1.0, 2.0
# Positive values beyond are read as these: their powers and logarithms stay finite in float32.
_MIN_POSITIVE, _MAX_POSITIVE = 1e-30, 1e30
_MAX_FLOAT = float(np.finfo(np.float64).max)
_CONSTANT_SPAN = 1e-3
LOGGED = (Kind.COUNT, Kind.POSITIVE)
"""Codings whose values span orders of magnitude, so that a network reads their logarithm."""


@dataclass(frozen=True, eq=False)
class Encoded:
    """A table of n rows and D columns as arrays.

    Parameters
    ----------
    inputs : array of float32, shape (n, n_inputs)
        What a network reads; all within [-1, 2].
    targets : array of float32, shape (n, D)
        What the conditionals score; 0 where a cell is missing. Outside its domain, a number is
        what it is, and what is none is 0: conditionals do not score it.
    observed : array of bool, shape (n, D)
        Cells that are not missing.
    impossible : array of bool, shape (n, D)
        Cells that are observed but that the column's distribution gives no probability: a
        category never seen, a negative or fractional count, a third value of a binary, a
        negative positive, a date far from all of training.
    """

    inputs: npt.NDArray[np.float32]
    targets: npt.NDArray[np.float32]
    observed: Bools
    impossible: Bools

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.inputs)

    def ids(self) -> Ints:
        """Return a number for each row, shape (n,), that its copies share and no other row has.

        It is the same in every table of one encoder.
        """
        columns = zip(self.targets.T, self.observed.T, self.impossible.T, strict=True)
        return hash_rows(_as_bits(*column) for column in columns)

    def take(self, rows: npt.NDArray[Any]) -> Encoded:
        """Return the rows given by integer positions or by a boolean mask."""
        return Encoded(
            self.inputs[rows], self.targets[rows], self.observed[rows], self.impossible[rows]
        )

    def followed_by(self, other: Encoded) -> Encoded:
        """Return the rows of this table and then those of another."""
        return Encoded(
            np.concatenate([self.inputs, other.inputs]),
            np.concatenate([self.targets, other.targets]),
            np.concatenate([self.observed, other.observed]),
            np.concatenate([self.impossible, other.impossible]),
        )

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


@dataclass(frozen=True, slots=True)
class ColumnStats:
    """What the encoder knows of one column of the training normals.

    Parameters
    ----------
    unit : float
        Mean of a count or positive column, whose input is ``log1p(x / unit)``, scaled; else 1.
    low, span : float
        What is scaled to ``(x - low) / span``, which lies in [0, 1] on the training normals. The
        span of a constant column is a thousandth of its value, so that any other value is far
        away; that of an empty column is 1; binaries and categories have 0 and 1.
    fill : float
        Input where a numeric cell is missing or outside its domain: the mean input.
    mean_target : float
        Mean of the targets that are observed and in the domain; 0 if none is.
    missing_rate : float
        Share of missing cells.
    """

    unit: float = 1.0
    low: float = 0.0
    span: float = 1.0
    fill: float = 0.0
    mean_target: float = 0.0
    missing_rate: float = 0.0

    def scale(self, coding: Kind, numbers: Floats) -> Floats:
        """Numbers as fractions of the training range, finite however far away; NaN stays."""
        if coding in LOGGED:
            numbers = np.log1p(numbers / self.unit)
        with np.errstate(over="ignore"):
            distance = np.clip(numbers - self.low, -_MAX_FLOAT, _MAX_FLOAT)
            return np.clip(distance / self.span, -_MAX_FLOAT, _MAX_FLOAT)

    @classmethod
    def from_state(cls, state: State) -> ColumnStats:
        """Read what a file holds of it: its fields."""
        return cls(
            unit=state.positive("unit"),
            low=state.number("low"),
            span=state.positive("span"),
            fill=state.number("fill"),
            mean_target=state.number("mean_target"),
            missing_rate=state.number("missing_rate", least=0, most=1),
        )


@dataclass(frozen=True)
class Encoder:
    """Turns tables of one schema into arrays, on the scale of the training normals.

    A column has one input if it is numeric, or one per code if it is a category (one-hot; all
    zeros for a category never seen, or missing). After these comes one input per `missable`
    column, 1 where the cell is missing. Missing numbers read as the mean.

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
        stats = tuple(_measure(column, table.cells[column.name]) for column in schema.columns)
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
        return np.array([_n_codes(column) for column in self.schema.columns], dtype=np.int64)

    @property
    def log_scale(self) -> Floats:
        """Log of the span of each column coded as real, 0 for the others, shape (D,).

        A log density of targets minus their `log_scale` is one in the user's units, within the
        range where targets are linear.
        """
        spans = [
            stats.span if column.coding is Kind.REAL else 1.0
            for column, stats in zip(self.schema.columns, self.stats, strict=True)
        ]
        return np.log(np.array(spans, dtype=np.float64))

    @property
    def mean_target(self) -> Floats:
        """Mean target of the training normals, shape (D,)."""
        return np.array([stats.mean_target for stats in self.stats], dtype=np.float64)

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
        ends = np.maximum(self.n_levels, 1).cumsum()
        inputs = np.split(encoded.inputs, ends, axis=1)
        for d, (column, stats) in enumerate(zip(self.schema.columns, self.stats, strict=True)):
            cells = table.cells[column.name]
            values = column.values(cells)
            known = ~np.isnan(values)
            targets, numeric_inputs = _targets_and_inputs(column.coding, stats, values)
            encoded.observed[:, d] = ~missing(cells)
            encoded.impossible[:, d] = encoded.observed[:, d] & ~known
            beyond = np.where(encoded.impossible[:, d], _beyond(column, cells), 0.0)
            encoded.targets[:, d] = np.where(known, targets, beyond)
            if column.coding is Kind.CATEGORY:
                inputs[d][known, targets[known].astype(np.int64)] = 1.0
            else:
                inputs[d][:, 0] = np.where(known, numeric_inputs, stats.fill)
        inputs[-1][:] = ~encoded.observed[:, self.missable]
        return encoded

    def as_never_seen(self, encoded: Encoded, cells: Bools) -> Encoded:
        """Encode marked cells, shape (n, D), as `encode` does a level that training never had."""
        inputs, targets = encoded.inputs.copy(), encoded.targets.copy()
        inputs[cells[:, self.input_owner]] = 0
        for d in np.flatnonzero(cells.any(0)):
            column, rows = self.schema.columns[d], cells[:, d]
            is_number = column.kind is not Kind.CATEGORY
            codes = targets[rows, d].astype(np.int64)
            targets[rows, d] = np.array(column.levels, np.float64)[codes] if is_number else 0
        return Encoded(inputs, targets, encoded.observed, encoded.impossible | cells)

    def decode(self, column: Ints, targets: Floats) -> Floats:
        """Return targets of numeric columns in the user's units; counts as integers.

        Parameters
        ----------
        column : array (m,)
            The column of each line.
        targets : array (m, q)
        """
        codings = np.array([c.coding for c in self.schema.columns])[column]
        stats = [self.stats[d] for d in column.tolist()]
        low, span = (
            np.array([getattr(s, name) for s in stats])[:, None] for name in ("low", "span")
        )
        with np.errstate(over="ignore"):
            real = np.clip(low + span * _stretched(targets), -_MAX_FLOAT, _MAX_FLOAT)
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


def _measure(column: Column, cells: Cells) -> ColumnStats:
    """Take the statistics of one column over the cells in its domain."""
    coding, values = column.coding, column.values(cells)
    values = values[~np.isnan(values)]
    stats = ColumnStats(missing_rate=float(missing(cells).mean()) if len(cells) else 0.0)
    if not len(values):
        return stats
    if coding in LOGGED:
        stats = replace(stats, unit=float(_bounded(coding, values).mean()) or 1.0)
    if coding not in (Kind.BINARY, Kind.CATEGORY):
        unscaled = stats.scale(coding, _bounded(coding, values))
        low, high = float(unscaled.min()), float(unscaled.max())
        span = min(high - low, _MAX_FLOAT) or _CONSTANT_SPAN * max(1.0, abs(low))
        stats = replace(stats, low=low, span=span)
    targets, inputs = _targets_and_inputs(coding, stats, values)
    return replace(stats, fill=float(inputs.mean()), mean_target=float(targets.mean()))


def _targets_and_inputs(coding: Kind, stats: ColumnStats, values: Floats) -> tuple[Floats, Floats]:
    """Encode the values of one column (see `Column.values`), shape (n,) each; NaN stays.

    The inputs are those of numeric codings; a category's are the one-hot form of its targets.
    """
    numbers = _bounded(coding, values)
    scaled = stats.scale(coding, numbers)
    targets = _compressed(scaled) if coding is Kind.REAL else numbers
    return targets, np.clip(scaled, _LOW_END, _HIGH_END)


def _bounded(coding: Kind, values: Floats) -> Floats:
    """Values within what the conditionals can compute with in float32; NaN stays."""
    match coding:
        case Kind.COUNT:
            return np.minimum(values, MAX_COUNT)
        case Kind.POSITIVE:
            return np.where(values < _MIN_POSITIVE, 0.0, np.minimum(values, _MAX_POSITIVE))
        case Kind.CATEGORY:
            return np.minimum(values, MAX_LEVELS - 1)
        case _:
            return values


def _beyond(column: Column, cells: Cells) -> Floats | float:
    """Return cells as numbers, though their coding cannot score them: in the user's units.

    But those of a binary count from its low value in steps to its high one, as its targets do.
    """
    if column.kind is Kind.CATEGORY:
        return 0.0
    steps = ColumnStats()
    if column.kind is Kind.BINARY and column.coding in (Kind.BINARY, Kind.CATEGORY):
        low, high = map(float, column.levels)
        steps = ColumnStats(low=low, span=min(high - low, _MAX_FLOAT))
    return np.clip(steps.scale(Kind.REAL, cells), -_MAX_POSITIVE, _MAX_POSITIVE)


def _compressed(scaled: Floats) -> Floats:
    """Let far values grow only logarithmically: 1e300 stays finite and odder than 1e10."""
    linear: Floats = np.clip(scaled, _LOW_END, _HIGH_END)
    excess = scaled - linear
    compressed: Floats = linear + np.copysign(np.log1p(np.abs(excess)), excess)
    return compressed


def _stretched(targets: Floats) -> Floats:
    """Inverse of `_compressed`."""
    linear: Floats = np.clip(targets, _LOW_END, _HIGH_END)
    excess = targets - linear
    with np.errstate(over="ignore"):
        stretched: Floats = linear + np.copysign(np.expm1(np.abs(excess)), excess)
    return stretched


def _n_codes(column: Column) -> int:
    """Count the codes of a column: 0 if it is numeric, and at least 1 if it is a category."""
    if column.coding is not Kind.CATEGORY:
        return 0
    return max(1, min(len(column.levels), MAX_LEVELS))
