"""Which rows train, which choose, and which are held back: the splits inside one fit."""

from dataclasses import dataclass
from typing import final

import numpy as np

from fewlier.arrays import Ints

# Shares of the normals that choose epochs and weights, and that stand behind thresholds.
VALIDATION_SHARE = 0.1
CALIBRATION_SHARE = 0.05
# With fewer normals than roles, all of them play each.
N_ROLES = 3
# From 200 calibration rows on, all folds hold back the same ones, which no member has seen.
ENOUGH_CALIBRATION = 200
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
    do neither in this fold.

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
    two folds, or validates a single one. Few normals: each fold holds back its own, and a row is
    calibrated by the folds that never saw it. Many: all folds hold back the same.

    `doubtful` are the normals that may be hidden anomalies. Where there are enough others, none of
    them calibrates.

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
    """Split rows of which none is a copy of another.

    The shuffled normals are laid out as::

        many normals   calibration of all folds | validation of fold 0 | of fold 1 | ...
        few normals    validation, calibration of fold 0 | of fold 1 | ...

    and each fold trains on whatever has no role in it.
    """
    normals, anomalies = rng.permutation(normals), rng.permutation(anomalies)
    n_validation = max(1, round(VALIDATION_SHARE * len(normals)))
    n_calibration = max(1, round(CALIBRATION_SHARE * len(normals)))
    is_shared = n_calibration >= ENOUGH_CALIBRATION
    width = n_validation + (0 if is_shared else n_calibration)
    starts = [0] if is_shared else [fold * width + n_validation for fold in range(n_folds)]
    calibrating = (np.add.outer(starts, np.arange(n_calibration)) % len(normals)).ravel()
    normals = _certain_at(normals, doubtful, np.unique(calibrating))
    shared, rest = np.split(normals, [n_calibration if is_shared else 0])
    folds = []
    for fold in range(n_folds):
        train, validate = _split_anomalies(anomalies, fold, n_folds)
        rows = np.roll(rest, -fold * width)
        validation, own, training = np.split(rows, [n_validation, width])
        if len(rest) < N_ROLES:
            validation = own = training = rest
        folds.append(Fold(training, train, validation, validate, np.concatenate([shared, own])))
    return folds


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
