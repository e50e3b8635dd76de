"""`KernelScore`: how odd rows are, before any answer and after each."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, final

import numpy as np
import torch

from fewlier.density.rows import Rows
from fewlier.labelling.asking.forest import Forest, Leaves, add_up, alikeness
from fewlier.process.threads import one_thread
from fewlier.score.model import FittedModel
from fewlier.score.neighbours.part import Neighbours
from fewlier.score.neighbours.space import NumericColumns, Space
from fewlier.score.neighbours.view import max_landmarks
from fewlier.score.part import HeldOut, Known
from fewlier.table import Encoded, Encoder
from fewlier.table.arrays import Codes, Floats, Ints
from fewlier.table.labels import ANOMALY

TARGET_SCORES = 8.0, -2.0
"""The scores that a labelled anomaly and a labelled normal row should have, in standard units."""
# How far an answer is trusted: the variance of an answer next to that of the kernel.
_NOISE = 0.3
# The share of isolation in what rows score at first; the rest is distance.
_ISOLATION = 0.3
_MIN_SPREAD = 1e-6
_CHUNK = 8192  # rows that are read together


class RowFeatures(NamedTuple):
    """What scores read of n rows.

    `oddness` (n,) is what they score before any answer, `leaves` (t, n) where they end in the trees
    and `points` (n, i) where they lie.
    """

    oddness: Floats
    leaves: Leaves
    points: Floats

    def take(self, rows: Ints) -> "RowFeatures":
        """Return those of some of the rows."""
        return RowFeatures(self.oddness[rows], self.leaves[:, rows], self.points[rows])

    def score(self, node_weights: Floats) -> Floats:
        """Return how odd rows are after an answer changed the weights of nodes, shape (n,)."""
        return self.oddness + add_up(node_weights, self.leaves)


@final
@dataclass(frozen=True, eq=False)
class KernelScore:
    r"""s(x) = u(x) + \sum_j a_j k(x, x_j), with (K + 0.3 I) a = t - u at the answered rows x_j.

    u is what a row scores before any answer: 0.3 times how soon it is alone in an isolation forest
    plus 0.7 times how far it is from its neighbours, each in standard units. Where there is a model
    already, u is its score. The kernel k(x, x') is the share of the trees in which two rows end in
    the same leaf, and t is 8 for an anomaly and -2 for a normal row. So an answer raises or lowers
    the rows that are like the answered one, by as much as u was wrong there, and leaves others as
    they were. It is a Gaussian process whose mean is u, and it takes milliseconds to learn.

    Parameters
    ----------
    encoder : Encoder
        How rows are read.
    forest : Forest
        The trees.
    neighbours : Neighbours
        The rows to measure distances to.
    isolation : tuple of float
        Mean and standard deviation of isolation.
    model : FittedModel or None
        What knows labels already.
    """

    encoder: Encoder
    forest: Forest
    neighbours: Neighbours
    isolation: tuple[float, float]
    model: FittedModel | None = None

    @classmethod
    @one_thread()
    def fit(
        cls, encoder: Encoder, encoded: Encoded, seed: int, model: FittedModel | None = None
    ) -> "KernelScore":
        """Take trees, neighbours and what is usual from rows of which most are normal."""
        order = np.random.default_rng(seed).permutation(len(encoded))
        near = encoded.take(order[: max_landmarks(encoder.n_inputs)])
        labelled = near.ids(), np.zeros(len(near), dtype=np.bool_)
        known = Known.of(encoder, near, labelled, seed)
        neighbours = Neighbours.fit(known, {})
        numbers = NumericColumns.from_encoder(encoder, "cpu").points(Rows.of(encoded))
        forest = Forest.grow(numbers, seed)
        alone = add_up(forest.isolation, forest.leaves(numbers))
        spread = float(alone.std())
        isolation = float(alone.mean()), spread if spread > _MIN_SPREAD else 1.0
        return cls(encoder, forest, neighbours, isolation, model)

    @property
    def space(self) -> Space:
        """Where rows lie."""
        return self.neighbours.views[0].space

    @one_thread()
    def read(self, encoded: Encoded) -> RowFeatures:
        """Read rows, some at a time."""
        chunks = [np.arange(len(encoded))[i : i + _CHUNK] for i in range(0, len(encoded), _CHUNK)]
        found = [self._read(encoded.take(rows)) for rows in chunks]
        oddness, leaves, points = zip(*found, strict=True)
        return RowFeatures(
            np.concatenate(oddness), np.concatenate(leaves, 1), np.concatenate(points)
        )

    def _read(self, encoded: Encoded) -> RowFeatures:
        rows = Rows.of(encoded)
        leaves = self.forest.leaves(self._numbers.points(rows))
        if self.model is not None:
            oddness = self.model.score(encoded)
        else:
            mean, spread = self.isolation
            alone = (add_up(self.forest.isolation, leaves) - mean) / spread
            far = self.neighbours.contributions(rows, {}, HeldOut(encoded.ids())).sum(1)
            oddness = _ISOLATION * alone + (1 - _ISOLATION) * far.numpy()
        return RowFeatures(oddness, leaves, self.space.place_known(rows).numpy())

    def learn(self, known: RowFeatures, labels: Codes) -> Floats:
        """Return what answers teach: what each node of the trees adds to a score, shape (m,)."""
        target = np.where(labels == ANOMALY, *TARGET_SCORES)
        kernel = alikeness(known.leaves, known.leaves)
        weight = np.linalg.solve(kernel + _NOISE * np.eye(len(labels)), target - known.oddness)
        n_trees, n_nodes = len(known.leaves), len(self.forest.nodes)
        every = np.broadcast_to(weight, known.leaves.shape)
        node_weights = np.bincount(known.leaves.ravel(), every.ravel(), minlength=n_nodes)
        return np.asarray(node_weights / n_trees, dtype=np.float64)

    @one_thread()
    def contributions(self, encoded: Encoded, node_weights: Floats, n_rows: Ints) -> Floats:
        """Return what each column adds to the score of rows, shape (n, d).

        Those of the trees are counted from the mean of the rows that a node has, `n_rows` (m,).
        """
        rows = Rows.of(encoded)
        values = node_weights.copy()
        if self.model is None:
            values += _ISOLATION * self.forest.isolation / self.isolation[1]
        nodes = self.forest.with_means(values, n_rows)
        gains = nodes.gains(self._numbers.points(rows))
        columns = torch.zeros(len(gains), self.encoder.n_columns, dtype=torch.float64)
        columns.index_add_(1, self.space.owner, gains)
        if self.model is None:
            far = self.neighbours.contributions(rows, {}, HeldOut(encoded.ids())).numpy()
            share = 1 - _ISOLATION
        else:
            far, share = self.model.scorer.contributions(encoded), 1.0
        found: Floats = columns.numpy() + share * far[:, :-1]
        return found

    @cached_property
    def _numbers(self) -> NumericColumns:
        return self.space.numbers
