"""The few-label comparison: which rows every method is given, and which it is tested on.

All methods get the same rows: 90 % of the normals and 2k labelled anomalies. Split i of a table is
drawn from the seed 1000 + i, nested in k: its normals are the same for all k, and the anomalies of
a small k are among those of a large one. Tables above 12,000 rows are cut to that size by seed 0.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, final

import numpy as np
import numpy.typing as npt
from sklearn.cluster import KMeans

from fewlier.table.labels import ANOMALY, UNLABELLED

Rows: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Labels: TypeAlias = npt.NDArray[np.int8]

MAX_ROWS = 12_000
MIN_TEST_ANOMALIES = 3
MIN_NORMALS = 200  # of a pool that hides anomalies
HIDDEN = 0.05  # share of a contaminated pool that is anomalies

N_CLUSTERS = 3  # kinds of anomalies that a table is said to have
_MAX_DEVIATIONS = 3.0  # so that a few extreme rows do not become a cluster

TOO_FEW = f"fewer than {MIN_TEST_ANOMALIES} test anomalies"
TOO_FEW_NORMALS = f"fewer than {MIN_NORMALS} normals"
TOO_SMALL = "the known cluster has too few anomalies to label"

CLEAN: Final = "clean"
CONTAMINATED: Final = "contaminated"
UNSEEN: Final = "unseen"

N_DRAWS: Mapping[str, Mapping[int, int]] = {
    CLEAN: {0: 5, 1: 5, 3: 10, 5: 5, 10: 5, 25: 5},
    CONTAMINATED: {3: 10, 10: 5},
    UNSEEN: {3: 5},
}
"""How often rows are drawn, for each experiment and each k that it has."""


@final
@dataclass(frozen=True, eq=False)
class FewLabelSplit:
    """Row numbers that a method is given, their labels, and row numbers to test on.

    `number` is the number of the draw, and the seed of the fit.
    """

    number: int
    given: Rows
    labels: Labels
    test: Rows


def n_splits(experiment: str, n_draws: int) -> int:
    """Return the number of splits of some draws: an unseen draw has one for each known cluster."""
    return n_draws * (N_CLUSTERS if experiment == UNSEEN else 1)


def draw_of(experiment: str, split: int) -> int:
    """Return the number of the draw that a split comes from."""
    return split // n_splits(experiment, 1)


def make_few_label_split(
    experiment: str, X: Floats, y: Labels, k: int, split: int
) -> FewLabelSplit | str:
    """Draw a split of an experiment with 2k labelled anomalies, or say why there is none."""
    if experiment == CONTAMINATED:
        return draw_pool(y, 2 * k, split, HIDDEN)
    if experiment == UNSEEN:
        draw, known = divmod(split, N_CLUSTERS)
        return draw_unseen(y, 2 * k, draw, clusters(X, y) == known)
    return draw_clean(y, 2 * k, split)


def cut(X: Floats, y: Labels, most: int = MAX_ROWS) -> tuple[Floats, Labels]:
    """Return a table, or so many random rows of it if it has more."""
    if len(X) <= most:
        return X, y
    rows = np.random.default_rng(0).permutation(len(X))[:most]
    return X[rows], y[rows]


def shuffle_rows(y: Labels, number: int) -> tuple[Rows, Rows, Rows]:
    """Shuffle rows by the number of a split: return normals to give, normals to test, anomalies."""
    rng = np.random.default_rng(1000 + number)
    normals = rng.permutation(np.flatnonzero(y == 0))
    given, tested = np.split(normals, [round(0.9 * len(normals))])
    return given, tested, rng.permutation(np.flatnonzero(y == 1))


def draw_clean(y: Labels, n_labels: int, number: int) -> FewLabelSplit | str:
    """Give known normals and labelled anomalies; test on all other rows."""
    normals, tested, anomalies = shuffle_rows(y, number)
    if len(anomalies) - n_labels < MIN_TEST_ANOMALIES:
        return TOO_FEW
    given = np.concatenate([normals, anomalies[:n_labels]])
    return FewLabelSplit(number, given, y[given], np.concatenate([tested, anomalies[n_labels:]]))


def draw_pool(y: Labels, n_labels: int, number: int, contamination: float) -> FewLabelSplit | str:
    """Give labelled anomalies and unlabelled rows, of which a stated share are anomalies.

    At most half of the anomalies that are not labelled hide; where those are too few, normals are
    cut at random. The other half is tested, whatever share hides.
    """
    normals, tested_normals, anomalies = shuffle_rows(y, number)
    labelled, others = anomalies[:n_labels], anomalies[n_labels:]
    n_normals, n_hidden = pool_sizes(len(normals), len(others), contamination)
    tested = others[len(others) // 2 :]
    if len(labelled) < n_labels or len(tested) < MIN_TEST_ANOMALIES:
        return TOO_FEW
    if contamination and n_normals < MIN_NORMALS:
        return TOO_FEW_NORMALS
    given = np.concatenate([normals[:n_normals], others[:n_hidden], labelled])
    labels = np.full(len(given), UNLABELLED, dtype=np.int8)
    labels[n_normals + n_hidden :] = ANOMALY
    return FewLabelSplit(number, given, labels, np.concatenate([tested_normals, tested]))


def pool_sizes(n_normals: int, n_anomalies: int, contamination: float) -> tuple[int, int]:
    """Return how many of the available normals and anomalies a pool takes."""
    hidden = min(round(contamination / (1 - contamination) * n_normals), n_anomalies // 2)
    if not contamination:
        return n_normals, 0
    return min(round(hidden * (1 - contamination) / contamination), n_normals), hidden


def clusters(X: Floats, y: Labels) -> npt.NDArray[np.int64]:
    """Return which cluster each anomaly is in, shape (n_rows,), and -1 for normals.

    K-means on the anomalies' columns, each standardised over all rows and cut at three deviations.
    """
    found = np.full(len(y), -1)
    anomalies = np.flatnonzero(y == 1)
    deviations = X.std(axis=0)
    scaled = (X[anomalies] - X.mean(axis=0)) / np.where(deviations > 0, deviations, 1.0)
    scaled = np.clip(scaled, -_MAX_DEVIATIONS, _MAX_DEVIATIONS)
    if len(np.unique(scaled, axis=0)) >= N_CLUSTERS:
        found[anomalies] = KMeans(N_CLUSTERS, n_init=10, random_state=0).fit_predict(scaled)
    return found


def draw_unseen(
    y: Labels, n_labels: int, number: int, is_known: npt.NDArray[np.bool_]
) -> FewLabelSplit | str:
    """Label only anomalies of the known cluster, and test only on the other clusters.

    Anomalies of the known cluster that are not labelled are neither given nor tested.
    """
    normals, tested, anomalies = shuffle_rows(y, number)
    labelled, others = anomalies[is_known[anomalies]], anomalies[~is_known[anomalies]]
    if len(labelled) < n_labels:
        return TOO_SMALL
    if len(others) < MIN_TEST_ANOMALIES:
        return TOO_FEW
    given = np.concatenate([normals, labelled[:n_labels]])
    return FewLabelSplit(number, given, y[given], np.concatenate([tested, others]))
