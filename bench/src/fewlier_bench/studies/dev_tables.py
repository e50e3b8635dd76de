"""Accuracy on labelled tables: how densities, selections, kinds, gaps and label counts compare.

    fewlier-bench dev-tables run --data DIR --out results/dev.csv \
        --labels 3 --splits 10 --variants average best
    fewlier-bench dev-tables show results/dev.csv

DIR holds `.npz` files with X (n, d) and y (n,), 1 for an anomaly. For each table and split, 90 % of
the normals and as many anomalies as `--labels` says, which may be 0, are given to the detector; the
AUC is measured on the rest. `seconds` is the training time of a split and `rows_per_second` the
speed of scoring. Tables are cut to 12,000 rows; a cell with fewer than three test anomalies is left
out, with the reason. Rows are appended to the file, and those that are there already are not
computed again. All splits of a table train as one stack.
"""

from argparse import Namespace
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from fewlier import AnomalyDetector, Flow, Training, Vae
from fewlier.table import Table
from fewlier_bench.data.few_labels import draw_clean
from fewlier_bench.studies.grid import MEASURES, append, load, measure_or_tell, read, table_paths
from fewlier_bench.studies.study import FILE, OUT, TABLES, Study, option

FIELDS = ["table", "variant", "labels", "split", *MEASURES]


@dataclass(frozen=True)
class Variant:
    """A setting to compare: parameters of the detector, and what is done to the table first."""

    parameters: dict[str, Any]
    missing: float = 0.0
    integers_as_text: bool = False


PUBLISHED = {
    name: value
    for name, value in AnomalyDetector.as_published().get_params(deep=False).items()
    if name not in ("device", "random_state")
}
VARIANTS = {
    "average": Variant({}),
    "average, no patience": Variant({"training": Training(patience=None)}),
    "average, all real": Variant({"columns": "real"}),
    "best": Variant({**PUBLISHED, "columns": None}),
    "paper": Variant(PUBLISHED),
    "missing 10 %": Variant({}, missing=0.1),
    "missing 30 %": Variant({}, missing=0.3),
    "integers as text": Variant({}, integers_as_text=True),
    "vae": Variant({"density": "vae"}),
    "flow": Variant({"density": "flow"}),
    "flow, splines": Variant({"density": Flow(kind="nsf")}),
    "autoencoder": Variant({"density": "autoencoder"}),
    "paper's vae": Variant(
        {
            **PUBLISHED,
            "density": Vae(n_components=1),
            "training": clone(PUBLISHED["training"]).set_params(lambdas=(0,)),
        },
    ),
}


def altered(X: np.ndarray, variant: Variant) -> Table:
    """Turn integer columns into text and remove cells, as the variant asks."""
    gone = np.random.default_rng(1).random(X.shape) < variant.missing
    cells: dict[str, np.ndarray] = {}
    for j in range(X.shape[1]):
        column = np.where(gone[:, j], np.nan, X[:, j])
        if variant.integers_as_text and (X[:, j] == np.floor(X[:, j])).all():
            column = np.array([f"v{value:g}" for value in X[:, j]], dtype=object)
        cells[f"x{j}"] = column
    return Table(cells)


def run(arguments: Namespace) -> None:
    """Compute the rows that are not in the file yet."""
    done = {(r["table"], r["variant"], r["labels"], r["split"]) for r in read(arguments.out)}
    for path in table_paths(arguments.data, arguments.tables):
        X, y = load(path)
        for name in arguments.variants:
            table = altered(X, VARIANTS[name])
            for n_labels in arguments.labels:
                key = (path.stem, name, str(n_labels))
                splits = [s for s in range(arguments.splits) if (*key, str(s)) not in done]
                if not splits:
                    continue
                common = dict(zip(FIELDS, key, strict=False))
                drawn = {s: draw_clean(y, n_labels, s) for s in splits}
                rows = list(measure_or_tell(table, y, VARIANTS[name].parameters, drawn))
                append(arguments.out, FIELDS, [{**common, **row} for row in rows])
                print(*key, flush=True)


def show(arguments: Namespace) -> None:
    """Print mean AUC per table, one column per variant and number of labels, as Markdown."""
    rows = [row for row in read(arguments.out) if row["auc"]]
    columns = list(dict.fromkeys((row["variant"], row["labels"]) for row in rows))
    tables = sorted({row["table"] for row in rows})
    print("| table |", " | ".join(f"{v}, {n} labels" for v, n in columns), "|")
    print("|---|" + "---|" * len(columns))
    values: dict[tuple[str, str, str], list[float]] = {}
    for row in rows:
        values.setdefault((row["table"], row["variant"], row["labels"]), []).append(
            float(row["auc"])
        )
    for table in tables:
        means = [np.mean(values.get((table, *column), [np.nan])) for column in columns]
        print(f"| {table} |", " | ".join(f"{mean:.3f}" for mean in means), "|")
    common = {
        n: [t for t in tables if all((t, v, m) in values for v, m in columns if m == n)]
        for _, n in columns
    }
    overall = [np.mean([np.mean(values[t, v, n]) for t in common[n]]) for v, n in columns]
    print("| **mean** |", " | ".join(f"{mean:.4f}" for mean in overall), "|")


STUDY = Study.of(
    run,
    OUT,
    *TABLES,
    option("--labels", type=int, nargs="+", default=[6], help="labelled anomalies"),
    option("--splits", type=int, default=10),
    option("--variants", nargs="+", choices=VARIANTS, default=["average", "best"]),
) | Study.of(show, FILE)
