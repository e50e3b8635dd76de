"""What the inference of kinds asks of the cells of a column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from fewlier.table.arrays import Bools, Floats
from fewlier.table.cells import Cells, as_text, missing

MAX_COUNTED_VALUES = 20
"""Most distinct values of a column of which each is counted."""
_HEAD = 1000  # rows that show that a column has many values, without a look at all of them


@final
class Values:
    """Numbers of a column, none of them missing.

    Parameters
    ----------
    numbers : array (n,)
    """

    def __init__(self, numbers: Floats) -> None:
        self._numbers, self.n = numbers, len(numbers)

    @cached_property
    def few(self) -> Mapping[float, int] | None:
        """How often each value occurs, ascending; None where they are too many."""
        if len(np.unique(self._numbers[:_HEAD])) > MAX_COUNTED_VALUES:
            return None
        values, counts = np.unique(self._numbers, return_counts=True)
        if len(values) > MAX_COUNTED_VALUES:
            return None
        return dict(zip(values.tolist(), counts.tolist(), strict=True))

    @property
    def n_distinct(self) -> float:
        """Number of distinct values; infinite where they are too many."""
        return np.inf if self.few is None else len(self.few)

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
@dataclass(frozen=True, eq=False)
class ColumnValues:
    """The cells of a column of training rows, as the inference of kinds looks at them.

    Parameters
    ----------
    cells : array (n,)
        The cells.
    normal : array of bool (n,)
        The rows that are not labelled anomalies.
    """

    cells: Cells
    normal: Bools

    @cached_property
    def everyone(self) -> Values:
        """The numbers of all rows."""
        return Values(self.cells[~missing(self.cells)])

    @cached_property
    def usual(self) -> Values:
        """The numbers of the rows that are not labelled anomalies."""
        return Values(self.cells[~missing(self.cells) & self.normal])

    def texts(self, *, usual: bool = False) -> Counter[str]:
        """Count the cells as texts, of all rows or only of the usual ones."""
        chosen = ~missing(self.cells) & (self.normal if usual else True)
        return Counter(as_text(self.cells[chosen]))


def most_frequent(counts: Mapping[str, int]) -> tuple[str, ...]:
    """Return texts in the order of levels: the most frequent first."""
    return tuple(sorted(counts, key=lambda text: (-counts[text], text)))


def are_integers(numbers: Floats) -> bool:
    """Whether numbers, none missing, are all integers."""
    return bool((numbers == np.floor(numbers)).all())
