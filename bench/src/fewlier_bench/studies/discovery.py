"""How many anomalies are found by asking about one row at a time, and what the answers are worth.

    fewlier-bench discovery run --data DIR DIR --out results/discovery.csv --seeds 1 2 3
    fewlier-bench discovery run --data DIR DIR --out results/discovery.csv --seeds 1 2 3 \
        --methods answers
    fewlier-bench discovery show results/discovery.csv
    fewlier-bench discovery show results/discovery.csv --page docs/evidence/DISCOVERY.md

Each DIR holds `.npz` files with X (n, d) and y (n,), 1 for an anomaly; a table is called by its
folder and its name. It is cut to 4,000 normals, and its anomalies are thinned to 5 % of the rows,
by the seed. Then each method asks 60 questions, and the truth answers. Kinds are clusters of
anomalies, three on a table.

The method "answers" keeps half of the rows apart, asks about the others, fits a detector to them
with the first 20 and with all 60 answers, and with six random anomalies as labels, and measures
the AUC of each on the rows kept apart. Rows are appended to the file, and those that are there
already are not computed again.
"""

import json
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from fewlier import AnomalyDetector
from fewlier_bench.comparison.discovery_page import (
    ANSWERS,
    AT,
    FIELDS,
    N_QUESTIONS,
    discovery_blocks,
    read_lines,
)
from fewlier_bench.data.discovery import cut_pool, draw_labels, split_and_cut
from fewlier_bench.data.few_labels import clusters
from fewlier_bench.methods.askers import ASKERS, SESSION
from fewlier_bench.pages.blocks import fill, read_page, write_text
from fewlier_bench.studies.grid import append, read
from fewlier_bench.studies.study import FILE, OUT, SOME, Study, option

METHODS = [*ASKERS, ANSWERS]
N_LABELS = 6  # random anomalies that the answers are compared with


def ask(X: np.ndarray, y: np.ndarray, method: str, seed: int) -> dict[str, Any]:
    """Let a method ask about the rows of a pool; return what came of it."""
    rows = cut_pool(y, np.arange(len(y)), seed)
    X, y = X[rows], y[rows]
    asked = ASKERS[method](X, y, min(N_QUESTIONS, len(y)), seed)
    found, kinds = np.cumsum(y[asked.rows]), clusters(X, y)[asked.rows]
    result: dict[str, Any] = {"rows": len(y), "anomalies": int(y.sum())}
    for n in AT:
        result[f"found_{n}"] = int(found[min(n, len(found)) - 1])
        result[f"kinds_{n}"] = len(set(kinds[:n].tolist()) - {-1})
    left = {n: int(y.sum() - found[n - 1]) for n in asked.remaining}
    remaining = {str(n): [*told, left[n]] for n, told in asked.remaining.items()}
    seconds = f"{asked.seconds:.4f}"
    return result | {"seconds": seconds, "remaining": json.dumps(remaining) if remaining else ""}


def learn(X: np.ndarray, y: np.ndarray, seed: int) -> dict[str, Any]:
    """Fit detectors with answers and with random labels; return their AUC on rows kept apart."""
    pool, apart = split_and_cut(y, seed)
    if len(set(y[apart].tolist())) < 2:
        return {"reason": "no anomaly was kept apart"}
    asked = ASKERS[SESSION](X[pool], y[pool], min(N_QUESTIONS, len(pool)), seed).rows
    labels = {"auc_random": draw_labels(y[pool], N_LABELS, seed)}
    for n in (20, 60):
        given = np.full(len(pool), np.nan)
        given[asked[:n]] = y[pool][asked[:n]]
        labels[f"auc_{n}"] = given
    result: dict[str, Any] = {"rows": len(pool), "anomalies": int(y[pool].sum())}
    for name, given in labels.items():
        detector = AnomalyDetector(random_state=seed).fit(X[pool], given)
        result[name] = f"{roc_auc_score(y[apart], detector.anomaly_score(X[apart])):.6f}"
    return result


def run(arguments: Namespace) -> None:
    """Compute the rows that are not in the file yet."""
    done = {(r["table"], r["method"], r["seed"]) for r in read(arguments.out)}
    for name, path in _tables(arguments):
        with np.load(path) as archive:
            X, y = archive["X"].astype(np.float64), archive["y"].astype(np.int8)
        for method in arguments.methods:
            for seed in arguments.seeds:
                key = {"table": name, "method": method, "seed": str(seed)}
                if tuple(key.values()) in done:
                    continue
                with threadpool_limits(1):
                    found = learn(X, y, seed) if method == ANSWERS else ask(X, y, method, seed)
                append(arguments.out, FIELDS, [key | found])
                print(*key.values(), *found.values(), flush=True)


def _tables(arguments: Namespace) -> Iterator[tuple[str, Path]]:
    for folder in arguments.data:
        for path in sorted(folder.glob("*.npz")):
            name = f"{folder.name}/{path.stem}"
            if name not in arguments.without and name in (arguments.tables or [name]):
                yield name, path


def show(arguments: Namespace) -> None:
    """Print the tables as Markdown, or write them into a page."""
    blocks = discovery_blocks(read_lines(arguments.out))
    if arguments.page is None:
        print("\n".join(blocks.values()))
        return
    page = read_page(arguments.page, list(blocks), "docs/evidence/DISCOVERY.md")
    write_text(arguments.page, fill(page, blocks))


STUDY = Study.of(
    run,
    option("--data", type=Path, nargs="+", required=True, metavar="DIR"),
    OUT,
    SOME,
    option("--without", nargs="*", default=["discovery/weather"], metavar="TABLE"),
    option("--seeds", type=int, nargs="+", default=[1, 2, 3]),
    option("--methods", nargs="+", choices=METHODS, default=[*ASKERS], metavar="METHOD"),
) | Study.of(show, FILE, option("--page", type=Path, help="write into this page instead"))
