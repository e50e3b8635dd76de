"""The few-label comparison as jobs: fewlier's detectors as stacks, its peers one cell at a time."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, final

import numpy as np

from fewlier.errors import UserError
from fewlier.table import Table
from fewlier.table.labels import ANOMALY
from fewlier_bench.comparison.collection import LabelledTable
from fewlier_bench.data.few_labels import (
    N_DRAWS,
    FewLabelSplit,
    Floats,
    Labels,
    draw_of,
    make_few_label_split,
    n_splits,
)
from fewlier_bench.methods.peers import PEERS, require, score_with
from fewlier_bench.runs.jobs import Job, Measurement, describe_machine
from fewlier_bench.runs.measuring import add_accuracy
from fewlier_bench.runs.results import LEFT_OUT, Cell
from fewlier_bench.runs.stacks import SplitStack, given_rows

OURS: Final = "fewlier"
DETECTORS: dict[str, dict[str, Any]] = {OURS: {}, "fewlier best": {"selection": "best"}}
METHODS = (*DETECTORS, *PEERS)


@final
@dataclass(frozen=True)
class PeerScope:
    """The part of an experiment to run, and where detectors train; `make_scope` checks it."""

    experiment: str
    methods: tuple[str, ...]
    anomalies: tuple[int, ...]
    most_draws: int
    device: str

    def cells(self, table: LabelledTable, method: str, k: int) -> list[Cell]:
        """Return the cells of a method on a table; some methods need labels."""
        if k == 0 and method in PEERS and PEERS[method].needs_labels:
            return []
        n_draws = min(self.most_draws, N_DRAWS[self.experiment][k])
        splits = range(n_splits(self.experiment, n_draws))
        return [Cell(self.experiment, table.name, method, k, split) for split in splits]


def make_scope(
    experiment: str,
    *,
    methods: Sequence[str] = (),
    anomalies: Sequence[int] = (),
    most_draws: int | None = None,
    device: str = "auto",
) -> PeerScope:
    """Choose methods, numbers of anomalies and draws of an experiment; the default is all."""
    draws = N_DRAWS[experiment]
    for what, given, known in (
        ("A method", methods, METHODS),
        ("k, half of the labelled anomalies,", anomalies, tuple(draws)),
        ("The number of splits", [most_draws or 1], range(1, max(draws.values()) + 1)),
    ):
        for value in given:
            if value not in known:
                raise UserError(
                    f"{what} must be one of {', '.join(map(str, known))} in the experiment "
                    f"'{experiment}'; got {value}."
                )
    chosen = tuple(methods) or METHODS
    require(chosen)
    return PeerScope(
        experiment,
        chosen,
        tuple(anomalies) or tuple(draws),
        most_draws or max(draws.values()),
        device,
    )


def make_jobs(scope: PeerScope, tables: Sequence[LabelledTable]) -> list[Job]:
    """Return the jobs that fill the cells."""
    jobs = (
        job
        for table in tables
        for method in scope.methods
        for k in scope.anomalies
        for job in _jobs(scope, table, scope.cells(table, method, k))
    )
    return list(jobs)


def _jobs(scope: PeerScope, table: LabelledTable, cells: Sequence[Cell]) -> Iterator[Job]:
    """Yield the jobs of one method and k: a detector's splits train as one stack."""
    if not cells:
        return
    method, seeds = cells[0].method, {cell: draw_of(cell.experiment, cell.split) for cell in cells}
    size = table.n_rows * table.n_columns
    if method in DETECTORS:
        compute = partial(measure_detector, table, scope.device)
        yield Job(seeds, table.sha256, compute, cost=100.0 * size * len(cells))
        return
    packages = PEERS[method].packages
    for cell, seed in seeds.items():
        yield Job({cell: seed}, table.sha256, partial(measure_peer, table), size, packages)


def measure_detector(
    table: LabelledTable, device: str, cells: Sequence[Cell]
) -> list[tuple[Cell, Measurement]]:
    """Fit a detector of fewlier on every split of the cells, which have one k, as one stack.

    `seconds` are those of a split: its part of the fit, and its scores.
    """
    X, y = table.load()
    splits, found = _splits(X, y, cells)
    if not splits:
        return found
    started = time.perf_counter()
    parameters = DETECTORS[cells[0].method] | {"device": device}
    stack = SplitStack.of_table(Table.of(X), parameters)
    fits = stack.fit([given_rows(split) for split in splits.values()])
    seconds = (time.perf_counter() - started) / len(splits)
    machine = describe_machine(stack.gpu)
    for (cell, split), (model, _) in zip(splits.items(), fits, strict=True):
        started = time.perf_counter()
        scores = stack.score(model, split.test)
        facts = Measurement(seconds=seconds + time.perf_counter() - started, machine=machine)
        found.append((cell, add_accuracy(facts, y[split.test], scores)))
    stack.free_memory()
    return found


def measure_peer(table: LabelledTable, cells: Sequence[Cell]) -> list[tuple[Cell, Measurement]]:
    """Fit a peer on the split of each cell; rows without a label count as normal."""
    X, y = table.load()
    splits, found = _splits(X, y, cells)
    for cell, split in splits.items():
        given = X[split.given], (split.labels == ANOMALY).astype(np.int8)
        started = time.perf_counter()
        scores = score_with(PEERS[cell.method], given, X[split.test], split.number)
        seconds = time.perf_counter() - started
        facts = Measurement(seconds=seconds, machine=describe_machine())
        found.append((cell, add_accuracy(facts, y[split.test], scores)))
    return found


def _splits(
    X: Floats, y: Labels, cells: Sequence[Cell]
) -> tuple[dict[Cell, FewLabelSplit], list[tuple[Cell, Measurement]]]:
    """Draw the split of each cell, or say why it has none."""
    splits: dict[Cell, FewLabelSplit] = {}
    left_out = []
    for cell in cells:
        split = make_few_label_split(cell.experiment, X, y, cell.k, cell.split)
        if isinstance(split, str):
            left_out.append((cell, Measurement(reason=f"{LEFT_OUT}{split}")))
        else:
            splits[cell] = split
    return splits, left_out
