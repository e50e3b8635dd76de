"""ADGym's benchmark as jobs: a fit of fewlier for each split, and naive Bayes to check them."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt
from sklearn.naive_bayes import GaussianNB

from fewlier import AnomalyDetector
from fewlier.errors import UserError
from fewlier.table.labels import ANOMALY
from fewlier_bench.comparison.adgym_published import NAIVE_BAYES
from fewlier_bench.comparison.peer_jobs import OURS
from fewlier_bench.data.adgym import ADGYM, LABELS, MAX_ROWS, SEEDS, AdgymTable, find_folder
from fewlier_bench.data.few_labels import Floats
from fewlier_bench.runs.jobs import Job, Measurement, describe_machine
from fewlier_bench.runs.measuring import add_accuracy
from fewlier_bench.runs.results import Cell

EXPERIMENT: Final = "adgym"
COLLECTION: Final = "adgym"  # folder of its results
DETECTORS: dict[str, dict[str, Any]] = {OURS: {}, "fewlier normal": {"unlabelled": "normal"}}
METHODS = (*DETECTORS, NAIVE_BAYES)


@final
@dataclass(frozen=True)
class AdgymScope:
    """The part of the benchmark to run, and the folder of its tables; `make_scope` checks it."""

    folder: Path
    tables: tuple[AdgymTable, ...]
    methods: tuple[str, ...]
    anomalies: tuple[int, ...]
    n_splits: int

    def cells(self, table: AdgymTable, method: str) -> dict[Cell, int]:
        """Return the cells of a method on a table, each with ADGym's seed."""
        return {
            Cell(EXPERIMENT, table.name, method, k, split): SEEDS[split]
            for k in self.anomalies
            for split in range(self.n_splits)
        }


def make_scope(
    *,
    tables: Sequence[str] = (),
    methods: Sequence[str] = (),
    anomalies: Sequence[int] = (),
    n_splits: int | None = None,
) -> AdgymScope:
    """Choose tables, methods, numbers of labels and splits; the default is fewlier on all."""
    for what, given, known in (
        ("A table", tables, tuple(ADGYM)),
        ("A method", methods, METHODS),
        ("The number of labelled anomalies", anomalies, LABELS),
        ("The number of splits", [n_splits or 1], range(1, len(SEEDS) + 1)),
    ):
        for value in given:
            if value not in known:
                raise UserError(f"{what} must be one of {', '.join(map(str, known))}; got {value}.")
    chosen = tuple(ADGYM[name] for name in tables or ADGYM)
    return AdgymScope(
        find_folder(chosen),
        chosen,
        tuple(methods) or (OURS,),
        tuple(anomalies) or LABELS,
        n_splits or len(SEEDS),
    )


def make_check_jobs(scope: AdgymScope) -> list[Job]:
    """Return the jobs of naive Bayes, one for each table; they run whatever the methods are."""
    return [_job(scope, table, scope.cells(table, NAIVE_BAYES)) for table in scope.tables]


def make_detector_jobs(scope: AdgymScope) -> list[Job]:
    """Return the jobs of fewlier, one for each split, so that many processes can share them."""
    return [
        _job(scope, table, {cell: seed})
        for table in scope.tables
        for method in scope.methods
        if method in DETECTORS
        for cell, seed in scope.cells(table, method).items()
    ]


def _job(scope: AdgymScope, table: AdgymTable, seeds: dict[Cell, int]) -> Job:
    cost = min(table.n_rows, MAX_ROWS) * table.n_columns
    return Job(seeds, table.sha256, partial(measure, table, scope.folder), cost)


def measure(
    table: AdgymTable, folder: Path, cells: Sequence[Cell]
) -> list[tuple[Cell, Measurement]]:
    """Fit the method of each cell on its split, and test it there."""
    X, y = table.load(folder)
    found = []
    for cell in cells:
        split = table.draw(y, cell.k, SEEDS[cell.split])
        started = time.perf_counter()
        score = _fit(cell.method, X[split.given], split.labels == ANOMALY, split.number)
        seconds = time.perf_counter() - started
        facts = Measurement(seconds=seconds, machine=describe_machine())
        found.append((cell, add_accuracy(facts, y[split.test], score(X[split.test]))))
    return found


def _fit(
    method: str, X: Floats, is_labelled: npt.NDArray[np.bool_], seed: int
) -> Callable[[Floats], Floats]:
    """Fit a method, and return the function that scores rows."""
    if method == NAIVE_BAYES:
        model = GaussianNB().fit(X, is_labelled)
        return lambda rows: model.predict_proba(rows)[:, 1]
    detector = AnomalyDetector(**DETECTORS[method], device="cpu", random_state=seed)
    return detector.fit(X, np.where(is_labelled, 1.0, np.nan)).anomaly_score
