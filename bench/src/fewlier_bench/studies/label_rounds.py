"""Labelling the oddest rows, round by round: `update` against a new fit.

    fewlier-bench label-rounds run --data DIR \
        --out results/label_rounds.csv --max-rows 2000
    fewlier-bench label-rounds show results/label_rounds.csv

Starts from a pool of unlabelled rows of which 5 % are hidden anomalies, drawn as by
`unlabelled_pools`. In each round the ten highest-scored rows of the pool without a label
get theirs. The updated detector is saved and loaded in between, so that it knows nothing of the
pool but what its file keeps; the other is fitted to the whole pool with all labels so far. Both
choose the rows to label by their own scores. Rows are appended, and those that are there already
are not computed again.
"""

import time
from argparse import Namespace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from fewlier import AnomalyDetector
from fewlier_bench.data.few_labels import HIDDEN, FewLabelSplit, draw_pool
from fewlier_bench.studies.grid import append, load, read, table_paths
from fewlier_bench.studies.study import FILE, OUT, TABLES, Study, option

FIELDS = ["table", "variant", "split", "round", "labels", "anomalies", "auc", "seconds", "reason"]
N_ROUNDS, N_LABELLED = 5, 10


def reloaded(detector: AnomalyDetector) -> AnomalyDetector:
    """Send a detector through its file."""
    with TemporaryDirectory() as folder:
        detector.save(Path(folder, "model.fewlier"))
        return AnomalyDetector.load(Path(folder, "model.fewlier"))


def rounds(
    X: np.ndarray, y: np.ndarray, given: FewLabelSplit, variant: str
) -> list[dict[str, Any]]:
    """Label and learn, round by round; return a row for each, the first fit being round 0."""
    pool, truth = X[given.given], y[given.given].astype(float)
    labels = np.full(len(truth), np.nan)
    detector = AnomalyDetector(random_state=given.number, false_alarm_rate=0.1)
    chosen = np.empty(0, dtype=np.int64)
    rows = []
    for number in range(N_ROUNDS + 1):
        started = time.perf_counter()
        if not number or variant == "refit":
            detector.fit(pool, labels)
        else:
            detector.update(pool[chosen], labels[chosen])
        seconds = time.perf_counter() - started
        auc = roc_auc_score(y[given.test], detector.anomaly_score(X[given.test]))
        counts = {"labels": int((labels >= 0).sum()), "anomalies": int((labels == 1).sum())}
        rows.append({"round": number, **counts, "auc": f"{auc:.6f}", "seconds": f"{seconds:.2f}"})
        score = np.where(np.isnan(labels), detector.anomaly_score(pool), -np.inf)
        chosen = np.argsort(-score)[:N_LABELLED]
        labels[chosen] = truth[chosen]
        detector = reloaded(detector)
    return rows


def run(arguments: Namespace) -> None:
    """Compute the rows that are not in the file yet."""
    done = {(r["table"], r["variant"], r["split"]) for r in read(arguments.out)}
    for path in table_paths(arguments.data, arguments.tables):
        X, y = load(path)
        X, y = X[: arguments.max_rows], y[: arguments.max_rows]
        for number in range(arguments.splits):
            given = draw_pool(y, 0, number, HIDDEN)
            for variant in ("update", "refit"):
                key = {"table": path.stem, "variant": variant, "split": str(number)}
                if tuple(key.values()) in done:
                    continue
                if isinstance(given, str):
                    append(arguments.out, FIELDS, [{**key, "reason": given}])
                    continue
                found = rounds(X, y, given, variant)
                append(arguments.out, FIELDS, [{**key, **row} for row in found])
                print(*key.values(), flush=True)


def show(arguments: Namespace) -> None:
    """Print mean AUC and seconds by round, per table and over the tables that both have."""
    rows = [row for row in read(arguments.out) if row["auc"]]
    tables = sorted({r["table"] for r in rows if r["variant"] == "refit"})
    print("| table | |", " | ".join(f"round {n}" for n in range(N_ROUNDS + 1)), "| s a round |")
    print("|---|---|" + "---|" * (N_ROUNDS + 2))
    for table in [*tables, "**mean**"]:
        for variant in ("update", "refit"):
            mine = [r for r in rows if r["variant"] == variant and r["table"] in (table, *tables)]
            mine = [r for r in mine if table in (r["table"], "**mean**")]
            by_round = [
                np.mean([float(r["auc"]) for r in mine if r["round"] == str(n)])
                for n in range(N_ROUNDS + 1)
            ]
            seconds = np.mean([float(r["seconds"]) for r in mine if r["round"] != "0"])
            values = " | ".join(f"{auc:.3f}" for auc in by_round)
            print(f"| {table} | {variant} | {values} | {seconds:.1f} |")


STUDY = Study.of(
    run,
    OUT,
    *TABLES,
    option("--splits", type=int, default=2),
    option("--max-rows", type=int, default=12_000),
) | Study.of(show, FILE)
