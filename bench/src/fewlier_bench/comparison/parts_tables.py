"""What the parts of the score are worth, as tables, from the rows of `fewlier-bench parts`."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeAlias, final

import numpy as np

from fewlier_bench.comparison.comparison_tables import HALVES, half_of
from fewlier_bench.data.few_labels import CLEAN, CONTAMINATED, UNSEEN
from fewlier_bench.pages.printed import PrintedColumn, PrintedTable, Value, known
from fewlier_bench.pages.statistics import Floats

Line: TypeAlias = Mapping[str, str]


class Pool(NamedTuple):
    """Splits of one kind: see `few_labels`."""

    experiment: str
    k: int
    heading: str


POOLS = (
    Pool(CLEAN, 0, "no labels"),
    Pool(CLEAN, 3, "6 labels"),
    Pool(CLEAN, 25, "50 labels"),
    Pool(UNSEEN, 3, "unseen, 6 labels"),
    Pool(CONTAMINATED, 0, "hidden, no labels"),
    Pool(CONTAMINATED, 3, "hidden, 6 labels"),
)
FIELDS = ["collection", "table", "experiment", "k", "split", "variant"]
FIELDS += ["auc", "average_precision", "reason"]
DEFAULT = "default"
WITHOUT = {
    "neighbours": False,
    "scale of normal scores": False,
    "scale of deviations": False,
    "column weights": True,
    "distance to anomalies": True,
    "novelty": True,
    "trees": True,
    "rules": True,
    "density": False,
}
"""What is left out, and whether it takes labels to be there."""
LABELS_SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
_MEASURES = {"auc": "AUC", "average_precision": "AP"}
_LABELS = "_labels"
_NOTHING = np.empty(0)


def share_name(share: float) -> str:
    """Name the variant in which what labels teach has a share."""
    return f"labels {share:.1f}"


def read_lines(path: Path) -> list[Line]:
    """Read the rows; none without a file."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def table_names(collections: Sequence[str]) -> list[str]:
    """Return the names of the tables that collections may have."""
    return [f"{c}{half}{what}" for c in collections for half in HALVES for what in ("", _LABELS)]


def part_tables(lines: Sequence[Line]) -> Iterator[PrintedTable]:
    """Yield two tables for each collection, and for each half of it."""
    for collection in dict.fromkeys(line["collection"] for line in lines):
        own = [line for line in lines if line["collection"] == collection]
        names = sorted({line["table"] for line in own})
        for half in HALVES:
            kept = half_of(names, half)
            means = Means.of_lines([line for line in own if line["table"] in kept])
            yield _costs(means, f"{collection}{half}", len(kept))
            yield _curve(means, f"{collection}{half}{_LABELS}")


@final
@dataclass(frozen=True, eq=False)
class Means:
    """Means over splits: those of a table in a pool, by variant and measure."""

    cells: Mapping[tuple[str, str, str, str], Sequence[Line]]

    @classmethod
    def of_lines(cls, lines: Sequence[Line]) -> "Means":
        """Gather what was measured; of a repeated line the last counts."""
        cells: dict[tuple[str, str, str, str], dict[str, Line]] = {}
        for line in lines:
            if line["variant"]:
                key = line["experiment"], line["k"], line["variant"], line["table"]
                cells.setdefault(key, {})[line["split"]] = line
        return cls({key: list(splits.values()) for key, splits in sorted(cells.items())})

    def of(self, pool: Pool, measure: str, variant: str) -> Floats:
        """Return the means of all tables that a pool has, in their order by name."""
        wanted = pool.experiment, str(pool.k), variant
        found = [splits for key, splits in self.cells.items() if key[:3] == wanted]
        return np.array([np.mean([float(line[measure]) for line in some]) for some in found])


def _costs(means: Means, name: str, n_tables: int) -> PrintedTable:
    """Return what leaving each part out costs, below what the score itself reaches."""
    columns, errors = [], []
    for measure, word in _MEASURES.items():
        for pool in POOLS:
            whole = means.of(pool, measure, DEFAULT)
            without = {part: means.of(pool, measure, part) for part in WITHOUT}
            lost = {part: whole - found for part, found in without.items() if len(found)}
            errors += [_standard_error(change) for change in lost.values()]
            numbers = [_mean(whole), *(_mean(lost.get(part, _NOTHING)) for part in WITHOUT)]
            columns.append(_column(f"{word}, {pool.heading}", numbers))
    counts = ", ".join(f"{len(means.of(pool, 'auc', DEFAULT))} ({pool.heading})" for pool in POOLS)
    notes = (
        "The first line is the mean of the whole score. Each other line is how much that mean "
        "falls without the part; a negative number means that it rises.",
        f"Of {n_tables} tables, these many have enough anomalies: {counts}.",
        f"Standard errors over tables are at most {np.nanmax([0.0, *errors]):.4f}.",
    )
    title = "What leaving a part out costs, in mean test AUC and average precision (AP)"
    return PrintedTable(name, title, "", ("the score", *WITHOUT), tuple(columns), notes)


def _curve(means: Means, name: str) -> PrintedTable:
    """Return what the score reaches by the share that trees and rules have in it."""
    cells = {
        f"{word}, {pool.heading}": (pool, measure)
        for measure, word in _MEASURES.items()
        for pool in POOLS
        if pool.k
    }
    variants = {f"{share:.0%}": share_name(share) for share in LABELS_SHARES} | {DEFAULT: DEFAULT}
    columns = [
        _column(heading, [_mean(means.of(*cell, variant)) for cell in cells.values()])
        for heading, variant in variants.items()
    ]
    title = "Mean test AUC and average precision (AP) by the share of trees and rules in the score"
    return PrintedTable(name, title, "", tuple(cells), tuple(columns))


def _mean(numbers: Floats) -> float:
    return float(numbers.mean()) if len(numbers) else np.nan


def _standard_error(numbers: Floats) -> float:
    return float(numbers.std(ddof=1) / np.sqrt(len(numbers))) if len(numbers) > 1 else np.nan


def _column(heading: str, numbers: Sequence[float]) -> PrintedColumn:
    values = tuple(Value(known(number)) for number in numbers)
    return PrintedColumn(heading, values, 4, has_difference=False)
