"""Accuracy on labelled tables: how densities, selections, kinds, gaps and label counts compare.

    python -m benchmarks.dev_tables run --data DIR --out results/dev.csv --labels 3 --splits 10 \
        --variants average best
    python -m benchmarks.dev_tables show results/dev.csv

DIR holds `.npz` files with X (n, d) and y (n,), 1 for an anomaly. For each table and split, 90 % of
the normals and as many anomalies as `--labels` says, which may be 0, are given to the detector; the
AUC is measured on the rest. `seconds` is the training time of a split and `rows_per_second` the
speed of scoring. Tables are
cut to 12,000 rows; a cell with fewer than three test anomalies is left out, with the reason. Rows
are appended to the file, and those that are there already are not computed again. All splits of a
table train as one stack.
"""

import argparse
import csv
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score

from fewlier import AnomalyDetector
from fewlier.fitting import fit_models
from fewlier.model import FittedModel
from fewlier.parameters import read_recipe, read_schema
from fewlier.planning import Plan, make_plan
from fewlier.table import Table

FIELDS = [
    *("table", "variant", "labels", "split", "auc", "average_precision", "seconds"),
    *("rows_per_second", "reason"),
]
MAX_ROWS = 12_000
MIN_TEST_ANOMALIES = 3
SPEED_ROWS = 8192


@dataclass(frozen=True)
class Variant:
    """A setting to compare: parameters of the detector, and what is done to the table first."""

    parameters: dict[str, Any]
    missing: float = 0.0
    integers_as_text: bool = False


VARIANTS = {
    "average": Variant({}),
    "average, no patience": Variant({"patience": None}),
    "average, all real": Variant({"columns": "real"}),
    "best": Variant({"selection": "best", "patience": None}),
    "paper": Variant({"selection": "best", "patience": None, "columns": "real"}),
    "missing 10 %": Variant({}, missing=0.1),
    "missing 30 %": Variant({}, missing=0.3),
    "integers as text": Variant({}, integers_as_text=True),
    "vae": Variant({"density": "vae"}),
    "flow": Variant({"density": "flow"}),
    "flow, splines": Variant({"density": "flow", "flow": "nsf"}),
    "autoencoder": Variant({"density": "autoencoder"}),
    "paper's vae": Variant(
        {
            "density": "vae",
            "columns": "real",
            "n_components": 1,
            "lambdas": (0,),
            "selection": "best",
            "patience": None,
        }
    ),
}


def load(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Read a table, cut at random to `MAX_ROWS`."""
    with np.load(path) as archive:
        X, y = archive["X"], archive["y"]
    rows = np.random.default_rng(0).permutation(len(X))[:MAX_ROWS] if len(X) > MAX_ROWS else ...
    return X[rows], y[rows]


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


def split(y: np.ndarray, n_labels: int, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows given to the detector and the rows to test on; nested in the labels."""
    rng = np.random.default_rng(1000 + number)
    normals = rng.permutation(np.flatnonzero(y == 0))
    anomalies = rng.permutation(np.flatnonzero(y == 1))
    given = round(0.9 * len(normals))
    return (
        np.concatenate([normals[:given], anomalies[:n_labels]]),
        np.concatenate([normals[given:], anomalies[n_labels:]]),
    )


def evaluate(
    table: Table, y: np.ndarray, variant: Variant, n_labels: int, splits: list[int]
) -> Iterator[dict[str, Any]]:
    """Fit all splits as one stack and yield a row for each."""
    parameters = AnomalyDetector(**variant.parameters).get_params()
    recipe = read_recipe(parameters)
    schema = read_schema(parameters, table)
    matched = schema.match(table)
    plans: list[Plan] = []
    for number in splits:
        given, _ = split(y, n_labels, number)
        plans.append(make_plan(schema, matched.take(given), y[given], recipe.selection, number))
    started = time.perf_counter()
    models = [model for group in same_layout(plans) for model, _ in fit_models(group, recipe)]
    seconds = (time.perf_counter() - started) / len(plans)
    for number, model in zip(splits, models, strict=True):
        _, test = split(y, n_labels, number)
        scores = model.score(model.encode(matched.take(test)))
        yield {
            "split": number,
            "auc": f"{roc_auc_score(y[test], scores):.6f}",
            "average_precision": f"{average_precision_score(y[test], scores):.6f}",
            "seconds": f"{seconds:.2f}",
            "rows_per_second": f"{scoring_speed(model, matched.take(test)):.0f}",
        }


def scoring_speed(model: FittedModel, table: Table) -> float:
    """Return rows scored per second; rows are repeated, since chunks are padded to one size."""
    encoded = model.encode(table.take(np.resize(np.arange(table.n_rows), SPEED_ROWS)))
    started = time.perf_counter()
    model.score(encoded)
    return len(encoded) / (time.perf_counter() - started)


def same_layout(plans: list[Plan]) -> list[list[Plan]]:
    """Keep plans together while their columns have the same levels and may miss the same cells."""
    groups: list[list[Plan]] = []
    for plan in plans:
        last = groups[-1][-1].encoder if groups else None
        if last is not None and np.array_equal(last.missable, plan.encoder.missable):
            groups[-1].append(plan)
        else:
            groups.append([plan])
    return groups


def run(arguments: argparse.Namespace) -> None:
    """Compute the rows that are not in the file yet."""
    done = {(r["table"], r["variant"], r["labels"], r["split"]) for r in read(arguments.out)}
    paths = [
        p
        for p in sorted(arguments.data.glob("*.npz"))
        if p.stem in arguments.tables or not arguments.tables
    ]
    for path in paths:
        X, y = load(path)
        for name in arguments.variants:
            table = altered(X, VARIANTS[name])
            for n_labels in arguments.labels:
                key = (path.stem, name, str(n_labels))
                splits = [s for s in range(arguments.splits) if (*key, str(s)) not in done]
                if not splits:
                    continue
                common = dict(zip(FIELDS, key, strict=False))
                if (y == 1).sum() - n_labels < MIN_TEST_ANOMALIES:
                    reason = f"fewer than {MIN_TEST_ANOMALIES} test anomalies"
                    append(
                        arguments.out, [{**common, "split": s, "reason": reason} for s in splits]
                    )
                    continue
                rows = evaluate(table, y, VARIANTS[name], n_labels, splits)
                append(arguments.out, [{**common, **row} for row in rows])
                print(*key, flush=True)


def read(path: Path) -> list[dict[str, str]]:
    """Read the rows computed so far."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def append(path: Path, rows: list[dict[str, Any]]) -> None:
    """Add rows; a new file, and one that lacks some of the fields, gets its header."""
    before = read(path)
    is_current = bool(before) and list(before[0]) == FIELDS
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a" if is_current else "w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if not is_current:
            writer.writeheader()
            writer.writerows(before)
        writer.writerows(rows)


def show(arguments: argparse.Namespace) -> None:
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


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(required=True)
    runner = commands.add_parser("run")
    runner.set_defaults(command=run)
    runner.add_argument("--data", type=Path, required=True)
    runner.add_argument("--out", type=Path, required=True)
    runner.add_argument("--labels", type=int, nargs="+", default=[6], help="labelled anomalies")
    runner.add_argument("--splits", type=int, default=10)
    runner.add_argument("--variants", nargs="+", choices=VARIANTS, default=["average", "best"])
    runner.add_argument("--tables", nargs="*", default=[])
    shower = commands.add_parser("show")
    shower.set_defaults(command=show)
    shower.add_argument("out", type=Path)
    arguments = parser.parse_args()
    arguments.command(arguments)


if __name__ == "__main__":
    main()
