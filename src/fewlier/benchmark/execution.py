"""Runs jobs on several processes and appends their rows; no failure goes without a row.

Nothing here imports numpy or torch: a worker sets its number of threads before they start.
"""

import logging
import os
import platform
import signal
import threading
import traceback
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from datetime import UTC, datetime
from importlib.metadata import version
from multiprocessing import active_children, get_context, parent_process
from typing import TypeAlias

from fewlier import __version__
from fewlier.benchmark.jobs import Job, Measurement, describe_machine, n_cores
from fewlier.benchmark.results import Cell, Result, Store, cell_of, latest
from fewlier.errors import UserError

Measured: TypeAlias = list[tuple[Cell, Measurement]]

KILLED = "the process that computed it was killed, as one is that takes too much memory"

_log = logging.getLogger(__name__)


def no_news(share: float) -> None:
    """Ignore the progress."""


def execute(
    jobs: Sequence[Job],
    store: Store,
    *,
    workers: int,
    retry: bool = False,
    on_progress: Callable[[float], None] = no_news,
) -> None:
    """Compute the cells that the store has no row for, and append a row for each.

    Rows are added after every job, by this process alone, so that a run that is stopped goes on
    where it was. A job that fails gives rows with the reason.

    Parameters
    ----------
    jobs : sequence of Job
        What to compute; a job that is partly done computes the rest.
    store : Store
        Where rows are found and added.
    workers : int
        Processes that compute; with 1 it is this process.
    retry : bool
        Whether to compute cells again whose last row is a failure.
    on_progress : callable
        Told after every job which share of the cells has a row.
    """
    done = _done(jobs, store, retry)
    todo = [job.without(done) for job in jobs]
    todo = sorted((job for job in todo if job.seeds), key=lambda job: -job.cost)
    total = sum(len(job.seeds) for job in jobs)
    left = sum(len(job.seeds) for job in todo)
    computed = _in_this_process(todo) if workers == 1 else _in_processes(todo, workers)
    with closing(computed):
        for job, measured in computed:
            _append(store, job, measured)
            left -= len(job.seeds)
            on_progress(1 - left / total)


def rows_of(experiment: str, jobs: Sequence[Job], store: Store) -> list[Result]:
    """Return the rows that a store has of the cells of jobs in an experiment."""
    cells = {cell for job in jobs for cell in job.cells}
    return [row for row in latest(store.read(experiment)) if cell_of(experiment, row) in cells]


def versions(packages: Sequence[str] = ()) -> str:
    """Name the versions of what computes, and of further packages."""
    names = ("torch", "numpy", "scikit-learn", *packages)
    others = ", ".join(f"{name} {version(name)}" for name in names)
    return f"fewlier {__version__}, python {platform.python_version()}, {others}"


def _done(jobs: Sequence[Job], store: Store, retry: bool) -> set[Cell]:
    """Return the cells that have a row, which must be of the same tables."""
    hashes = {cell: job.sha256 for job in jobs for cell in job.cells}
    done = set()
    for experiment in {cell.experiment for cell in hashes}:
        for row in latest(store.read(experiment)):
            cell = cell_of(experiment, row)
            if row.sha256 != hashes.get(cell, row.sha256):
                raise UserError(
                    f"{store.path(experiment)} must have rows of the same tables; those of "
                    f"{cell.dataset} are of a table with other values. Name another folder."
                )
            if not (retry and row.has_failed):
                done.add(cell)
    return done


def _append(store: Store, job: Job, measured: Measured) -> None:
    """Add a row for every cell of a job, in the order of the cells."""
    found = dict(measured)
    rows: dict[str, list[Result]] = {}
    for cell, seed in job.seeds.items():
        rows.setdefault(cell.experiment, []).append(_row(cell, seed, job, found[cell]))
    for experiment, group in rows.items():
        store.append(experiment, group)


def _row(cell: Cell, seed: int, job: Job, measurement: Measurement) -> Result:
    return Result(
        dataset=cell.dataset,
        method=cell.method,
        k=cell.k,
        split=cell.split,
        seed=seed,
        parameter=measurement.parameter,
        value=measurement.value,
        validation_auc=measurement.validation_auc,
        auc=measurement.auc,
        average_precision=measurement.average_precision,
        seconds=measurement.seconds,
        sha256=job.sha256,
        versions=versions(job.packages),
        machine=measurement.machine,
        date=datetime.now(UTC).strftime("%Y-%m-%d"),
        reason=measurement.reason,
    )


def _in_this_process(jobs: Sequence[Job]) -> Generator[tuple[Job, Measured]]:
    for job in jobs:
        yield job, _attempt(job)


def _in_processes(jobs: Sequence[Job], workers: int) -> Generator[tuple[Job, Measured]]:
    """Yield jobs as they end.

    Every process has a pool of its own: one that is killed breaks its pool, and with a pool for
    all nobody could tell which job it was.
    """
    n_threads = max(1, n_cores() // workers)
    waiting = deque(jobs)
    pools = [_pool(n_threads) for _ in range(min(workers, len(jobs)))]
    idle = list(pools)
    busy: dict[Future[Measured], tuple[Job, ProcessPoolExecutor]] = {}
    others = set(active_children())
    try:
        while waiting or busy:
            while waiting and idle:
                job, pool = waiting.popleft(), idle.pop()
                busy[pool.submit(_attempt, job)] = job, pool
            for future in wait(busy, return_when=FIRST_COMPLETED).done:
                job, pool = busy.pop(future)
                try:
                    measured = future.result()
                except BrokenProcessPool:
                    measured, pool = _failed(job, KILLED), _pool(n_threads)
                    pools.append(pool)
                idle.append(pool)
                yield job, measured
    finally:
        for process in set(active_children()) - others:
            process.terminate()
        for pool in pools:
            pool.shutdown()


def _pool(n_threads: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1, get_context("spawn"), _begin, (n_threads,))


def _begin(n_threads: int) -> None:
    """Prepare a worker: its share of the cores, and an end with its parent, however that ends."""
    os.environ.setdefault("OMP_NUM_THREADS", str(n_threads))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is told, and ends its workers
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _attempt(job: Job) -> Measured:
    try:
        return job.compute(job.cells)
    except Exception as error:  # noqa: BLE001 - a failure of any kind becomes rows with its reason
        _log.exception("%s failed", " ".join(map(str, job.cells[0])))
        # Its first line says what happened; torch's errors have more lines, of advice.
        reason = "".join(traceback.format_exception_only(error)).strip().splitlines()[0]
        return _failed(job, reason)


def _failed(job: Job, reason: str) -> Measured:
    failed = Measurement(reason=reason, machine=describe_machine())
    return [(cell, failed) for cell in job.cells]
