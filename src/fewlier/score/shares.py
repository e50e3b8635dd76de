"""Which members count, and how much."""

import numpy as np
import numpy.typing as npt

from fewlier.training.settings import Selection

# With n labels the best-ranking member gets weight n, the one of the smallest lambda weight 2: with
# few labels, most kinds of anomaly are still unlabelled.
UNLABELLED_KINDS = 2
# With fewer than three validation anomalies in a fold their criterion is luck: then three members,
# from the smallest lambda to the largest, weigh alike.
MIN_TO_RANK, N_UNRANKED = 3, 3
NEIGHBOURS = 0.75
"""Share of the neighbours in what the labels leave; the density has the rest."""
# Trees and rules together have n / (1.6 n + 4) with n labels: 28 % with two, 44 % with six, up to
# five eighths.
MIN_FOR_TREES, MAX_LEARNED, _HALFWAY = 2, 0.625, 2.5


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


def learned(n_anomalies: int) -> float:
    """Return the share that trees and rules have together; with one label nothing is grown."""
    if n_anomalies < MIN_FOR_TREES:
        return 0.0
    return MAX_LEARNED * n_anomalies / (n_anomalies + _HALFWAY)
