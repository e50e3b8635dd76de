"""Ways to choose the next row to ask about; the truth answers."""

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from fewlier import Session

Floats: TypeAlias = npt.NDArray[np.float64]
Labels: TypeAlias = npt.NDArray[np.int8]


class Asking(NamedTuple):
    """A run of questions: the rows that were asked, and how long an answer took on average.

    `remaining` has, by number of questions, how many anomalies the method said were left: an
    estimate with the ends of its interval.
    """

    rows: list[int]
    seconds: float
    remaining: dict[int, tuple[float, int, int]]


Asker: TypeAlias = Callable[[Floats, Labels, int, int], Asking]
"""Asks about the rows of X (n, d), whose truth is y (n,), so many questions, with a seed."""


def ask_session(X: Floats, y: Labels, n: int, seed: int, every: int = 20) -> Asking:
    """Ask as `fewlier.Session` does."""
    remaining: dict[int, tuple[float, int, int]] = {}
    rows: list[int] = []
    with Session(X, fit_every=None, random_state=seed) as session:
        started = time.perf_counter()
        for number, question in enumerate(_questions(session, n), 1):
            rows.append(question)
            session.answer(question, int(y[question]))
            if number % every == 0 and session.progress.remaining is not None:
                remaining[number] = session.progress.remaining
        seconds = time.perf_counter() - started
    return Asking(rows, seconds / max(len(rows), 1), remaining)


def _questions(session: Session, n: int) -> Iterator[int]:
    for _ in range(n):
        question = session.next()
        if question is None:
            return
        yield question.row


def ask_top_down(score: Callable[[Floats, int], Floats]) -> Asker:
    """Return what asks about the rows of highest score, and learns nothing."""

    def ask(X: Floats, y: Labels, n: int, seed: int) -> Asking:  # noqa: ARG001 - of an asker
        started = time.perf_counter()
        rows = np.argsort(-score(X, seed), kind="stable")[:n].tolist()
        return Asking(rows, (time.perf_counter() - started) / len(rows), {})

    return ask


def isolation(X: Floats, seed: int) -> Floats:
    """Score rows by an isolation forest."""
    from sklearn.ensemble import IsolationForest

    return np.asarray(-IsolationForest(random_state=seed).fit(X).score_samples(X))


def distance(X: Floats, seed: int) -> Floats:  # noqa: ARG001 - draws nothing
    """Score rows by the mean distance to their five nearest neighbours, columns standardised."""
    from sklearn.neighbors import NearestNeighbors

    spread = X.std(0)
    points = (X - X.mean(0)) / np.where(spread > 0, spread, 1)
    found, _ = NearestNeighbors(n_neighbors=min(6, len(X))).fit(points).kneighbors()
    return np.asarray(found.mean(1))


def ask_coniferest(name: str) -> Asker:
    """Return what asks as a forest of coniferest does, with its defaults."""

    def ask(X: Floats, y: Labels, n: int, seed: int) -> Asking:
        from coniferest.aadforest import AADForest
        from coniferest.pineforest import PineForest
        from coniferest.session.oracle import OracleSession

        forests = {"AADForest": AADForest, "PineForest": PineForest}
        model = forests[name](random_seed=seed, n_jobs=1)
        truth = np.where(y == 1, -1, 1)  # theirs
        started = time.perf_counter()
        session = OracleSession(X, truth, model=model, max_iterations=n, max_anomalies=10**9)
        session.run()
        rows = [int(row) for row in session.known_labels]  # in the order of the questions
        return Asking(rows, (time.perf_counter() - started) / len(rows), {})

    return ask


SESSION = "fewlier"
ASKERS: dict[str, Asker] = {
    SESSION: ask_session,
    "AADForest": ask_coniferest("AADForest"),
    "PineForest": ask_coniferest("PineForest"),
    "isolation forest, top down": ask_top_down(isolation),
    "kNN distance, top down": ask_top_down(distance),
}
"""The ways to ask that are compared."""
