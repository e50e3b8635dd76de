"""Expected ranges of numbers: how many values of fresh normal rows lie in them.

    fewlier-bench expected-ranges run --data DIR --out results/expected_ranges.csv
    fewlier-bench expected-ranges show results/expected_ranges.csv

DIR holds `.npz` files with X (n, d) and y (n,), 1 for an anomaly. Two detectors with default
settings are fitted to each table: to `--rows` of its normals without labels, and to these and six
labelled anomalies. A third of the normals, at most as many, is fresh. A line of the file is one
column of one fit:

- `covered`: the share of fresh normal cells that lie in their range, which should be 0.9;
- `inside`: the share that lie between its ends, and on neither. Of a column of few values, a range
  that covers more than 0.95 is still the right one if the values between its ends are too few;
- `beyond`: the share of ranges that reach beyond all training normals;
- `unlike`: the share of rows that have no range, because nothing in training is like them;
- `width`: the median width, as a share of the middle 90 % of the training normals.
"""

import warnings
from argparse import Namespace
from collections.abc import Iterator
from typing import Any

import numpy as np

from fewlier import AnomalyDetector
from fewlier_bench.studies.grid import append, new_tables, read
from fewlier_bench.studies.study import FILE, OUT, TABLES, Study, option

FIELDS = ["table", "labels", "column", "cells", "covered", "inside", "beyond", "unlike", "width"]
LABELS, MIN_CELLS = (0, 6), 100
LOW, HIGH, ENOUGH = 0.85, 0.95, 0.9


def draw(y: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return training normals, fresh normals, and the anomalies, in random order."""
    rng = np.random.default_rng(0)
    normals, anomalies = (rng.permutation(np.flatnonzero(y == label)) for label in (0, 1))
    n_fresh = min(len(normals) // 3, most)
    return normals[n_fresh:][:most], normals[:n_fresh], anomalies


def measured(X: np.ndarray, y: np.ndarray, n_labels: int, most: int) -> Iterator[dict[str, Any]]:
    """Fit once and yield a line for each column of numbers with enough fresh cells."""
    normals, fresh, anomalies = draw(y, most)
    given = np.concatenate([normals, anomalies[:n_labels]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        labels = y[given] if n_labels else None
        explanation = AnomalyDetector(random_state=0).fit(X[given], labels).explain(X[fresh])
    shape, expected = (len(fresh), len(explanation.columns)), explanation.expected
    lows, highs = (np.reshape(end, shape) for end in (expected.low, expected.high))
    is_number = np.array([c is None for c in expected.categories]).reshape(shape).all(0)
    for d in np.flatnonzero(is_number):
        values, low, high = X[fresh, d], lows[:, d], highs[:, d]
        training = X[normals, d][~np.isnan(X[normals, d])]
        known, ranged = ~np.isnan(values), ~np.isnan(low)
        if known.sum() < MIN_CELLS or not len(training):
            continue
        both = known & ranged
        # The ranges of rounded values are computed in float32.
        slack = 1e-6 * np.abs(values[both])
        found = values[both], low[both] - slack, high[both] + slack
        edges = training.min(), training.max()
        slack = 1e-6 * np.abs(edges)
        beyond = (low < edges[0] - slack[0]) | (high > edges[1] + slack[1])
        usual = np.subtract(*np.quantile(training, [0.95, 0.05]))
        yield {
            "labels": n_labels,
            "column": int(d),
            "cells": int(known.sum()),
            "covered": f"{((found[0] >= found[1]) & (found[0] <= found[2])).mean():.4f}",
            "inside": f"{((values > low) & (values < high))[both].mean():.4f}",
            "beyond": f"{beyond[ranged].mean():.4f}",
            "unlike": f"{(known & ~ranged).sum() / known.sum():.4f}",
            "width": f"{np.median((high - low)[ranged]) / (usual or 1):.4f}",
        }


def run(arguments: Namespace) -> None:
    """Compute the tables that are not in the file yet."""
    for name, X, y in new_tables(arguments):
        lines = [
            {"table": name, **line}
            for n_labels in LABELS
            for line in measured(X, y, n_labels, arguments.rows)
        ]
        append(arguments.out, FIELDS, lines or [{"table": name}])


def show(arguments: Namespace) -> None:
    """Print, for each number of labels, how many columns keep the promise."""
    rows = [row for row in read(arguments.out) if row["column"]]
    print("| labels | columns | 85 to 95 % | as narrow as can be | beyond | unlike | width |")
    print("|---:|---:|---:|---:|---:|---:|---:|")
    for n_labels in LABELS:
        mine = [row for row in rows if int(row["labels"]) == n_labels]
        covered, inside, beyond, unlike, width = (
            np.array([float(row[name]) for row in mine]) for name in FIELDS[4:]
        )
        right = (covered >= LOW) & (covered <= HIGH)
        narrow = right | ((covered > HIGH) & (inside < ENOUGH))
        print(
            f"| {n_labels} | {len(mine)} | {right.mean():.1%} | {narrow.mean():.1%} | "
            f"{beyond.mean():.1%} | {unlike.mean():.2%} | {np.median(width):.2f} |"
        )


STUDY = Study.of(
    run,
    OUT,
    *TABLES,
    option("--rows", type=int, default=1000, help="normals at most, to train and to test"),
) | Study.of(show, FILE)
