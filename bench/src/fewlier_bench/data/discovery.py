"""Tables for finding anomalies by asking: which rows there are to ask about, and the truth.

A table is cut to 4,000 normals, and its anomalies are thinned to at most 5 % of the rows, by the
seed of the run. Where accuracy is measured too, half of the rows are kept apart before.
"""

from typing import NamedTuple

import numpy as np

from fewlier_bench.data.few_labels import Floats, Labels, Rows

MAX_NORMALS = 4000
MAX_ANOMALIES = 0.05


class Asked(NamedTuple):
    """Rows to ask about, and rows kept apart to measure accuracy on: row numbers of a table."""

    pool: Rows
    apart: Rows


def cut_pool(y: Labels, rows: Rows, seed: int) -> Rows:
    """Return the rows to ask about, of some rows of a table, in a random order."""
    rng = np.random.default_rng(seed)
    normals = rng.permutation(rows[y[rows] == 0])[:MAX_NORMALS]
    most = max(1, round(len(normals) * MAX_ANOMALIES / (1 - MAX_ANOMALIES)))
    return rng.permutation(np.concatenate([normals, rng.permutation(rows[y[rows] == 1])[:most]]))


def split_and_cut(y: Labels, seed: int) -> Asked:
    """Keep half of the normals and of the anomalies apart, and cut the other half."""
    rng = np.random.default_rng(1000 + seed)
    halves = [np.array_split(rng.permutation(np.flatnonzero(y == label)), 2) for label in (0, 1)]
    pool, apart = (np.concatenate(part) for part in zip(*halves, strict=True))
    return Asked(cut_pool(y, pool, seed), apart)


def draw_labels(y: Labels, n_labels: int, seed: int) -> Floats:
    """Return labels of which only those of a few random anomalies are given, else NaN."""
    anomalies = np.random.default_rng(2000 + seed).permutation(np.flatnonzero(y == 1))
    given = np.full(len(y), np.nan)
    given[anomalies[:n_labels]] = 1
    return given
