"""What the inference of kinds asks of the numbers of a column: of cells in memory, or counted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import final

import numpy as np

from fewlier.table.arrays import Bools, Floats, Ints
from fewlier.table.cells import Cells, as_text, missing, number_text

FEW = 20
"""Of more distinct values than these, none is counted by itself."""
MAX_COUNTED = 10_000
"""Distinct values of a column that are counted over the rows of a stream."""
_HEAD = 1000  # rows that show that a column has many values, without a look at all of them


class Values(ABC):
    """The numbers of a column that are not missing."""

    n: int
    """How many there are."""

    @property
    @abstractmethod
    def few(self) -> Mapping[float, int] | None:
        """How often each value occurs, ascending; None where they are more than `FEW`."""

    @property
    @abstractmethod
    def low(self) -> float:
        """The least."""

    @property
    @abstractmethod
    def high(self) -> float:
        """The greatest."""

    @property
    @abstractmethod
    def are_integers(self) -> bool:
        """Whether all are integers."""

    @property
    @abstractmethod
    def mean(self) -> float:
        """Their mean."""

    @property
    @abstractmethod
    def variance(self) -> float:
        """Their mean squared distance from the mean."""

    @property
    @abstractmethod
    def skewness(self) -> float:
        """Their third standardised moment."""

    @property
    def n_distinct(self) -> float:
        """Number of distinct values; infinite where they are more than `FEW`."""
        return np.inf if self.few is None else len(self.few)


@final
class Held(Values):
    """Numbers in memory, none of them missing.

    Parameters
    ----------
    numbers : array (n,)
    """

    def __init__(self, numbers: Floats) -> None:
        self._numbers, self.n = numbers, len(numbers)

    @cached_property
    def few(self) -> Mapping[float, int] | None:
        """How often each value occurs."""
        if len(np.unique(self._numbers[:_HEAD])) > FEW:
            return None
        values, counts = np.unique(self._numbers, return_counts=True)
        if len(values) > FEW:
            return None
        return dict(zip(values.tolist(), counts.tolist(), strict=True))

    @property
    def low(self) -> float:
        """The least."""
        return float(self._numbers.min())

    @property
    def high(self) -> float:
        """The greatest."""
        return float(self._numbers.max())

    @cached_property
    def are_integers(self) -> bool:
        """Whether all are integers."""
        return are_integers(self._numbers)

    @property
    def mean(self) -> float:
        """Their mean."""
        return float(self._numbers.mean())

    @property
    def variance(self) -> float:
        """Their mean squared distance from the mean."""
        return float(self._numbers.var())

    @property
    def skewness(self) -> float:
        """Their third standardised moment."""
        from scipy.stats import skew  # here, because scipy.stats takes a second to import

        # Skewness knows neither shift nor scale; on [0, 1] it neither overflows nor cancels.
        return float(skew((self._numbers - self.low) / (self.high - self.low)))


@final
@dataclass
class Counted(Values):
    """Numbers of a stream, of which only counts and moments are kept: those of all rows, exactly.

    Parameters
    ----------
    n : int
        How many were counted.
    low, high, mean : float
        The least, the greatest, the mean.
    squares, cubes : float
        Sums of the second and third powers of their distances from the mean.
    are_integers : bool
        Whether all are integers.
    counts : Counter, or None
        How often each value occurs; None once they are more than `MAX_COUNTED`.
    """

    n: int = 0
    low: float = np.inf
    high: float = -np.inf
    mean: float = 0.0
    squares: float = 0.0
    cubes: float = 0.0
    are_integers: bool = True
    counts: Counter[float] | None = field(default_factory=Counter)

    def add(self, numbers: Floats, times: Ints) -> None:
        """Count further numbers, none missing, each as often as `times` says."""
        if not len(numbers):
            return
        self.low = min(self.low, float(numbers.min()))
        self.high = max(self.high, float(numbers.max()))
        self.are_integers = self.are_integers and are_integers(numbers)
        self._add_moments(numbers, times)
        if self.counts is not None:
            values, place = np.unique(numbers, return_inverse=True)
            totals = np.bincount(place, times, len(values)).astype(np.int64)
            self.counts.update(dict(zip(values.tolist(), totals.tolist(), strict=True)))
            if len(self.counts) > MAX_COUNTED:
                self.counts = None

    def _add_moments(self, numbers: Floats, times: Ints) -> None:
        """Combine moments of two parts (Chan, Golub & LeVeque 1979; Terriberry 2007)."""
        with np.errstate(over="ignore", invalid="ignore"):
            n_new = int(times.sum())
            mean = float((numbers * times).sum() / n_new)
            far = numbers - mean
            squares, cubes = float((times * far**2).sum()), float((times * far**3).sum())
            n, step = self.n + n_new, np.float64(mean - self.mean)
            self.cubes += float(
                cubes
                + step**3 * self.n * n_new * (self.n - n_new) / n**2
                + 3 * step * (self.n * squares - n_new * self.squares) / n
            )
            self.squares += float(squares + step**2 * self.n * n_new / n)
            self.mean += float(step * n_new / n)
            self.n = n

    def copy(self) -> Counted:
        """Return a copy that can be added to."""
        return replace(self, counts=None if self.counts is None else self.counts.copy())

    @property
    def few(self) -> Mapping[float, int] | None:
        """How often each value occurs."""
        if self.counts is None or len(self.counts) > FEW:
            return None
        return dict(sorted(self.counts.items()))

    @property
    def variance(self) -> float:
        """Their mean squared distance from the mean."""
        return self.squares / self.n

    @property
    def skewness(self) -> float:
        """Their third standardised moment; NaN where it is beyond float64."""
        with np.errstate(all="ignore"):
            return float(np.float64(self.cubes / self.n) / np.float64(self.variance) ** 1.5)


@final
@dataclass(frozen=True, eq=False)
class ColumnValues:
    """The cells of a column of training rows, as the inference of kinds looks at them.

    Parameters
    ----------
    cells : array (n,)
        The cells, or those of a sample.
    normal : array of bool (n,)
        The rows that are not labelled anomalies.
    counted : Counted, Counter, or None
        Where the rows are a sample: what was counted over all rows that are not labelled
        anomalies, numbers or texts; None where only the sample is known.
    """

    cells: Cells
    normal: Bools
    counted: Counted | Counter[str] | None = None

    @property
    def has_values(self) -> bool:
        """Whether any cell is not missing."""
        is_counted = isinstance(self.counted, Counted) and self.counted.n > 0
        return is_counted or not missing(self.cells).all()

    @cached_property
    def everyone(self) -> Values:
        """The numbers of all rows."""
        present = ~missing(self.cells)
        if not isinstance(self.counted, Counted):
            return Held(self.cells[present])
        numbers = self.cells[present & ~self.normal]
        total = self.counted.copy()
        total.add(numbers, np.ones(len(numbers), np.int64))
        return total

    @cached_property
    def usual(self) -> Values:
        """The numbers of the rows that are not labelled anomalies."""
        if isinstance(self.counted, Counted):
            return self.counted
        return Held(self.cells[~missing(self.cells) & self.normal])

    def texts(self, *, usual: bool = False) -> Counter[str]:
        """Count the cells as texts, of all rows or only of the usual ones."""
        chosen = ~missing(self.cells) & (self.normal if usual else True)
        if isinstance(self.counted, Counter):
            chosen &= ~self.normal
            return self.counted + Counter(as_text(self.cells[chosen]))
        values = self.usual if usual else self.everyone
        if isinstance(values, Counted) and values.counts is not None:
            return Counter({number_text(number): n for number, n in values.counts.items()})
        return Counter(as_text(self.cells[chosen]))


def are_integers(numbers: Floats) -> bool:
    """Whether numbers, none missing, are all integers."""
    return bool((numbers == np.floor(numbers)).all())
