"""What studies on labelled tables share: tables from files, fits as one stack, rows in a CSV."""

import csv
import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from fcntl import LOCK_EX, flock
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score

from fewlier.table import Table
from fewlier_bench.data.few_labels import MAX_ROWS, FewLabelSplit, cut
from fewlier_bench.runs.stacks import SplitStack, given_rows

MEASURES = ["auc", "average_precision", "seconds", "rows_per_second", "reason"]
SPEED_ROWS = 8192


def table_paths(folder: Path, names: Sequence[str]) -> list[Path]:
    """Return the named tables of a folder, or all."""
    return [p for p in sorted(folder.glob("*.npz")) if p.stem in names or not names]


def load(path: Path, most: int = MAX_ROWS) -> tuple[np.ndarray, np.ndarray]:
    """Read a table, cut at random to so many rows."""
    with np.load(path) as archive:
        return cut(archive["X"], archive["y"], most)


def new_tables(arguments: Namespace) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield name, X and y of the tables in `data` that the file `out` lacks; say which are done."""
    done = {row["table"] for row in read(arguments.out)}
    for path in table_paths(arguments.data, arguments.tables):
        if path.stem not in done:
            yield path.stem, *load(path)
            print(path.stem, flush=True)


def measure_or_tell(
    table: Table, y: np.ndarray, parameters: dict[str, Any], drawn: dict[int, FewLabelSplit | str]
) -> Iterator[dict[str, Any]]:
    """Yield a row for each split that could be drawn, and for others why it could not."""
    splits = [split for split in drawn.values() if isinstance(split, FewLabelSplit)]
    yield from ({"split": s, "reason": why} for s, why in drawn.items() if isinstance(why, str))
    if splits:
        yield from measure(table, y, parameters, splits)


def measure(
    table: Table, y: np.ndarray, parameters: dict[str, Any], splits: Sequence[FewLabelSplit]
) -> Iterator[dict[str, Any]]:
    """Fit all splits as one stack and yield a row for each."""
    started = time.perf_counter()
    stack = SplitStack.of_table(table, parameters)
    fits = stack.fit([given_rows(split) for split in splits])
    seconds = (time.perf_counter() - started) / len(splits)
    for split, (model, _) in zip(splits, fits, strict=True):
        scores = stack.score(model, split.test)
        repeated = np.resize(split.test, SPEED_ROWS)  # chunks are padded to one size
        started = time.perf_counter()
        stack.score(model, repeated)
        rate = SPEED_ROWS / (time.perf_counter() - started)
        truth = y[split.test]
        yield {
            "split": split.number,
            "auc": f"{roc_auc_score(truth, scores):.6f}",
            "average_precision": f"{average_precision_score(truth, scores):.6f}",
            "seconds": f"{seconds:.2f}",
            "rows_per_second": f"{rate:.0f}",
        }


def read(path: Path) -> list[dict[str, str]]:
    """Read the rows computed so far."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def append(path: Path, fields: Sequence[str], rows: Sequence[dict[str, Any]]) -> None:
    """Add rows; a new file, and one that lacks some of the fields, gets its header.

    Several processes may do so at the same time.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", newline="") as file:
        flock(file, LOCK_EX)  # until it is closed
        before = read(path)
        is_current = bool(before) and list(before[0]) == list(fields)
        writer = csv.DictWriter(file, fields)
        if not is_current:
            file.truncate(0)
            writer.writeheader()
            writer.writerows(before)
        writer.writerows(rows)
