"""Which row to ask about next."""

from typing import NamedTuple

import numpy as np

from fewlier.labelling.asking.forest import alikeness
from fewlier.labelling.asking.posterior import Posterior
from fewlier.table.arrays import Floats
from fewlier.table.labels import ANOMALY

ODDEST, DIFFERENT, BY_HAND = "oddest", "different", "by hand"
_EVERY = 3  # questions, of which one is different
_LESS_IF_ALIKE = 1.0  # standard units that a row loses if it is like a found anomaly


class Choice(NamedTuple):
    """A row of the pool, and how it was chosen: "oddest" or "different"."""

    place: int
    chosen: str


def choose(posterior: Posterior, number: int) -> Choice | None:
    """Choose among the open rows of a pool; None where no row is left.

    It is the oddest row, and every third time one that differs from the anomalies found, so
    that other kinds are found.

    Parameters
    ----------
    posterior : Posterior
        What is known about the rows.
    number : int
        How many questions were answered.
    """
    if not posterior.is_open.any():
        return None
    if number % _EVERY == _EVERY - 1 and (posterior.known.labels == ANOMALY).any():
        return Choice(_different(posterior), DIFFERENT)
    return Choice(int(_open_score(posterior).argmax()), ODDEST)


def _open_score(posterior: Posterior) -> Floats:
    return np.where(posterior.is_open, posterior.score, -np.inf)


def _different(posterior: Posterior) -> int:
    """Return the oddest row, if a row counts as less odd the more it is like a found anomaly."""
    found = posterior.known.features.leaves[:, posterior.known.labels == ANOMALY]
    score = _open_score(posterior)
    near = np.flatnonzero(score >= score.max() - _LESS_IF_ALIKE)  # no other row can win
    most_alike = alikeness(posterior.pool.features.leaves[:, near], found).max(1)
    return int(near[(score[near] - _LESS_IF_ALIKE * most_alike).argmax()])
