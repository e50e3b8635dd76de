"""Rows of results, and the folder of CSV files that they are appended to."""

import csv
import io
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from fcntl import LOCK_EX, flock
from pathlib import Path
from typing import NamedTuple, final

from fewlier.errors import FormatError
from fewlier.process.signals import uninterrupted

LEFT_OUT = (
    "left out: "  # starts the reason of a cell that was skipped on purpose, which is not a failure
)


class Cell(NamedTuple):
    """What one row of results is about; a folder of results has one row per cell.

    `experiment` names the file that the row is in, `k` the training anomalies, `split` a number
    from 0.
    """

    experiment: str
    dataset: str
    method: str
    k: int
    split: int


@final
@dataclass(frozen=True)
class Result:
    """One row: a cell, and what was measured there, or `reason`, why nothing was.

    `parameter` and `value` are the chosen hyper-parameter, `seed` what random numbers came from,
    `sha256` identifies the values and labels of the table, and `machine` what computed it.
    """

    dataset: str
    method: str
    k: int
    split: int
    seed: int
    parameter: str
    value: str
    validation_auc: float | None
    auc: float | None
    average_precision: float | None
    seconds: float | None
    sha256: str
    versions: str
    machine: str
    date: str
    reason: str = ""

    @property
    def has_failed(self) -> bool:
        """Whether it should have been measured and was not."""
        return bool(self.reason) and not self.reason.startswith(LEFT_OUT)


COLUMNS = tuple(field.name for field in fields(Result))
_INTEGERS = ("k", "split", "seed")
_NUMBERS = ("validation_auc", "auc", "average_precision", "seconds")


@final
@dataclass(frozen=True)
class Store:
    """A folder with one CSV file for each experiment, to which rows are only ever added."""

    folder: Path

    def path(self, experiment: str) -> Path:
        """Return the file of an experiment."""
        return self.folder / f"{experiment}.csv"

    def read(self, experiment: str) -> list[Result]:
        """Return the rows of an experiment in the order they were added; none without a file."""
        path = self.path(experiment)
        if not path.exists():
            return []
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            if tuple(reader.fieldnames or ()) != COLUMNS:
                raise FormatError(
                    f"{path} must have the columns {', '.join(COLUMNS)}; got "
                    f"{', '.join(reader.fieldnames or ['none'])}. Name another folder."
                )
            return [_read(path, row) for row in reader]

    def append(self, experiment: str, results: Iterable[Result]) -> None:
        """Add rows at the end of an experiment's file, which gets a header if it is new.

        Several processes may do so at the same time.
        """
        path = self.path(experiment)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = io.StringIO()
        writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
        with uninterrupted(), path.open("ab", buffering=0) as file:
            flock(file, LOCK_EX)  # until it is closed
            if not file.seek(0, io.SEEK_END):
                writer.writeheader()
            writer.writerows(_write(result) for result in results)
            file.write(text.getvalue().encode())  # at once: no row is cut in two


def cell_of(experiment: str, result: Result) -> Cell:
    """Return the cell that a row is about."""
    return Cell(experiment, result.dataset, result.method, result.k, result.split)


def latest(results: Iterable[Result]) -> list[Result]:
    """Return the last row of every cell: a failure that was tried again has two."""
    return list({cell_of("", result): result for result in results}.values())


def _write(result: Result) -> dict[str, str]:
    record = asdict(result)
    digits = dict.fromkeys(_NUMBERS, ".6f") | {"seconds": ".3f"}
    texts = {
        name: "" if record[name] is None else format(record[name], digits[name])
        for name in _NUMBERS
    }
    return {name: str(value) for name, value in record.items()} | texts


def _read(path: Path, row: dict[str, str]) -> Result:
    try:
        integers = {name: int(row[name]) for name in _INTEGERS}
        numbers = {name: float(row[name]) if row[name] else None for name in _NUMBERS}
        if None in row or None in row.values():  # more or fewer cells than columns
            raise ValueError
    except (TypeError, ValueError):
        raise FormatError(
            f"{path} has a line that is not a result: {str(row)[:200]}. A run that was stopped may "
            "have left half a line; remove it."
        ) from None
    return Result(**{**row, **integers, **numbers})  # type: ignore[arg-type]
