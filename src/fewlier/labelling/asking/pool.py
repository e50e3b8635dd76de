"""`Pool`: the rows among which questions are chosen; all rows of a table that is not large."""

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from fewlier.labelling.asking.kernel import KernelScore, RowFeatures
from fewlier.labelling.session_table import SessionTable
from fewlier.table.arrays import Bools, Floats, Ints

MAX_ROWS = 20_000
"""Most rows of a pool."""
_N_TOP = 15_000  # of a full pool, the oddest rows; the others are drawn from the rest
# Standard deviations by which nearly equal rows differ at most in every input.
_NEARLY = 0.01
_CHUNK = 65_536  # rows that are scored together


@final
@dataclass(frozen=True, eq=False)
class Pool:
    """Rows to choose among.

    A table of up to 20,000 rows is its own pool. Of a larger one the 15,000 oddest rows are in
    it and 5,000 of the others, drawn at random, which stand for all of them.

    Parameters
    ----------
    rows : array (n,)
        Their numbers in the table, in ascending order.
    features : RowFeatures
        What scores read of them.
    stands_for : array (n,)
        For how many rows of the table each stands.
    n_at_nodes : array (m,)
        How many of them end at each node of the trees.
    """

    rows: Ints
    features: RowFeatures
    stands_for: Floats
    n_at_nodes: Ints

    @classmethod
    def of(
        cls, data: SessionTable, scorer: KernelScore, node_weights: Floats, known: Ints, seed: int
    ) -> "Pool":
        """Score all rows of a table, some at a time, and take the oddest.

        The `known` rows are among them in any case.
        """
        rows, stands_for = _choose(data, scorer, node_weights, known, seed)
        features = scorer.read(data.encode(rows))
        n_at_nodes = np.bincount(features.leaves.ravel(), minlength=len(scorer.forest.nodes))
        return cls(rows, features, stands_for, n_at_nodes)

    @property
    def is_whole(self) -> bool:
        """Whether it holds every row of the table."""
        return bool((self.stands_for == 1).all())

    def nearly_equal(self, places: Ints) -> Bools:
        """Mark rows, and those that differ from them by next to nothing in every column, (n,)."""
        marked = np.zeros(len(self.rows), dtype=np.bool_)
        for place in places.tolist():
            if place not in self._alike:
                points = self.features.points
                self._alike[place] = np.flatnonzero(
                    (np.abs(points - points[place]) < _NEARLY).all(1)
                )
            marked[self._alike[place]] = True
        return marked

    @cached_property
    def _alike(self) -> dict[int, Ints]:
        """The rows nearly equal to a row, once it was asked for."""
        return {}

    def places(self, rows: Ints) -> Ints:
        """Return where rows of the table are in the pool, those of them that are."""
        found = np.searchsorted(self.rows, rows).clip(max=len(self.rows) - 1)
        is_there: Bools = self.rows[found] == rows
        return np.asarray(found[is_there], dtype=np.int64)


def _choose(
    data: SessionTable, scorer: KernelScore, node_weights: Floats, known: Ints, seed: int
) -> tuple[Ints, Floats]:
    """Return the rows of a pool, in ascending order, and for how many each stands."""
    every = np.arange(data.n_rows)
    if len(every) <= MAX_ROWS:
        return every, np.ones(len(every))
    chunks = (every[start : start + _CHUNK] for start in range(0, len(every), _CHUNK))
    scores = [scorer.read(data.encode(rows)).score(node_weights) for rows in chunks]
    order = np.argsort(-np.concatenate(scores), kind="stable")
    order = np.concatenate([known, order[~np.isin(order, known)]])
    n_top = max(_N_TOP, len(known))
    top, rest = order[:n_top], order[n_top:]
    drawn = np.random.default_rng(seed).permutation(rest)[: MAX_ROWS - _N_TOP]
    stands_for = np.repeat([1.0, len(rest) / max(len(drawn), 1)], [len(top), len(drawn)])
    rows = np.concatenate([top, drawn])
    places = np.argsort(rows)
    return rows[places], stands_for[places]
