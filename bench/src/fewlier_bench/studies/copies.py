"""False alarms on fresh normal rows when rows of the training table repeat.

    fewlier-bench copies run --out results/copies.csv
    fewlier-bench copies show results/copies.csv

Every row of a made-up table stands there k times, and fresh rows are drawn as its rows were: of
`numbers`, `mixed` and `counts` hardly any fresh row is like one of the table; of `few`, whose
columns have few values, most are. Tables have no labels, or six labelled anomalies, each k times
too. Detectors are small and briefly trained: what is promised does not depend on how well they
rank. A line of the file is one fit: the share of 1,000 fresh normals with a p-value of at most 5 %,
or of the smallest that there is, and what the model promises for it.
"""

import argparse
import warnings
from collections.abc import Callable, Sequence
from itertools import groupby, product
from typing import Any, Literal

import numpy as np
import pandas as pd

from fewlier import AnomalyDetector, Made
from fewlier_bench.studies.grid import append, make_parser, read, run_or_show

CELL = ["table", "copies", "rows", "labels", "selection"]
FIELDS = [*CELL, "seed", "distinct", "held_back", "promised", "found", "guarantee"]
RATE, N_FRESH, N_LABELS = 0.05, 1000, 6
SETTINGS: dict[str, Any] = {
    "density": Made(hidden=(8,), n_orderings=1),
    "lambdas": (0, 10),
    "max_epochs": 2,
    "learning_rate": 0.005,
    "keep_rows": False,
}
Make = Callable[[int, np.random.Generator], pd.DataFrame]


def numbers(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return four numbers that follow one another."""
    return pd.DataFrame(rng.normal(size=(n, 4)).cumsum(1)).add_prefix("x")


def mixed(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return an amount, a count that follows it, a category, and a number with gaps."""
    amount = rng.lognormal(0, 1, n).round(2)
    city = rng.choice(["Bern", "Oslo", "Rome"], n, p=[0.6, 0.3, 0.1])
    size = pd.Series(rng.normal(size=n).round(2)).mask(rng.random(n) < 0.1)
    visits = rng.poisson(3 * amount).astype(float)
    return pd.DataFrame({"amount": amount, "visits": visits, "city": city, "size": size})


def counts(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return six counts of one cause."""
    rate = rng.gamma(3, 1, size=(n, 1)) * np.array([0.5, 1, 2, 3, 4, 5])
    return pd.DataFrame(rng.poisson(rate).astype(float)).add_prefix("k")


def few(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return three small counts of one cause, and a category: most rows repeat others."""
    rate = rng.gamma(3, 0.3, size=(n, 1)) * np.array([0.5, 1, 1.5])
    table = pd.DataFrame(rng.poisson(rate).astype(float)).add_prefix("k")
    return table.assign(kind=rng.choice(list("abc"), n, p=[0.7, 0.25, 0.05]))


TABLES: dict[str, Make] = {make.__name__: make for make in (numbers, mixed, counts, few)}


def measured(
    make: Make, k: int, n: int, n_labels: int, selection: Literal["average", "best"], seed: int
) -> dict[str, Any]:
    """Fit a table of n rows, each one of n / k drawn, and score fresh normals."""
    rng = np.random.default_rng([seed, n, k])
    table = make(n // k, rng)
    odd = table.select_dtypes("number").columns
    table.loc[: n_labels - 1, odd] = 4 * table.loc[: n_labels - 1, odd] + 8
    y = np.repeat([1, 0], [n_labels, len(table) - n_labels])
    order = rng.permutation(np.tile(np.arange(len(table)), k))
    detector = AnomalyDetector(**SETTINGS, selection=selection, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # 1 % is not attainable with few rows
        detector.fit(table.iloc[order], y[order])
    calibration = detector.model_.calibration
    m = len(calibration.normal_scores)
    rank = max(1, int(RATE * (m + 1) + 1e-9))
    found = (detector.p_value(make(N_FRESH, rng)) <= (rank + 0.5) / (m + 1)).mean()
    return {
        "distinct": len(table.drop_duplicates()),
        "held_back": m,
        "promised": f"{rank / (m + 1):.4f}",
        "found": f"{found:.4f}",
        "guarantee": calibration.guarantee.split(":")[0],
    }


def run(arguments: argparse.Namespace) -> None:
    """Compute the lines that are not in the file yet."""
    done = {tuple(row[name] for name in FIELDS[:6]) for row in read(arguments.out)}
    options = arguments.tables or list(TABLES), arguments.copies, arguments.rows
    for seed, table, copies, n, labels, selection in product(
        range(arguments.seeds), *options, arguments.labels, arguments.selections
    ):
        key = tuple(map(str, (table, copies, n, labels, selection, seed)))
        if key not in done:
            found = measured(TABLES[table], copies, n, labels, selection, seed)
            append(arguments.out, FIELDS, [dict(zip(FIELDS, key, strict=False)) | found])


def show(arguments: argparse.Namespace) -> None:
    """Print, for each cell, what was promised and what was found on average, as Markdown."""
    rows = sorted(read(arguments.out), key=_cell)
    print("| table | rows | copies | labels | selection | fits | held back | promised | found |")
    print("|---|---|---|---|---|---|---|---|---|")
    for (table, copies, n, labels, selection), group in groupby(rows, _cell):
        lines = list(group)
        mean = {name: np.mean([float(line[name]) for line in lines]) for name in FIELDS[7:10]}
        error = np.std([float(line["found"]) for line in lines]) / np.sqrt(len(lines))
        print(
            f"| {table} | {n} | {copies} | {labels} | {selection} | {len(lines)} "
            f"| {mean['held_back']:.0f} | {mean['promised']:.1%} "
            f"| {mean['found']:.1%} ± {error:.1%} |"
        )


def _cell(row: dict[str, str]) -> tuple[str, int, int, int, str]:
    table, copies, n, labels, selection = (row[name] for name in CELL)
    return table, int(copies), int(n), int(labels), selection


def main(words: Sequence[str]) -> None:
    """Run the command."""
    run_or_show(
        make_parser(__name__, __doc__),
        words,
        run,
        show,
        needs_data=False,
        copies={"type": int, "nargs": "+", "default": [1, 2, 3, 10]},
        rows={"type": int, "nargs": "+", "default": [200, 1000, 4500]},
        labels={"type": int, "nargs": "+", "default": [0, N_LABELS]},
        selections={"nargs": "+", "default": ["average", "best"]},
        seeds={"type": int, "default": 10},
    )
