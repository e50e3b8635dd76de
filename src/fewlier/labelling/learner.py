"""`Learner`: what the labels so far teach about rows, and which row is asked about next."""

from collections.abc import Collection
from concurrent.futures import Future, ThreadPoolExecutor
from typing import final

import numpy as np

from fewlier.labelling.answers.answer import Stack
from fewlier.labelling.asking.choice import BY_HAND, Posterior
from fewlier.labelling.asking.kernel import KernelScore, RowFeatures
from fewlier.labelling.asking.pool import MAX_ROWS, Pool
from fewlier.labelling.asking.remaining import Remaining, estimate_remaining
from fewlier.labelling.session_table import SessionTable
from fewlier.table.arrays import Codes, Floats, Ints
from fewlier.table.labels import UNLABELLED


@final
class Learner:
    """Scores rows by the labels so far, and chooses among those that are open.

    It learns from nothing each time, within milliseconds, so an answer can be taken back.

    Parameters
    ----------
    data : SessionTable
        The rows, and the labels that were known before.
    seed : int
        The same labels and seed lead to the same choices.

    Attributes
    ----------
    posterior : Posterior
        The scores of the rows of the pool.
    """

    def __init__(self, data: SessionTable, seed: int) -> None:
        self._data, self._seed = data, seed
        rows = np.random.default_rng(seed).permutation(data.n_rows)[:MAX_ROWS]
        self._scorer = KernelScore.fit(data.encoder, data.encode(np.sort(rows)), seed, data.model)
        self._threads = ThreadPoolExecutor(1, "fewlier-pool")
        self._renewal: Future[Pool] | None = None
        self._choice: tuple[int, str] | None = None
        self._known = np.flatnonzero(data.labels.codes != UNLABELLED)
        nothing = np.zeros(len(self._scorer.forest.nodes))
        self._pool = self._new_pool(data.labels.codes, nothing)
        self.learn(data.labels.codes, ())

    def learn(self, codes: Codes, answered: Collection[int]) -> None:
        """Learn from the labels (n,) of all rows; those `answered` are not asked about again."""
        self._codes, self._answered = codes, answered
        settled = {*self._known.tolist(), *answered}
        self.posterior = Posterior.of(self._scorer, self._pool, codes, settled, self._seed)

    def renew(self) -> None:
        """Begin to choose the pool anew in the background, by what has been learned."""
        if self._renewal is None and not self._pool.is_whole:
            weights = self.posterior.node_weights
            self._renewal = self._threads.submit(self._new_pool, self._codes, weights)

    def choose(self, n_answers: int) -> int | None:
        """Return the row to ask about after so many answers; None where no row is left."""
        if self._renewal is not None and self._renewal.done():
            self._pool, self._renewal = self._renewal.result(), None
            self.learn(self._codes, self._answered)
        self._choice = self.posterior.choose(n_answers)
        return None if self._choice is None else self._choice[0]

    def chosen(self, row: int) -> str:
        """Say how a row was chosen."""
        return self._choice[1] if self._choice and self._choice[0] == row else BY_HAND

    def features(self, row: int) -> RowFeatures:
        """Return what scores read of one row, which may be outside of the pool."""
        places = self._pool.places(np.array([row]))
        if len(places):
            return self._pool.features.take(places)
        return self._scorer.read(self._data.encode(np.array([row])))

    def score(self, row: int) -> float:
        """Return how odd one row is by what has been learned."""
        return float(self.features(row).score(self.posterior.node_weights)[0])

    def contributions(self, rows: Ints) -> Floats:
        """Return what each column adds to the scores of rows, shape (n, d)."""
        encoded, n_at_nodes = self._data.encode(rows), self._pool.n_at_nodes
        return self._scorer.contributions(encoded, self.posterior.node_weights, n_at_nodes)

    def ranking(self, n: int) -> tuple[Ints, Floats]:
        """Return the n oddest rows and their scores."""
        order = np.argsort(-self.posterior.score, kind="stable")[:n]
        return self._pool.rows[order], self.posterior.score[order]

    def remaining(self, answers: Stack) -> Remaining | None:
        """Estimate how many anomalies are left; None before any answer."""
        asked = [a for a in answers if a.label is not None and a.score is not None]
        if not asked:
            return None
        score = np.array([a.score for a in asked])
        is_anomaly = np.array([a.label == 1 for a in asked])
        is_left = self.posterior.codes == UNLABELLED
        others = self.posterior.score[is_left], self._pool.stands_for[is_left]
        return estimate_remaining(score, is_anomaly, others, self._seed)

    def close(self) -> None:
        """Stop what runs in the background."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _new_pool(self, codes: Codes, node_weights: Floats) -> Pool:
        known = np.flatnonzero(codes != UNLABELLED)
        return Pool.of(self._data, self._scorer, node_weights, known, self._seed)
