"""What ADGym publishes of 17 methods on each split, as rows of results.

The numbers are those of `AUCROC-SOTA-*.csv` and `AUCPR-SOTA-*.csv` in the folder `result` of
https://github.com/Minqi824/ADGym (M. Jiang et al. 2023), rounded to six digits. They are kept in
`adgym_published.csv` next to this file; a cell is empty where ADGym has no number.
"""

import csv
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Final

from fewlier.errors import UserError
from fewlier_bench.data.adgym import SEEDS
from fewlier_bench.runs.results import Result, latest

NAIVE_BAYES: Final = "naive Bayes"
_N_KEYS = 4  # columns before those of methods
TOLERANCE = 1e-5
"""How far naive Bayes may be from its published number. Rounding may swap two rows of equal
probability, which is less than this; another split differs by far more."""


@cache
def published_results() -> tuple[Result, ...]:
    """Return a row for every published method, table, number of labels and seed."""
    lines = list(csv.DictReader(_read().splitlines()))
    pairs = zip(lines[::2], lines[1::2], strict=True)  # AUC and average precision of a split
    return tuple(
        _row(auc, method, _number(auc[method]), _number(precision[method]))
        for auc, precision in pairs
        for method in list(auc)[_N_KEYS:]
    )


def published_methods() -> tuple[str, ...]:
    """Return the names of the published methods, in the order of their file."""
    return tuple(dict.fromkeys(row.method for row in published_results()))


def describe_check(rows: Sequence[Result]) -> str:
    """Say how near naive Bayes among rows of results comes to its published numbers.

    A difference above `TOLERANCE` is an error: the splits are not ADGym's, and nothing can be
    compared on them.
    """
    ours = {_split(row): row for row in latest(rows) if row.method == NAIVE_BAYES}
    theirs = {_split(row): row for row in published_results() if row.method == NAIVE_BAYES}
    worst = max((_difference(row, theirs[split]) for split, row in ours.items()), default=0.0)
    return (
        f"Naive Bayes reaches ADGym's numbers on {len(ours)} splits; the largest difference is "
        f"{worst:.6f}."
    )


def _difference(row: Result, published: Result) -> float:
    """Return the larger difference of the two measures, which must be small."""
    pairs = [(row.auc, published.auc), (row.average_precision, published.average_precision)]
    differences = [abs(a - b) for a, b in pairs if a is not None and b is not None]
    if len(differences) == len(pairs) and max(differences) <= TOLERANCE:
        return max(differences)
    raise UserError(
        f"Naive Bayes must reach ADGym's AUC {published.auc} and average precision "
        f"{published.average_precision} on {row.dataset} with {row.k} labels and seed {row.seed}; "
        f"got {row.reason or f'{row.auc} and {row.average_precision}'}. The split is another one: "
        "use the pinned versions of numpy and scikit-learn, and another folder of results."
    )


def _split(row: Result) -> tuple[str, int, int]:
    return row.dataset, row.k, row.split


def _read() -> str:
    return files("fewlier_bench.comparison").joinpath("adgym_published.csv").read_text("utf-8")


def _number(text: str) -> float | None:
    return float(text) if text else None


def _row(
    line: dict[str, str], method: str, auc: float | None, average_precision: float | None
) -> Result:
    seed = int(line["seed"])
    nothing = dict.fromkeys(("parameter", "value", "sha256", "versions", "machine", "date"), "")
    return Result(
        dataset=line["dataset"],
        method=method,
        k=int(line["labels"]),
        split=SEEDS.index(seed),
        seed=seed,
        validation_auc=None,
        auc=auc,
        average_precision=average_precision,
        seconds=None,
        **nothing,
    )
