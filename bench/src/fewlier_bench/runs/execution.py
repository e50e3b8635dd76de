"""Runs jobs in several processes and appends their rows; a failure is a row too.

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
from contextlib import closing, suppress
from datetime import UTC, datetime
from importlib.metadata import version
from multiprocessing import get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as ready
from multiprocessing.process import BaseProcess
from typing import NamedTuple, TypeAlias, cast, final

from fewlier import __version__
from fewlier.errors import UserError
from fewlier.process.signals import uninterrupted
from fewlier_bench.runs.jobs import Job, Measurement, describe_machine, n_cores
from fewlier_bench.runs.results import Cell, Result, Store, cell_of, latest

Measured: TypeAlias = list[tuple[Cell, Measurement]]
Engine: TypeAlias = Callable[[Sequence[Job]], Generator[tuple[Job, Measured]]]

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
    engine: Engine | None = None,
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
    engine : callable, or None
        Computes jobs elsewhere, and yields each as it ends; `workers` then do not count.
    on_progress : callable
        Told after every job which share of the cells has a row.
    """
    done = _done(jobs, store, retry)
    todo = [job.without(done) for job in jobs]
    todo = sorted((job for job in todo if job.seeds), key=lambda job: -job.cost)
    total = sum(len(job.seeds) for job in jobs)
    left = sum(len(job.seeds) for job in todo)
    if engine is not None:
        computed = engine(todo)
    else:
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
                    f"{store.path(experiment)} must have rows of the same tables; the rows of "
                    f"{cell.dataset} come from a table with other values. Name another folder."
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
        yield job, attempt(job)


def _in_processes(jobs: Sequence[Job], workers: int) -> Generator[tuple[Job, Measured]]:
    """Yield jobs as they end. A worker that is killed fails the job it had, and is replaced."""
    n_threads = max(1, n_cores() // workers)
    waiting = deque(jobs)
    idle: list[_Worker] = []
    busy: dict[Connection, tuple[Job, _Worker]] = {}
    try:
        idle += [_start(n_threads) for _ in range(min(workers, len(jobs)))]
        while waiting or busy:
            while waiting and idle:
                job, worker = waiting.popleft(), idle.pop()
                busy[worker.connection] = job, worker
                with suppress(OSError):  # it was killed while it was idle
                    worker.connection.send(job)
            for connection in ready(list(busy)):
                job, worker = busy.pop(cast("Connection", connection))
                try:
                    measured = worker.connection.recv()
                except (EOFError, OSError):
                    measured, worker = failed(job, KILLED), _start(n_threads)
                idle.append(worker)
                yield job, measured
    finally:
        for worker in (*idle, *(worker for _, worker in busy.values())):
            worker.process.kill()
            worker.process.join()
            worker.connection.close()


@final
class _Worker(NamedTuple):
    """A process that computes jobs, and the connection on which it gets and returns them."""

    process: BaseProcess
    connection: Connection


def _start(n_threads: int) -> _Worker:
    context = get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_work, args=(there, n_threads), daemon=True)
    resource_tracker.ensure_running()  # which would let signals through again
    with uninterrupted():
        # Ctrl-C on a terminal goes to all processes; a worker hears of it once it can ignore it.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
    there.close()
    return _Worker(process, here)


def _work(connection: Connection, n_threads: int) -> None:
    """Compute jobs in a worker: with its share of the cores, until its parent ends."""
    os.environ.setdefault("OMP_NUM_THREADS", str(n_threads))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is told, and ends its workers
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(EOFError, OSError):  # the parent has ended
        while True:
            connection.send(attempt(connection.recv()))


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def attempt(job: Job) -> Measured:
    """Compute a job, whatever may go wrong."""
    try:
        return job.compute(job.cells)
    except Exception as error:  # noqa: BLE001 - a failure of any kind becomes rows with its reason
        _log.exception("%s failed", " ".join(map(str, job.cells[0])))
        # Its first line says what happened; torch's errors have more lines, of advice.
        reason = "".join(traceback.format_exception_only(error)).strip().splitlines()[0]
        return failed(job, reason)


def failed(job: Job, reason: str) -> Measured:
    """Return a failure of every cell of a job."""
    failed = Measurement(reason=reason, machine=describe_machine())
    return [(cell, failed) for cell in job.cells]
