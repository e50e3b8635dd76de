"""Rows of the study `discovery`, as the generated parts of docs/evidence/DISCOVERY.md."""

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np

from fewlier_bench.pages.blocks import EMPTY
from fewlier_bench.pages.rendering import fold

Line: TypeAlias = Mapping[str, str]

N_QUESTIONS, AT = 60, (20, 40, 60)
ANSWERS = "answers"
"""The method that measures what answers are worth."""
FIELDS = [
    *("table", "method", "seed", "rows", "anomalies"),
    *(f"{what}_{n}" for what in ("found", "kinds") for n in AT),
    *("seconds", "remaining", "auc_random", "auc_20", "auc_60", "reason"),
]


def read_lines(path: Path) -> list[Line]:
    """Read the rows; none without a file."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def discovery_blocks(lines: Sequence[Line]) -> dict[str, str]:
    """Return the generated parts of the page by name."""
    asked = [line for line in lines if line["method"] != ANSWERS]
    return {
        "found": _found(asked),
        "tables": _tables(asked),
        "remaining": _remaining(asked),
        "answers": _answers([line for line in lines if line["auc_60"]]),
    }


def _sum(lines: Sequence[Line], field: str) -> float:
    """Return the sum over the tables of the mean over the seeds."""
    return sum(_mean([line for line in lines if line["table"] == t], field) for t in _names(lines))


def _mean(lines: Sequence[Line], field: str) -> float:
    return float(np.mean([float(line[field]) for line in lines]))


def _names(lines: Sequence[Line], field: str = "table") -> list[str]:
    return list(dict.fromkeys(line[field] for line in lines))


def _grid(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heading, ["---", *["---:"] * (len(heading) - 1)], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _found(lines: Sequence[Line]) -> str:
    rows = []
    for method in _names(lines, "method"):
        own = [line for line in lines if line["method"] == method]
        sums = [_sum(own, f"found_{n}") for n in AT]
        kinds = [_sum(own, f"kinds_{n}") for n in (20, 60)]
        seconds = np.median([float(line["seconds"]) for line in own])
        numbers = [f"{number:.1f}" for number in (*sums, *kinds)]
        rows.append([method, *numbers, f"{seconds:.3f}"])
    heading = ["anomalies found after", *(f"{n} questions" for n in AT)]
    heading += ["kinds after 20", "kinds after 60", "seconds per answer"]
    n_tables, seeds = len(_names(lines)), ", ".join(_names(lines, "seed"))
    note = (
        f"\nSums over {n_tables} tables of the mean over seeds {seeds}; the seconds are medians.\n"
    )
    return _grid(heading, rows) + note


def _tables(lines: Sequence[Line]) -> str:
    methods, rows = _names(lines, "method"), []
    for table in _names(lines):
        own = [line for line in lines if line["table"] == table]
        size = f"{table} ({own[0]['rows']}, {own[0]['anomalies']})"
        found = [_mean([x for x in own if x["method"] == m], "found_60") for m in methods]
        rows.append([size, *(f"{number:.1f}" for number in found)])
    grid = _grid(["table (rows, anomalies)", *methods], rows)
    return fold("Anomalies found after 60 questions, table by table", grid)


def _remaining(lines: Sequence[Line]) -> str:
    told = [json.loads(line["remaining"]) for line in lines if line["remaining"]]
    rows = []
    for n in map(str, AT):
        known = np.array([t[n] for t in told if n in t], dtype=np.float64)
        if not len(known):
            continue
        estimate, low, high, truth = known.T
        inside = (low <= truth) & (truth <= high)
        error = np.abs(np.log((estimate + 1) / (truth + 1)))
        numbers = [f"{inside.mean():.0%}", f"{(truth < low).mean():.0%}"]
        numbers += [f"{(truth > high).mean():.0%}", f"{np.exp(np.median(error)):.1f}"]
        numbers += [f"{np.median(high - low):.0f}", f"{np.median(truth):.0f}"]
        rows.append([n, *numbers])
    heading = ["questions", "truth inside the interval", "truth below", "truth above"]
    heading += ["typical error, as a factor", "median width", "median truth"]
    return fold("How often the interval holds the truth, and how wide it is", _grid(heading, rows))


def _answers(lines: Sequence[Line]) -> str:
    rows = []
    for table in _names(lines):
        own = [line for line in lines if line["table"] == table]
        rows.append([table, *(f"{_mean(own, f'auc_{x}'):.3f}" for x in ("random", "20", "60"))])
    if not rows:
        return EMPTY
    means = np.array([[float(cell) for cell in row[1:]] for row in rows]).mean(0)
    rows.append(["*mean*", *(f"{mean:.3f}" for mean in means)])
    heading = ["AUC on rows kept apart", "six random labels", "20 answers", "60 answers"]
    return fold("AUC of a detector fitted to the answers, table by table", _grid(heading, rows))
