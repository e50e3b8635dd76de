"""Accuracy when anomalies hide among unlabelled rows: `unlabelled="robust"` against "normal".

    fewlier-bench unlabelled-pools run --data DIR \
        --out results/unlabelled_pools.csv
    fewlier-bench unlabelled-pools show results/unlabelled_pools.csv

DIR holds `.npz` files with X (n, d) and y (n,), 1 for an anomaly. Of each table and split, the
detector is given the labelled anomalies and a pool of unlabelled rows: 90 % of the normals, and so
many hidden anomalies that they are the stated share of it. At most half of the anomalies that are
not labelled hide; where those are too few, normals are cut at random. The AUC is measured on the
other normals and on the other half. A cell that would be left with fewer than 200 normals by the
cut, or with fewer than three test anomalies, is left out, with the reason. Tables are cut to 12,000
rows. Rows are appended to the file, and those that are there already are not computed again. All
splits of a cell train as one stack.
"""

from argparse import Namespace
from itertools import product

import numpy as np

from fewlier.table import Table
from fewlier_bench.data.few_labels import draw_pool
from fewlier_bench.studies.grid import MEASURES, append, load, measure_or_tell, read, table_paths
from fewlier_bench.studies.study import FILE, OUT, TABLES, Study, option

FIELDS = ["table", "variant", "contamination", "labels", "split", *MEASURES]
VARIANTS = {name: {"unlabelled": name} for name in ("robust", "normal")}


def run(arguments: Namespace) -> None:
    """Compute the rows that are not in the file yet."""
    done = {tuple(row[name] for name in FIELDS[:5]) for row in read(arguments.out)}
    cells = list(product(arguments.labels, arguments.contamination, arguments.variants))
    for path in table_paths(arguments.data, arguments.tables):
        X, y = load(path)
        table = Table({f"x{j}": X[:, j] for j in range(X.shape[1])})
        for n_labels, contamination, name in cells:
            key = (path.stem, name, f"{contamination:g}", str(n_labels))
            numbers = [s for s in range(arguments.splits) if (*key, str(s)) not in done]
            drawn = {s: draw_pool(y, n_labels, s, contamination) for s in numbers}
            rows = list(measure_or_tell(table, y, VARIANTS[name], drawn))
            common = dict(zip(FIELDS, key, strict=False))
            append(arguments.out, FIELDS, [{**common, **row} for row in rows])
            if any("auc" in row for row in rows):
                print(*key, flush=True)


def show(arguments: Namespace) -> None:
    """Print the mean AUC of each table as Markdown, variants side by side, a table per cell."""
    rows = [row for row in read(arguments.out) if row["auc"]]
    variants = list(dict.fromkeys(row["variant"] for row in rows))
    print("| labels | hidden | table |", " | ".join(variants), "|")
    print("|---|---|---|" + "---|" * len(variants))
    for n, share in sorted({(int(r["labels"]), float(r["contamination"])) for r in rows}):
        values: dict[tuple[str, str], list[float]] = {}
        for row in rows:
            if (int(row["labels"]), float(row["contamination"])) == (n, share):
                values.setdefault((row["table"], row["variant"]), []).append(float(row["auc"]))
        tables = sorted({table for table, _ in values})
        # An average compares variants on the same tables.
        common = [t for t in tables if all((t, v) in values for v in variants)]
        for table in tables:
            means = [np.mean(values.get((table, v), [np.nan])) for v in variants]
            print(f"| {n} | {share:.0%} | {table} |", " | ".join(f"{m:.3f}" for m in means), "|")
        means = [np.mean([np.mean(values[t, v]) for t in common]) for v in variants if common]
        print(
            f"| {n} | {share:.0%} | **mean of {len(common)}** |",
            " | ".join(f"**{mean:.4f}**" for mean in means),
            "|",
        )


STUDY = Study.of(
    run,
    OUT,
    *TABLES,
    option("--labels", type=int, nargs="+", default=[0, 6]),
    option("--contamination", type=float, nargs="+", default=[0, 0.01, 0.05, 0.1]),
    option("--splits", type=int, default=10),
    option("--variants", nargs="+", choices=VARIANTS, default=["robust", "normal"]),
) | Study.of(show, FILE)
