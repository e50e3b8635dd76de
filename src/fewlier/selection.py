"""Which members count, and how much."""

import math
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

Selection = Literal["average", "best"]

# Weights are softmax(SHARPNESS x criterion) over the best quarter of the members.
SHARPNESS, QUARTER = 10.0, 4
# With fewer validation anomalies in a fold their criterion is luck, and all members weigh alike.
ENOUGH_TO_RANK = 3
# Passes that a member of an average scores with: members complement each other.
N_PASSES = 2
# Parts of an average score: the density has one (docs/METHOD.md), neighbours have at least as
# much, and up to the second number more, the better the distance from normals tells anomalies.
NEIGHBOURS, TELLING_NEIGHBOURS = 1.0, 9.0
# Trees count more the more labels there are, half of what they have at most with six, and nothing
# with two.
TREES, TOO_FEW_FOR_TREES = 2.0, 2


def best(
    criteria: npt.ArrayLike, epochs: npt.ArrayLike, lambdas: npt.ArrayLike
) -> npt.NDArray[np.float64]:
    """Give all weight to the highest criterion: the paper's rule.

    Ties go to the earliest epoch, then to the smallest lambda.
    """
    order = np.lexsort((np.asarray(lambdas), np.asarray(epochs), -np.asarray(criteria)))
    weights = np.zeros(len(order))
    weights[order[0]] = 1
    return weights


def average(criteria: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Share the weight over the best quarter of the members, by softmax of their criteria.

    With a handful of labels the best criterion is mostly luck; an average of good members ranks
    better than the winner (docs/METHOD.md), and every further one costs time to score.
    """
    values = np.asarray(criteria, dtype=np.float64)
    kept = np.argsort(-values, kind="stable")[: math.ceil(len(values) / QUARTER)]
    weights = np.zeros(len(values))
    weights[kept] = softmax(SHARPNESS * values[kept])
    return weights


def equal(n_members: int) -> npt.NDArray[np.float64]:
    """Weigh all members alike: where hardly an anomaly is held back, nothing tells them apart."""
    return np.full(n_members, 1 / n_members)


def own_passes(number: int, n_passes: int, selection: Selection) -> tuple[int, ...]:
    """Return the passes that a member scores with: all, or in an average the next two in turn."""
    if selection == "best":
        return tuple(range(n_passes))
    first = N_PASSES * number
    return tuple(sorted({index % n_passes for index in range(first, first + N_PASSES)}))


def companions_shares(n_anomalies: int, alone: float) -> tuple[float, float]:
    """Return the shares of neighbours and of trees in an average score, less the density's.

    `alone`, from 0 to 1, is how well the distance from normals tells labelled anomalies.
    """
    near = NEIGHBOURS + TELLING_NEIGHBOURS * alone
    more = max(0, n_anomalies - TOO_FEW_FOR_TREES)
    trees = TREES * more / (more + 2 * TOO_FEW_FOR_TREES)
    total = 1 + near + trees
    return near / total, trees / total
