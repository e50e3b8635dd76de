"""What one impossible, far or missing cell does to the score of a row.

    fewlier-bench odd-cells run --data DIR --out results/odd_cells.csv
    fewlier-bench odd-cells show results/odd_cells.csv

DIR holds `.npz` files with X (n, d) and y (n,), 1 for an anomaly. Columns of 3 to 12 integers are
read as categories. Two detectors with default settings are fitted to `--rows` of the normals,
without labels and with six labelled anomalies, at a false-alarm rate of 1 %. Of `--fresh` other
rows, normal and anomalous, one cell at a time is replaced:

- `unseen`: by a category that training did not hold;
- `far`: by a number ten training ranges above the highest, and as far below the lowest;
- `negative`: by -1,000,000, in columns of counts and amounts;
- `missing`: by nothing, in columns that miss no cell in training.

A line of the file is one kind of cell in one fit: how many cells, how many scores became lower, how
many of these on rows that were flagged, how many rows lost their flag, and, of the rows that were
not flagged before, how many are flagged then.
"""

import warnings
from argparse import Namespace
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from fewlier import AnomalyDetector
from fewlier_bench.studies.grid import append, new_tables, read
from fewlier_bench.studies.study import FILE, OUT, TABLES, Study, option

FIELDS = ["table", "labels", "cell", "cells", "lower", "lower_flagged", "lost", "plain", "flagged"]
CELLS, LABELS, RATE = ("unseen", "far", "negative", "missing"), (0, 6), 0.01
MAX_COLUMNS, LEVELS, RANGES = 20, (3, 12), 10
SLACK = 1e-5


def as_frame(X: np.ndarray, training: np.ndarray) -> pd.DataFrame:
    """Return a table whose columns of a few integers are categories."""
    frame = pd.DataFrame(X).add_prefix("x")
    for d, name in enumerate(frame):
        known = X[training, d][~np.isnan(X[training, d])]
        is_level = LEVELS[0] <= len(np.unique(known)) <= LEVELS[1]
        if is_level and (known == np.round(known)).all():
            text = frame[name].map("level {:g}".format, na_action="ignore")
            frame[name] = text.astype(object)
    return frame


def replaced(frame: pd.DataFrame, training: pd.DataFrame) -> Iterator[tuple[str, str, Any]]:
    """Yield what kind of cell, in which column, is replaced by what."""
    for name in list(frame)[:MAX_COLUMNS]:
        known = training[name].dropna()
        if not training[name].isna().any():
            yield "missing", name, None
        if known.dtype == object:
            yield "unseen", name, "never seen"
            continue
        low, high = known.min(), known.max()
        if low == high:
            continue
        for far in (high + RANGES * (high - low), low - RANGES * (high - low)):
            yield "far", name, far
        if low >= 0:
            yield "negative", name, -1e6


def measured(
    frame: pd.DataFrame, y: np.ndarray, rows: tuple[np.ndarray, np.ndarray]
) -> list[dict[str, Any]]:
    """Fit once and return a line for each kind of cell."""
    given, fresh = rows
    training = frame.iloc[given]
    detector = AnomalyDetector(false_alarm_rate=RATE, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        detector.fit(training, y[given] if y[given].any() else None)
        known = detector.feature_names_in_
        fresh_rows = frame.iloc[fresh][list(known)]
        before, threshold = detector.anomaly_score(fresh_rows), detector.threshold_
        kinds = {c.name: c.kind for c in detector.model_.encoder.schema.columns}
        found = {cell: np.zeros(len(FIELDS) - 3, np.int64) for cell in CELLS}
        for cell, name, value in replaced(fresh_rows, training[y[given] == 0]):
            if cell == "negative" and kinds.get(name) not in ("count", "positive"):
                continue
            after = detector.anomaly_score(fresh_rows.assign(**{name: value}))
            is_lower, was = after < before - SLACK, before > threshold
            lost = was & (after <= threshold)
            gained = ~was & (after > threshold)
            counts = (np.ones(len(was)), is_lower, is_lower & was, lost, ~was, gained)
            found[cell] += [int(np.sum(count)) for count in counts]
    n_labels = int(y[given].sum())
    lines = zip(found, (counts.tolist() for counts in found.values()), strict=True)
    return [dict(zip(FIELDS[1:], [n_labels, cell, *n], strict=True)) for cell, n in lines if n[0]]


def run(arguments: Namespace) -> None:
    """Compute the tables that are not in the file yet."""
    for name, X, y in new_tables(arguments):
        rng = np.random.default_rng(0)
        normals, anomalies = (rng.permutation(np.flatnonzero(y == label)) for label in (0, 1))
        n_given = min(arguments.rows, len(normals) * 3 // 4)
        others = np.concatenate([normals[n_given:], anomalies[max(LABELS) :]])
        fresh = rng.permutation(others)[: arguments.fresh]
        frame, lines = as_frame(X, normals[:n_given]), []
        for n_labels in LABELS:
            given = np.concatenate([normals[:n_given], anomalies[:n_labels]])
            found = measured(frame, y, (given, fresh))
            lines += [{"table": name, **line} for line in found]
        append(arguments.out, FIELDS, lines or [{"table": name}])


def show(arguments: Namespace) -> None:
    """Print the counts of all tables together."""
    rows = [row for row in read(arguments.out) if row["cell"]]
    print("| cell | labels | cells | lower | of them flagged | lost their flag | flags a row |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for cell in CELLS:
        for n_labels in LABELS:
            mine = [r for r in rows if (r["cell"], int(r["labels"])) == (cell, n_labels)]
            n, lower, flagged, lost, plain, gained = (
                sum(int(row[name]) for row in mine) for name in FIELDS[3:]
            )
            shares = f"{lower:,} ({lower / max(n, 1):.2%}) | {flagged:,} | {lost:,}"
            print(f"| {cell} | {n_labels} | {n:,} | {shares} | {gained / max(plain, 1):.1%} |")


STUDY = Study.of(
    run,
    OUT,
    *TABLES,
    option("--rows", type=int, default=1000, help="normals at most, to train"),
    option("--fresh", type=int, default=100, help="rows whose cells are replaced"),
) | Study.of(show, FILE)
