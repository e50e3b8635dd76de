"""Which row to ask about next."""

from typing import Final, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from fewlier.labelling.asking.forest import alikeness
from fewlier.labelling.asking.insight import Insight
from fewlier.table.arrays import Floats
from fewlier.table.labels import ANOMALY, NORMAL

Ask: TypeAlias = Literal["oddest", "surest", "spread", "doubtful"]
"""Ways to choose: the row worth most, but every third time a different one; always the row worth
most; always a different one; the row that may as well be an anomaly as normal."""
ASKS: Final = get_args(Ask)

DIFFERENT, BY_HAND = "different", "by hand"
_EVERY = 3  # questions, of which one is different
_WORN = 1.0  # standard units that a row like a found anomaly is worth less than a different one


class Choice(NamedTuple):
    """A row of the pool, and how it was chosen: "different", or as was asked for."""

    place: int
    chosen: str


def choose(ask: Ask, insight: Insight, number: int) -> Choice | None:
    """Choose among the open rows of a pool; None where no row is left.

    Parameters
    ----------
    ask : str
        The way to choose.
    insight : Insight
        What is known about the rows.
    number : int
        How many questions were answered.
    """
    if not insight.is_open.any():
        return None
    labels = insight.known.labels
    is_any, is_each = (labels == ANOMALY).any(), len(np.unique(labels)) == 2
    if ask == "doubtful" and is_each:
        return Choice(_doubtful(insight), ask)
    is_turn = ask == "spread" or (ask == "oddest" and number % _EVERY == _EVERY - 1)
    if is_turn and is_any:
        return Choice(_different(insight), DIFFERENT)
    return Choice(int(_open_score(insight).argmax()), "oddest" if ask == "spread" else ask)


def _open_score(insight: Insight) -> Floats:
    return np.where(insight.is_open, insight.score, -np.inf)


def _different(insight: Insight) -> int:
    """Return the row worth most, if a row is worth the less the more it is like a found anomaly."""
    found = insight.known.looked.leaves[:, insight.known.labels == ANOMALY]
    score = _open_score(insight)
    near = np.flatnonzero(score >= score.max() - _WORN)  # no other row can be worth more
    most_alike = alikeness(insight.pool.looked.leaves[:, near], found).max(1)
    return int(near[(score[near] - _WORN * most_alike).argmax()])


def _doubtful(insight: Insight) -> int:
    """Return the row whose score is nearest to the middle between both answers."""
    score = insight.score
    known, labels = score[insight.known.places], insight.known.labels
    middle = np.mean([known[labels == label].mean() for label in (ANOMALY, NORMAL)])
    return int(np.where(insight.is_open, np.abs(score - middle), np.inf).argmin())
