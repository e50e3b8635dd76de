"""Which members count, and how much."""

import numpy as np
import numpy.typing as npt

from fewlier.training.roles import Selection

# With n labels the best-ranking member gets weight n, the one of the smallest lambda weight 2: with
# few labels, most kinds of anomaly are still unlabelled.
UNLABELLED_KINDS = 2
# With fewer than three validation anomalies in a fold their criterion is luck: then three members,
# from the smallest lambda to the largest, weigh alike.
ENOUGH_TO_RANK, N_UNRANKED = 3, 3
# Before they are scaled to sum to one, the density has share 1. Neighbours have 1, and up to 9 more
# the better the distance from normal rows finds the labelled anomalies.
NEIGHBOURS, NOVEL_NEIGHBOURS = 1.0, 9.0
# Trees have up to 2 as labels become more: half of that with six labels, nothing with two.
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


def average(
    criteria: npt.ArrayLike, lambdas: npt.ArrayLike, n_anomalies: int
) -> npt.NDArray[np.float64]:
    """Share the weight between the highest criterion, n / (n + 2), and the smallest lambda.

    The first finds rows like the n labelled anomalies; the second knows normal rows, whatever an
    anomaly looks like (docs/METHOD.md). Ties go to the smaller lambda.
    """
    by_criterion = np.lexsort((np.asarray(lambdas), -np.asarray(criteria)))
    weights = np.zeros(len(by_criterion))
    weights[by_criterion[0]] += n_anomalies
    weights[np.argmin(lambdas)] += UNLABELLED_KINDS
    weights /= n_anomalies + UNLABELLED_KINDS
    return weights


def spaced(lambdas: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Weigh three members alike, from the smallest lambda to the largest; none is known best."""
    order = np.argsort(lambdas, kind="stable")
    places = np.linspace(0, len(order) - 1, N_UNRANKED).round().astype(np.int64)
    kept = order[np.unique(places)]
    weights = np.zeros(len(order))
    weights[kept] = 1 / len(kept)
    return weights


def own_passes(number: int, n_passes: int, selection: Selection) -> tuple[int, ...]:
    """Return the passes that a member scores with: all, or in an average one, the next in turn.

    Members complement each other. Each round starts one pass later, so that members of the same
    lambda in other folds take other passes.
    """
    if selection == "best":
        return tuple(range(n_passes))
    return ((number + number // n_passes) % n_passes,)


def shares(n_anomalies: int, novelty: float) -> tuple[float, float]:
    """Return the shares of neighbours and of trees in an average score; the rest is the density's.

    `novelty`, from 0 to 1, is how well the distance from normal rows finds labelled anomalies.
    """
    near = NEIGHBOURS + NOVEL_NEIGHBOURS * novelty
    more = max(0, n_anomalies - TOO_FEW_FOR_TREES)
    trees = TREES * more / (more + 2 * TOO_FEW_FOR_TREES)
    total = 1 + near + trees
    return near / total, trees / total
