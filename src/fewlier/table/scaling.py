"""How the cells of one column become targets and inputs, on the scale of the training normals."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fewlier.modelfile.state import State, require
from fewlier.table.arrays import Floats
from fewlier.table.cells import Cells, missing
from fewlier.table.columns import MAX_COUNT, Column, Kind

MAX_LEVELS = 64
"""Codes of a category column at most; the rarest categories share the last one."""
# Inputs are cut at these fractions of the training range; beyond, real targets grow like
# logarithms.
LOW_END, HIGH_END = -1.0, 2.0
# Positive values are cut at these, so that powers and logarithms stay finite in float32.
MIN_POSITIVE, MAX_POSITIVE = 1e-30, 1e30
MAX_FLOAT = float(np.finfo(np.float64).max)
_CONSTANT_SPAN = 1e-3
LOGGED = (Kind.COUNT, Kind.POSITIVE)
"""Codings whose values span orders of magnitude, so that a network reads their logarithm."""


@dataclass(frozen=True, slots=True)
class ColumnStats:
    """What the encoder knows of one column of the training normals.

    Parameters
    ----------
    unit : float
        Mean of a count or positive column, whose input is ``log1p(x / unit)``, scaled; else 1.
    low, span : float
        Numbers are scaled to ``(x - low) / span``, which is in [0, 1] on the training normals. The
        span of a constant column is a thousandth of its value, so that any other value is far
        away. An empty column, a binary and a category have 0 and 1.
    fill : float
        Input where a numeric cell is missing or impossible: the mean input.
    mean_target : float
        Mean of the targets that are observed and possible; 0 if there are none.
    missing_rate : float
        Share of missing cells.
    next_low, next_high : float
        The lowest and the highest number between the ends of the range, scaled.
    """

    unit: float = 1.0
    low: float = 0.0
    span: float = 1.0
    fill: float = 0.0
    mean_target: float = 0.0
    missing_rate: float = 0.0
    next_low: float = 0.0
    next_high: float = 1.0

    @classmethod
    def measure(cls, column: Column, cells: Cells) -> ColumnStats:
        """Measure the possible cells of one column."""
        coding, values = column.coding, column.values(cells)
        values = values[~np.isnan(values)]
        stats = cls(missing_rate=float(missing(cells).mean()) if len(cells) else 0.0)
        if not len(values):
            return stats
        if coding in LOGGED:
            stats = replace(stats, unit=float(_bounded(coding, values).mean()) or 1.0)
        if coding not in (Kind.BINARY, Kind.CATEGORY):
            unscaled = stats.scale(coding, _bounded(coding, values))
            low, high = float(unscaled.min()), float(unscaled.max())
            span = min(high - low, MAX_FLOAT) or _CONSTANT_SPAN * max(1.0, abs(low))
            stats = replace(stats, low=low, span=span)
        targets, inputs = stats.encode(coding, values)
        stats = replace(stats, fill=float(inputs.mean()), mean_target=float(targets.mean()))
        inner = inputs[(inputs > 0) & (inputs < 1)]
        if coding in (Kind.BINARY, Kind.CATEGORY) or not len(inner):
            return stats
        return replace(stats, next_low=float(inner.min()), next_high=float(inner.max()))

    def encode(self, coding: Kind, values: Floats) -> tuple[Floats, Floats]:
        """Return the targets and inputs of values (see `Column.values`), shape (n,) each.

        NaN stays. The inputs of a category are not these, but the one-hot form of its targets.
        """
        numbers = _bounded(coding, values)
        scaled = self.scale(coding, numbers)
        targets = compressed(scaled) if coding is Kind.REAL else numbers
        return targets, np.clip(scaled, LOW_END, HIGH_END)

    def scale(self, coding: Kind, numbers: Floats) -> Floats:
        """Return numbers as fractions of the training range, always finite; NaN stays."""
        if coding in LOGGED:
            numbers = np.log1p(numbers / self.unit)
        with np.errstate(over="ignore"):
            distance = np.clip(numbers - self.low, -MAX_FLOAT, MAX_FLOAT)
            return np.clip(distance / self.span, -MAX_FLOAT, MAX_FLOAT)

    def ends(self, coding: Kind) -> tuple[float, float]:
        """Return the lowest and the highest number of the training normals."""
        with np.errstate(over="ignore"):
            ends = np.array([self.low, self.low + self.span])
            ends = self.unit * np.expm1(ends) if coding in LOGGED else ends
        low, high = np.clip(ends, -MAX_FLOAT, MAX_FLOAT).tolist()
        return low, high

    def as_outside(self, ends: Floats) -> tuple[Floats, Floats]:
        """Return targets and inputs of numbers at the ends, 0 or 1, of a range that ends before.

        They lie where the range without its lowest, or without its highest number, has them.
        """
        low = -self.next_low / (1 - self.next_low)
        scaled = np.where(ends > 0, 1 / self.next_high, low)
        return compressed(scaled), np.clip(scaled, LOW_END, HIGH_END)

    @classmethod
    def from_state(cls, state: State) -> ColumnStats:
        """Read what a file holds of it: its fields."""
        numbers = {name: state.number(name) for name in ("low", "fill", "mean_target")}
        numbers |= {name: state.positive(name) for name in ("unit", "span")}
        shares = ("missing_rate", "next_low", "next_high")
        numbers |= {name: state.number(name, least=0, most=1) for name in shares}
        is_inside = numbers["next_low"] < 1 and numbers["next_high"] > 0
        require(is_inside, "the range of a column has no numbers inside.")
        return cls(**numbers)


def _bounded(coding: Kind, values: Floats) -> Floats:
    """Cut values to what the conditionals can compute with in float32; NaN stays."""
    match coding:
        case Kind.COUNT:
            return np.minimum(values, MAX_COUNT)
        case Kind.POSITIVE:
            return np.where(values < MIN_POSITIVE, 0.0, np.minimum(values, MAX_POSITIVE))
        case Kind.CATEGORY:
            return np.minimum(values, MAX_LEVELS - 1)
        case _:
            return values


def impossible_targets(column: Column, cells: Cells) -> Floats | float:
    """Return impossible cells as numbers in the user's units; 0 if they are not numbers.

    The low value of a binary is 0 and its high value 1, as in its targets.
    """
    if column.kind is Kind.CATEGORY:
        return 0.0
    steps = ColumnStats()
    if column.kind is Kind.BINARY and column.coding in (Kind.BINARY, Kind.CATEGORY):
        low, high = map(float, column.levels)
        steps = ColumnStats(low=low, span=min(high - low, MAX_FLOAT))
    return np.clip(steps.scale(Kind.REAL, cells), -MAX_POSITIVE, MAX_POSITIVE)


def compressed(scaled: Floats) -> Floats:
    """Let far values grow like logarithms: 1e300 stays finite, and odder than 1e10."""
    linear: Floats = np.clip(scaled, LOW_END, HIGH_END)
    excess = scaled - linear
    if not excess.any():  # as nearly always, and logarithms take most of the time
        return linear
    compressed: Floats = linear + np.copysign(np.log1p(np.abs(excess)), excess)
    return compressed


def stretched(targets: Floats) -> Floats:
    """Inverse of `compressed`."""
    linear: Floats = np.clip(targets, LOW_END, HIGH_END)
    excess = targets - linear
    with np.errstate(over="ignore"):
        stretched: Floats = linear + np.copysign(np.expm1(np.abs(excess)), excess)
    return stretched
