"""Which rows train, which choose, and which are held out: the splits inside one fit."""

from dataclasses import dataclass
from typing import final

import numpy as np

from fewlier.table.arrays import Ints

# Share of the normals that choose epochs and weights, and how many of several folds do at least.
VALIDATION_SHARE, MIN_VALIDATION = 0.1, 100
# Share that a single fold holds out for thresholds; several hold each normal out once.
CALIBRATION_SHARE = 0.05
# With fewer normals than roles, all of them play each: those of a single fold, and of several.
N_ROLES, N_CROSSED_ROLES = 3, 2
# A row trains every fold if it has more than three times as many copies as the average row, and
# more than 1 % of the table: without it a fold would not know what is common.
COMMON, COMMON_SHARE = 3, 0.01

MAX_FOLDS = 64
"""Folds that a model file may have; a fit has one or two."""

NO_ROWS: Ints = np.empty(0, dtype=np.int64)


@final
@dataclass(frozen=True)
class Fold:
    """Row numbers of a table by role.

    `normals` and `anomalies` train, validation rows choose epochs and weights, and calibration rows
    stand behind thresholds. None of the latter trains in this fold; where there is only one fold,
    they choose nothing either.

    Copies of a row play its role.
    """

    normals: Ints
    anomalies: Ints
    validation_normals: Ints
    validation_anomalies: Ints
    calibration: Ints


def make_folds(
    normals: Ints,
    anomalies: Ints,
    n_folds: int,
    rng: np.random.Generator,
    doubtful: Ints = NO_ROWS,
    ids: Ints | None = None,
) -> list[Fold]:
    """Split the rows of a fit `n_folds` times.

    Each fold trains on a part of the anomalies and validates on the rest, so that with two folds
    every anomaly does both (cross-fitting). A single anomaly cannot be split: it trains both of
    two folds, or validates a single one. Of several folds, each normal is held out by one and
    trains the others. A single fold holds some normals out for good.

    `doubtful` are the normals that may be hidden anomalies. Where there are enough others, a
    single fold holds out none of them for thresholds.

    Copies of a row, which share its id in `ids`, one for each row of the table, are split as one
    row. Very common rows train in every fold.
    """
    if ids is None:
        ids = np.arange(1 + max(normals.max(), anomalies.max(initial=0)))
    common = _very_common(normals, ids)
    distinct = _folds_of_distinct(
        one_of_each(np.setdiff1d(normals, common), ids),
        one_of_each(anomalies, ids),
        n_folds,
        rng,
        doubtful,
    )
    return [
        Fold(
            np.concatenate([_copies(fold.normals, normals, ids), common]),
            _copies(fold.anomalies, anomalies, ids),
            _copies(fold.validation_normals, normals, ids),
            _copies(fold.validation_anomalies, anomalies, ids),
            _copies(fold.calibration, normals, ids),
        )
        for fold in distinct
    ]


def one_of_each(rows: Ints, ids: Ints) -> Ints:
    """Return the first of each group of copies, in order."""
    return np.sort(rows[np.unique(ids[rows], return_index=True)[1]])


def share_of_copies(rows: Ints, ids: Ints) -> float:
    r"""Return what each of n rows counts in a sample, n / \sum_g k_g^2, where g has k_g copies.

    It is 1 where no row repeats and 1 / k where each is there k times (Kish's effective sample
    size, over n). Copies of a very common row say how common it is, so that each counts.
    """
    others = np.setdiff1d(rows, _very_common(rows, ids))
    counts = np.unique(ids[others], return_counts=True)[1]
    return float(len(rows) / (len(rows) - len(others) + (counts**2).sum()))


def _copies(chosen: Ints, rows: Ints, ids: Ints) -> Ints:
    """Return the rows that are copies of chosen ones, in the order of the chosen."""
    if not len(chosen):
        return chosen
    order = np.argsort(ids[chosen], kind="stable")
    found = np.searchsorted(ids[chosen], ids[rows], sorter=order).clip(max=len(chosen) - 1)
    place = order[found]
    is_copy = ids[chosen[place]] == ids[rows]
    copies: Ints = rows[is_copy][np.argsort(place[is_copy], kind="stable")]
    return copies


def _very_common(normals: Ints, ids: Ints) -> Ints:
    """Return the normals that have far more copies than others."""
    _, place, counts = np.unique(ids[normals], return_inverse=True, return_counts=True)
    most = max(COMMON * len(normals) / len(counts), COMMON_SHARE * len(normals), 1)
    return normals[counts[place] > most]


def _folds_of_distinct(
    normals: Ints,
    anomalies: Ints,
    n_folds: int,
    rng: np.random.Generator,
    doubtful: Ints,
) -> list[Fold]:
    """Split rows of which none is a copy of another."""
    normals, anomalies = rng.permutation(normals), rng.permutation(anomalies)
    split = _split_for_good(normals, doubtful) if n_folds == 1 else _cross(normals, n_folds)
    folds = []
    for fold, (training, validation, calibration) in enumerate(split):
        train, validate = _split_anomalies(anomalies, fold, n_folds)
        folds.append(Fold(training, train, validation, validate, calibration))
    return folds


def _cross(normals: Ints, n_folds: int) -> list[tuple[Ints, Ints, Ints]]:
    """Let each normal be held out by one fold, and train the others.

    A fold's validation normals are the first of those that it holds out. That they calibrate too
    makes p-values hardly smaller: an epoch is chosen by their mean alone (docs/METHOD.md).
    """
    if len(normals) < N_CROSSED_ROLES:
        return [(normals, normals, normals)] * n_folds
    places = np.arange(len(normals)) % n_folds
    n_validation = max(MIN_VALIDATION, round(VALIDATION_SHARE * len(normals)))
    held_out = [normals[places == fold % len(normals)] for fold in range(n_folds)]
    return [(np.setdiff1d(normals, own), own[:n_validation], own) for own in held_out]


def _split_for_good(normals: Ints, doubtful: Ints) -> list[tuple[Ints, Ints, Ints]]:
    """Let each normal do one thing: train, validate or calibrate."""
    if len(normals) < N_ROLES:
        return [(normals, normals, normals)]
    n_validation = max(1, round(VALIDATION_SHARE * len(normals)))
    n_calibration = max(1, round(CALIBRATION_SHARE * len(normals)))
    ends = [n_validation, n_validation + n_calibration]
    normals = _certain_at(normals, doubtful, np.arange(*ends))
    validation, calibration, training = np.split(normals, ends)
    return [(training, validation, calibration)]


def _certain_at(normals: Ints, doubtful: Ints, places: Ints) -> Ints:
    """Put normals that are not doubtful at these places, if there are twice as many of them."""
    certain = np.flatnonzero(~np.isin(normals, doubtful))
    if not len(doubtful) or len(certain) < 2 * len(places):
        return normals
    chosen = certain[: len(places)]
    others = np.delete(np.arange(len(normals)), places)
    reordered = np.empty_like(normals)
    reordered[places], reordered[others] = normals[chosen], np.delete(normals, chosen)
    return reordered


def _split_anomalies(anomalies: Ints, fold: int, n_folds: int) -> tuple[Ints, Ints]:
    if len(anomalies) < 2:
        return (anomalies[:0], anomalies) if n_folds == 1 else (anomalies, anomalies[:0])
    half = len(anomalies) // 2
    first, second = np.split(anomalies, [len(anomalies) - half])
    return (first, second) if fold % 2 == 0 else (second, first)
