"""`Ranges`: from what a density expects of a number to the range of nine normal rows in ten."""

import math
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from fewlier.density.joint import SHARES
from fewlier.modelfile.state import State, require
from fewlier.table import Encoded, Encoder, Kind
from fewlier.table.arrays import Bools, Floats, Ints

HELD = SHARES[-1] - SHARES[0]
"""Share of normal rows whose value a range holds."""
MAX_MEASURED = 400
"""Most rows that say how wide ranges must be: enough for 90 % to mean 87 to 93 %."""
_MIN_WIDTH = 1e-6  # as a share of the training range; of a count half a unit
# A range that lies within what training holds by less than this share is none.
_MIN_INSIDE = 0.25


class Range(NamedTuple):
    """What was expected of m numbers in the user's units, each of shape (m,).

    `is_unlike` marks those where the density expects what training never held.
    """

    low: Floats
    median: Floats
    high: Floats
    is_unlike: Bools


@final
@dataclass(frozen=True, eq=False)
class Ranges:
    r"""The range of cell x_d: median -/+ w_d * (its distance from the quantiles at 5 and 95 %).

    w_d is the least with which the ranges of nine in ten normals hold their value, of normals that
    the density did not train on: split conformal prediction (Romano et al., 2019). A fresh normal
    row's value is in its range with a probability of 90 %, whatever the density. The range is cut
    to what the training normals hold.

    Parameters
    ----------
    encoder : Encoder
        What the training normals hold.
    widening : array (d,)
        w_d; 1 where it is unknown.
    """

    encoder: Encoder
    widening: Floats

    @classmethod
    def fit(cls, encoder: Encoder, normals: Encoded, quantiles: Floats) -> "Ranges":
        """Measure w on n normals, and what was expected of their cells row by row, (n d, 3)."""
        plain = cls(encoder, np.ones(encoder.n_columns))
        columns = np.tile(np.arange(encoder.n_columns), len(normals))
        low, median, high = encoder.decode(columns, quantiles).T
        values = encoder.decode(columns, normals.targets.reshape(-1, 1).astype(np.float64))[:, 0]
        width = np.where(values < median, median - low, high - median)
        with np.errstate(over="ignore"):  # of a column that hardly varies: the whole of it
            excess = np.abs(values - median) / np.maximum(width, plain._least_width[columns])
        has_value = normals.observed & ~normals.impossible
        by_column = np.where(has_value, excess.reshape(has_value.shape), np.nan)
        return cls(encoder, np.array([_conformal(column) for column in by_column.T]))

    def of(self, columns: Ints, quantiles: Floats) -> Range:
        """Return the ranges of m cells of some columns, from their expected quantiles (m, 3).

        NaN where a column has levels, and where the range is unlike anything in training.
        """
        low, median, high = self.encoder.decode(columns, quantiles).T
        first, last = self.encoder.ends[columns].T
        least, widening = self._least_width[columns], self.widening[columns]
        low = median - widening * np.maximum(median - low, least)
        high = median + widening * np.maximum(high - median, least)
        inside = np.minimum(high, last) - np.maximum(low, first)
        is_unlike = inside < _MIN_INSIDE * np.minimum(high - low, last - first)
        ends = np.stack([low, median, high]).clip(first, last)
        is_count = self._is_count[columns]
        ends[0] = np.where(is_count, np.ceil(ends[0] - 1e-6), ends[0])
        ends[2] = np.where(is_count, np.floor(ends[2] + 1e-6), ends[2])
        ends = np.where(is_unlike, np.nan, ends)
        return Range(ends[0], ends[1], ends[2], is_unlike)

    @property
    def _is_count(self) -> Bools:
        return np.array([c.coding is Kind.COUNT for c in self.encoder.schema.columns])

    @property
    def _least_width(self) -> Floats:
        """The least distance of an end from the median, shape (d,)."""
        widths = _MIN_WIDTH * np.maximum(np.ptp(self.encoder.ends, axis=1), 1e-300)
        return np.where(self._is_count, 0.5, widths)

    def state(self) -> State:
        """Return what a model file holds of it, but for the encoder."""
        return State({}, {"widening": self.widening})

    @classmethod
    def from_state(cls, state: State, encoder: Encoder) -> "Ranges":
        """Inverse of `state`, checked."""
        widening = state.array("widening", np.float64, (encoder.n_columns,))
        require(bool((widening >= 0).all()), "a range is widened by a negative factor.")
        return cls(encoder, widening)


def _conformal(excess: Floats) -> float:
    """Return the least factor that holds nine in ten of n + 1 values; of few values, all n."""
    known = np.sort(excess[~np.isnan(excess)])
    if not len(known):
        return 1.0
    return float(known[min(math.ceil(HELD * (len(known) + 1)), len(known)) - 1])
