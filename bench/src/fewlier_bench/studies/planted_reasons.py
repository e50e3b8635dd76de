"""Reasons on labelled tables: how often the column that was tampered with is among the first.

    fewlier-bench planted-reasons run --data DIR --out results/planted_reasons.csv
    fewlier-bench planted-reasons show results/planted_reasons.csv

DIR holds `.npz` files with X (n, d) and y (n,), 1 for an anomaly. For each table, a detector with
default settings is fitted to 90 % of the normals (at most `--rows`) and six anomalies. Of fresh
normals, repeated to 1000 rows, one column, drawn at random, is tampered with:

- `far`: set 3 interquartile ranges beyond the training range, on either side;
- `swapped`: set to the value of another training row. Only rows whose score then passes the 95 %
  quantile of the fresh normals count;
- `swapped anew`: those of them that did not pass before, for reasons of their own.

Columns that are constant in the normals, and copies of others, are left out. On a sample of the
same rows, kernel SHAP explains an isolation forest fitted to the same normals (needs
`fewlier-bench[methods]`).
`top1` and `top3` are shares of rows, `ms_per_row` is the time of an explanation.
"""

import time
from argparse import Namespace
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.ensemble import IsolationForest

from fewlier import AnomalyDetector
from fewlier_bench.data.few_labels import draw_clean
from fewlier_bench.studies.grid import append, new_tables, read
from fewlier_bench.studies.study import FILE, OUT, TABLES, Study, option

FIELDS = ["table", "kind", "method", "n_columns", "n_rows", "top1", "top3", "ms_per_row"]
N_LABELS, N_PLANTED = 6, 1000
BACKGROUND, COALITIONS = 20, 256

Contributions = Callable[[np.ndarray], np.ndarray]


def distinct(normals: np.ndarray) -> list[int]:
    """Return the columns but for constant ones and copies of others."""
    _, first = np.unique(normals, axis=1, return_index=True)
    return [j for j in sorted(first) if np.ptp(normals[:, j])]


def planted(
    kind: str, fresh: np.ndarray, training: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Tamper with one column of each row; return the rows, and the columns."""
    rows, columns = fresh.copy(), rng.integers(0, fresh.shape[1], len(fresh))
    for row, j in zip(rows, columns, strict=True):
        values = training[:, j]
        if kind == "swapped":
            row[j] = rng.choice(values[values != row[j]])
            continue
        width = np.subtract(*np.quantile(values, [0.75, 0.25])) or np.ptp(values)
        far = values.max() + 3 * width if rng.random() < 0.5 else values.min() - 3 * width
        row[j] = np.round(far) if (values == np.round(values)).all() else far
    return rows, columns


def ranked(
    explain: Contributions, rows: np.ndarray, columns: np.ndarray
) -> dict[str, float | int | str]:
    """Return how often the planted columns come first, and how long it took."""
    if not len(rows):
        return {"n_rows": 0}
    started = time.perf_counter()
    contributions = explain(rows)
    seconds = time.perf_counter() - started
    own = np.take_along_axis(contributions, columns[:, None], 1)
    place = (contributions > own).sum(1)
    return {
        "n_rows": len(rows),
        "top1": f"{(place < 1).mean():.4f}",
        "top3": f"{(place < 3).mean():.4f}",
        "ms_per_row": f"{1000 * seconds / len(rows):.2f}",
    }


def kernel_shap(normals: np.ndarray) -> Contributions:
    """Explain an isolation forest of the normals."""
    import shap

    forest = IsolationForest(random_state=0).fit(normals)
    background = np.random.default_rng(0).permutation(normals)[:BACKGROUND]
    explainer = shap.KernelExplainer(lambda X: -forest.score_samples(X), background)
    n_coalitions = 2 * normals.shape[1] + COALITIONS
    return lambda X: np.asarray(explainer.shap_values(X, nsamples=n_coalitions, silent=True))


def measured(X: np.ndarray, y: np.ndarray, n_shap: int) -> list[dict[str, Any]]:
    """Fit one table and return a row for each kind and method."""
    drawn = draw_clean(y, N_LABELS, 0)
    if isinstance(drawn, str):
        raise SystemExit(f"tables must have anomalies to label and to test; got {drawn}")
    X = X[:, distinct(X[drawn.given[drawn.labels == 0]])]
    training = X[drawn.given]
    normals, fresh = training[drawn.labels == 0], X[drawn.test[y[drawn.test] == 0]]
    detector = AnomalyDetector(random_state=0).fit(training, drawn.labels)
    methods: dict[str, Contributions] = {
        "fewlier": lambda rows: detector.explain(rows).contributions,
        "kernel SHAP of isolation forest": kernel_shap(normals),
    }
    scores = detector.anomaly_score(fresh)
    index = np.resize(np.arange(len(fresh)), N_PLANTED)
    far = planted("far", fresh[index], normals, np.random.default_rng(0))
    rows, columns = planted("swapped", fresh[index], normals, np.random.default_rng(0))
    passes = detector.anomaly_score(rows) > np.quantile(scores, 0.95)
    anew = passes & (scores[index] <= np.quantile(scores, 0.95))
    kinds = {
        "far": far,
        "swapped": (rows[passes], columns[passes]),
        "swapped anew": (rows[anew], columns[anew]),
    }
    results = []
    for kind, (rows, columns) in kinds.items():
        for method, explain in methods.items():
            n = n_shap if method != "fewlier" else len(rows)
            found = ranked(explain, rows[:n], columns[:n])
            results.append({"kind": kind, "method": method, "n_columns": X.shape[1], **found})
    return results


def run(arguments: Namespace) -> None:
    """Compute the tables that are not in the file yet."""
    for name, X, y in new_tables(arguments):
        rng = np.random.default_rng(0)
        kept = rng.permutation(np.flatnonzero(y == 0))[: arguments.rows]
        rows = np.concatenate([kept, np.flatnonzero(y == 1)])
        results = measured(X[rows], y[rows], arguments.shap)
        append(arguments.out, FIELDS, [{"table": name, **row} for row in results])


def show(arguments: Namespace) -> None:
    """Print the file as Markdown, a line per table and the mean over tables."""
    rows = [row for row in read(arguments.out) if row["top1"]]
    groups = list(dict.fromkeys((row["kind"], row["method"]) for row in rows))
    print("| table |", " | ".join(f"{kind}, {method}" for kind, method in groups), "|")
    print("|---|" + "---|" * len(groups))
    for table in sorted({row["table"] for row in rows}):
        cells = []
        for group in groups:
            match = [r for r in rows if (r["table"], r["kind"], r["method"]) == (table, *group)]
            cells += [f"{r['top1']} / {r['top3']} of {r['n_rows']}" for r in match] or ["–"]
        print(f"| {table} |", " | ".join(cells), "|")
    means = []
    for group in groups:
        mine = [r for r in rows if (r["kind"], r["method"]) == group]
        top1, top3, ms = (np.mean([float(r[name]) for r in mine]) for name in FIELDS[-3:])
        means.append(f"{top1:.3f} / {top3:.3f}, {ms:.1f} ms")
    print("| **mean** |", " | ".join(means), "|")


STUDY = Study.of(
    run,
    OUT,
    *TABLES,
    option("--rows", type=int, default=500, help="normals at most"),
    option("--shap", type=int, default=20, help="rows of each kind that SHAP explains"),
) | Study.of(show, FILE)
