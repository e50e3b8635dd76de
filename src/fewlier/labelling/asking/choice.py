"""`Posterior`: what the labels so far say of the rows of a pool, and which is asked about next."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, final

import numpy as np

from fewlier.labelling.asking.forest import alikeness
from fewlier.labelling.asking.kernel import KernelScore, RowFeatures
from fewlier.labelling.asking.pool import Pool
from fewlier.table.arrays import Bools, Codes, Floats, Ints
from fewlier.table.labels import ANOMALY, NORMAL, UNLABELLED

ODDEST, DIFFERENT, BY_HAND = "oddest", "different", "by hand"
"""How a row was chosen."""
_EVERY = 3  # questions, of which one is different
_LESS_IF_ALIKE = 1.0  # standard units that a row loses if it is like a found anomaly
# Rows of each label that are learned from at most: the kernel has a line for each.
_MAX_KNOWN = 500


class Known(NamedTuple):
    """Rows with a label: their places in the pool, their features, and their labels (m,)."""

    places: Ints
    features: RowFeatures
    labels: Codes


class Histogram(NamedTuple):
    """How many rows of a table have which score, in bars of equal width from `low` to `high`."""

    low: float
    high: float
    counts: list[float]


@final
@dataclass(frozen=True, eq=False)
class Posterior:
    """What labels say of the rows of a pool.

    Parameters
    ----------
    pool : Pool
        The rows.
    known : Known
        Those with a label, that were learned from.
    node_weights : array (m,)
        What the labels add to a score, by node of the trees.
    codes : array (n,)
        The labels of the pool.
    is_settled : array (n,)
        Which rows are not to be asked about.
    """

    pool: Pool
    known: Known
    node_weights: Floats
    codes: Codes
    is_settled: Bools

    @classmethod
    def of(
        cls, scorer: KernelScore, pool: Pool, labels: Codes, settled: Collection[int], seed: int
    ) -> "Posterior":
        """Learn from the labels (n,) of all rows of a table; `settled` rows need none."""
        codes = labels[pool.rows]
        places = np.concatenate([_some(codes, label, seed) for label in (ANOMALY, NORMAL)])
        known = Known(places, pool.features.take(places), codes[places])
        node_weights = np.zeros(len(scorer.forest.nodes))
        if len(places):
            node_weights = scorer.learn(known.features, known.labels)
        done = pool.places(np.array(sorted(settled), dtype=np.int64))
        return cls(pool, known, node_weights, codes, pool.nearly_equal(done))

    @cached_property
    def score(self) -> Floats:
        """How odd the rows are, shape (n,)."""
        return self.pool.features.score(self.node_weights)

    def choose(self, n_answers: int) -> tuple[int, str] | None:
        """Return the row to ask about next, and how it was chosen; None where no row is left.

        It is the oddest row, and every third time one that differs from the anomalies found, so
        that other kinds are found.
        """
        if self.is_settled.all():
            return None
        score = np.where(self.is_settled, -np.inf, self.score)
        is_found = self.known.labels == ANOMALY
        if n_answers % _EVERY < _EVERY - 1 or not is_found.any():
            return int(self.pool.rows[score.argmax()]), ODDEST
        near = np.flatnonzero(score >= score.max() - _LESS_IF_ALIKE)  # no other row can win
        leaves = self.pool.features.leaves[:, near], self.known.features.leaves[:, is_found]
        less = _LESS_IF_ALIKE * alikeness(*leaves).max(1)
        return int(self.pool.rows[near[(score[near] - less).argmax()]]), DIFFERENT

    def place(self, score: float) -> float:
        """Return the share of the rows of the table that are less odd."""
        below = self.pool.stands_for[self.score < score].sum()
        return float(below / self.pool.stands_for.sum())

    def histogram(self, n_bars: int = 60) -> Histogram:
        """Return how odd the rows of the table are."""
        counts, edges = np.histogram(self.score, n_bars, weights=self.pool.stands_for)
        return Histogram(float(edges[0]), float(edges[-1]), counts.tolist())

    def nearest(self, point: Floats, row: int) -> tuple[int | None, int | None]:
        """Return the rows nearest to a point: a normal one, and a known anomaly, if there are.

        A row is normal that is labelled so, or that nobody labelled and that is not among the odder
        half of the rows.
        """
        usual = self.score <= np.median(self.score)
        is_normal = (self.codes == NORMAL) | ((self.codes == UNLABELLED) & usual)
        distance = ((self.pool.features.points - point) ** 2).sum(1)
        distance[self.pool.rows == row] = np.inf
        return tuple(  # type: ignore[return-value] # of two
            self._least(np.where(some, distance, np.inf))
            for some in (is_normal, self.codes == ANOMALY)
        )

    def _least(self, distance: Floats) -> int | None:
        place = int(distance.argmin())
        return int(self.pool.rows[place]) if np.isfinite(distance[place]) else None


def _some(codes: Codes, label: int, seed: int) -> Ints:
    """Return the places of one label, or some of them."""
    places = np.flatnonzero(codes == label)
    if len(places) <= _MAX_KNOWN:
        return places
    return np.sort(np.random.default_rng(seed).permutation(places)[:_MAX_KNOWN])
