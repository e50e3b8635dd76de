"""Whether what a fit says of itself comes true: shares flagged, validation intervals, costs.

    fewlier-bench promises run --data DIR --out results/promises.csv
    fewlier-bench promises show results/promises.csv

DIR holds `.npz` files with X (n, d) and y (n,), 1 for an anomaly. A fit has up to 600 normals and
some labelled anomalies; with `hidden`, normals are unlabelled, and 3 % anomalies among them. A line
of the file is one fit, compared with up to 3,500 other rows. `flagged_5` is the share above a
threshold for a contamination of 5 %, of other rows in the proportions of the training rows. `auc`
is that of the other rows, and `held_out`, `low` and `high` what the fit said of it. `cost` is that
of a row with 5 % anomalies, a miss being twenty times as dear as an alarm, `said` what the
threshold says, and `constant` the cost of the better of flagging all rows or none.
"""

import warnings
from argparse import Namespace
from collections.abc import Iterator, Sequence
from itertools import groupby, product
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from fewlier import AnomalyDetector
from fewlier_bench.studies.grid import append, load, read, table_paths
from fewlier_bench.studies.study import FILE, OUT, TABLES, Study, option

CELL = ["table", "situation", "labels", "split"]
SHARES = (0.01, 0.05, 0.2)
FLAGGED = [f"flagged_{100 * share:g}" for share in SHARES]
FIELDS = [*CELL, *FLAGGED, "auc", "held_out", "low", "high", "cost", "said", "constant"]
N_NORMALS, HIDDEN, MAX_NEW, MIN_ANOMALIES = 600, 0.03, (2000, 1500), 8
COSTS = {"cost_miss": 20, "cost_alarm": 1, "contamination": 0.05}


def measured(
    X: np.ndarray, y: np.ndarray, situation: str, n_labels: int, split: int
) -> dict[str, str] | None:
    """Fit some rows and score others; None with too few anomalies, or with one that repeats."""
    rng = np.random.default_rng([split, n_labels])
    normals, anomalies = (rng.permutation(np.flatnonzero(y == label)) for label in (0, 1))
    n = min(N_NORMALS, len(normals) // 2)
    is_hidden = situation == "hidden"
    n_odd = n_labels + round(HIDDEN * n) * is_hidden
    if len(anomalies) < n_odd + MIN_ANOMALIES:
        return None
    told = np.full(n + n_odd, np.nan if is_hidden else 0.0)
    told[n : n + n_labels] = 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # 1 % is not attainable with few rows
        rows = X[np.concatenate([normals[:n], anomalies[:n_odd]])]
        detector = AnomalyDetector(random_state=split).fit(rows, told)
    new = normals[n:][: MAX_NEW[0]], anomalies[n_odd:][: MAX_NEW[1]]
    scores = [detector.anomaly_score(X[some]) for some in new]
    truth = np.repeat([0, 1], [len(some) for some in scores])
    ranking = detector.summary_.validation
    if ranking is None:
        return None
    found: list[float] = []
    for share in SHARES:
        above = _above(scores, detector.set_threshold(contamination=share).threshold_)
        found.append((n * above[0] + n_odd * above[1]) / (n + n_odd))
    found += [roc_auc_score(truth, np.concatenate(scores))]
    found += [ranking.auc, ranking.low, ranking.high]
    above = _above(scores, detector.set_threshold(**COSTS).threshold_)
    costs = detector.summary_.decision.costs
    if costs is None:
        raise AssertionError("a threshold by costs says what it costs")
    found += [costs.share * costs.miss * (1 - above[1]) + (1 - costs.share) * above[0]]
    found += [costs.expected, min(costs.flag_all, costs.flag_none)]
    return dict(zip(FIELDS[len(CELL) :], (f"{value:.5f}" for value in found), strict=True))


def _above(scores: Sequence[np.ndarray], threshold: float) -> tuple[float, float]:
    """Return the shares of normals and of anomalies above a threshold."""
    normal, odd = (float((some > threshold).mean()) for some in scores)
    return normal, odd


def run(arguments: Namespace) -> None:
    """Compute the lines that are not in the file yet."""
    done = {tuple(row[name] for name in CELL) for row in read(arguments.out)}
    paths = table_paths(arguments.data, arguments.tables)
    for split, path in product(range(arguments.splits), paths):
        X, y = load(path)
        for situation, n_labels in product(arguments.situations, arguments.labels):
            key = path.stem, situation, str(n_labels), str(split)
            if key in done or (found := measured(X, y, situation, n_labels, split)) is None:
                continue
            append(arguments.out, FIELDS, [dict(zip(CELL, key, strict=True)) | found])


def show(arguments: Namespace) -> None:
    """Print what was promised and what was found, as Markdown."""
    rows = sorted(read(arguments.out), key=_cell)
    print("| situation | labels | fits | 1 % | 5 % | 20 % | AUC | held out | interval | right |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for (situation, n_labels), group in groupby(rows, _cell):
        print(f"| {situation} | {n_labels} | {' | '.join(_cells(list(group)))} |")
    cost, said, constant = (np.array([float(r[n]) for r in rows]) for n in FIELDS[-3:])
    claims, is_better = said < constant, cost < constant
    print(
        f"\nA row costs {cost.mean():.3f}, said {said.mean():.3f}, constant {constant.mean():.3f}. "
        f"Of {claims.sum()} fits that say they are better than a constant, "
        f"{is_better[claims].sum()} are; of {(~claims).sum()} others {is_better[~claims].sum()}."
    )


def _cells(lines: Sequence[dict[str, str]]) -> Iterator[str]:
    """Yield the cells of one line of the table."""
    value = {name: np.array([float(line[name]) for line in lines]) for name in FIELDS[len(CELL) :]}
    yield str(len(lines))
    for name in FLAGGED:
        high = np.quantile(value[name], 0.95)
        yield f"{value[name].mean():.1%} (95 % below {high:.1%})"
    yield f"{value['auc'].mean():.3f}"
    yield f"{value['held_out'].mean():.3f}"
    is_right = (value["low"] <= value["auc"]) & (value["auc"] <= value["high"])
    yield f"{(value['high'] - value['low']).mean():.2f} wide"
    yield f"{is_right.mean():.0%}"


def _cell(row: dict[str, Any]) -> tuple[str, int]:
    return row["situation"], int(row["labels"])


STUDY = Study.of(
    run,
    OUT,
    *TABLES,
    option("--labels", type=int, nargs="+", default=[3, 6, 12, 30]),
    option("--situations", nargs="+", default=["clean", "hidden"]),
    option("--splits", type=int, default=2),
) | Study.of(show, FILE)
