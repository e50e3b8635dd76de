"""Which row to ask about next."""

from typing import NamedTuple

import numpy as np

from fewlier.labelling.asking.forest import alikeness
from fewlier.labelling.asking.insight import Insight
from fewlier.table.arrays import Floats
from fewlier.table.labels import ANOMALY

ODDEST, DIFFERENT, BY_HAND = "oddest", "different", "by hand"
_EVERY = 3  # questions, of which one is different
_LESS_IF_ALIKE = 1.0  # standard units that a row loses if it is like a found anomaly


class Choice(NamedTuple):
    """A row of the pool, and how it was chosen: "oddest" or "different"."""

    place: int
    chosen: str


def choose(insight: Insight, number: int) -> Choice | None:
    """Choose among the open rows of a pool; None where no row is left.

    It is the row worth most, and every third time one that differs from the anomalies found, so
    that other kinds are found.

    Parameters
    ----------
    insight : Insight
        What is known about the rows.
    number : int
        How many questions were answered.
    """
    if not insight.is_open.any():
        return None
    if number % _EVERY == _EVERY - 1 and (insight.known.labels == ANOMALY).any():
        return Choice(_different(insight), DIFFERENT)
    return Choice(int(_open_score(insight).argmax()), ODDEST)


def _open_score(insight: Insight) -> Floats:
    return np.where(insight.is_open, insight.score, -np.inf)


def _different(insight: Insight) -> int:
    """Return the row worth most, if a row is worth the less the more it is like a found anomaly."""
    found = insight.known.looked.leaves[:, insight.known.labels == ANOMALY]
    score = _open_score(insight)
    near = np.flatnonzero(score >= score.max() - _LESS_IF_ALIKE)  # no other row can be worth more
    most_alike = alikeness(insight.pool.looked.leaves[:, near], found).max(1)
    return int(near[(score[near] - _LESS_IF_ALIKE * most_alike).argmax()])
