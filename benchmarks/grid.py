"""What benchmarks on labelled tables share: tables from files, fits as one stack, rows in a CSV."""

import argparse
import csv
import time
from collections.abc import Callable, Iterator, Sequence
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

MAX_ROWS = 12_000
MIN_TEST_ANOMALIES = 3
TOO_FEW = f"fewer than {MIN_TEST_ANOMALIES} test anomalies"
MEASURES = ["auc", "average_precision", "seconds", "rows_per_second", "reason"]
SPEED_ROWS = 8192


@dataclass(frozen=True)
class Split:
    """Row numbers given to a detector, their labels, and row numbers to test on."""

    number: int
    given: np.ndarray
    labels: np.ndarray
    test: np.ndarray


def table_paths(folder: Path, names: Sequence[str]) -> list[Path]:
    """Return the tables of a folder, or those of the names."""
    return [p for p in sorted(folder.glob("*.npz")) if p.stem in names or not names]


def drawn(y: np.ndarray, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Shuffle a table's rows by the number of a split: normals to give, to test, and anomalies."""
    rng = np.random.default_rng(1000 + number)
    normals = rng.permutation(np.flatnonzero(y == 0))
    given, tested = np.split(normals, [round(0.9 * len(normals))])
    return given, tested, rng.permutation(np.flatnonzero(y == 1))


def load(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Read a table, cut at random to `MAX_ROWS`."""
    with np.load(path) as archive:
        X, y = archive["X"], archive["y"]
    rows = np.random.default_rng(0).permutation(len(X))[:MAX_ROWS] if len(X) > MAX_ROWS else ...
    return X[rows], y[rows]


def measure(
    table: Table, y: np.ndarray, parameters: dict[str, Any], splits: Sequence[Split]
) -> Iterator[dict[str, Any]]:
    """Fit all splits as one stack and yield a row for each."""
    parameters = AnomalyDetector(**parameters).get_params()
    recipe = read_recipe(parameters)
    schema = read_schema(parameters, table)
    matched = schema.match(table)
    plans = [
        make_plan(
            schema,
            matched.take(s.given),
            s.labels,
            recipe.selection,
            s.number,
            recipe.unlabelled,
        )
        for s in splits
    ]
    started = time.perf_counter()
    models = [model for group in _same_layout(plans) for model, _ in fit_models(group, recipe)]
    seconds = (time.perf_counter() - started) / len(plans)
    for split, model in zip(splits, models, strict=True):
        scores = model.score(model.encode(matched.take(split.test)))
        truth = y[split.test]
        yield {
            "split": split.number,
            "auc": f"{roc_auc_score(truth, scores):.6f}",
            "average_precision": f"{average_precision_score(truth, scores):.6f}",
            "seconds": f"{seconds:.2f}",
            "rows_per_second": f"{_scoring_speed(model, matched.take(split.test)):.0f}",
        }


def _scoring_speed(model: FittedModel, table: Table) -> float:
    """Return rows scored per second; rows are repeated, since chunks are padded to one size."""
    encoded = model.encode(table.take(np.resize(np.arange(table.n_rows), SPEED_ROWS)))
    started = time.perf_counter()
    model.score(encoded)
    return len(encoded) / (time.perf_counter() - started)


def _same_layout(plans: list[Plan]) -> list[list[Plan]]:
    """Keep plans together while their columns have the same levels and may miss the same cells."""
    groups: list[list[Plan]] = []
    for plan in plans:
        last = groups[-1][-1].encoder if groups else None
        if last is not None and np.array_equal(last.missable, plan.encoder.missable):
            groups[-1].append(plan)
        else:
            groups.append([plan])
    return groups


def command_line(
    description: str | None,
    run: Callable[[argparse.Namespace], None],
    show: Callable[[argparse.Namespace], None],
    **options: dict[str, Any],
) -> None:
    """Call `run` or `show` as the command line says; `run` has further options."""
    parser = argparse.ArgumentParser(description=(description or "").split("\n")[0])
    commands = parser.add_subparsers(required=True)
    runner = commands.add_parser("run", help="compute what is not in the file yet")
    runner.set_defaults(command=run)
    runner.add_argument("--data", type=Path, required=True)
    runner.add_argument("--out", type=Path, required=True)
    runner.add_argument("--tables", nargs="*", default=[])
    for name, option in options.items():
        runner.add_argument(f"--{name.replace('_', '-')}", **option)
    shower = commands.add_parser("show", help="print the file as Markdown")
    shower.set_defaults(command=show)
    shower.add_argument("out", type=Path)
    arguments = parser.parse_args()
    arguments.command(arguments)


def read(path: Path) -> list[dict[str, str]]:
    """Read the rows computed so far."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def append(path: Path, fields: Sequence[str], rows: Sequence[dict[str, Any]]) -> None:
    """Add rows; a new file, and one that lacks some of the fields, gets its header."""
    before = read(path)
    is_current = bool(before) and list(before[0]) == list(fields)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a" if is_current else "w", newline="") as file:
        writer = csv.DictWriter(file, fields)
        if not is_current:
            writer.writeheader()
            writer.writerows(before)
        writer.writerows(rows)
