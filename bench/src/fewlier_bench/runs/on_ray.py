"""Jobs on a Ray cluster, one core each, instead of in processes of this machine."""

import os
from collections import deque
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING

from fewlier.engines.ray import connect
from fewlier_bench.data.download import FOLDER_VARIABLE
from fewlier_bench.runs.execution import KILLED, Measured, attempt, failed
from fewlier_bench.runs.jobs import Job

if TYPE_CHECKING:
    from ray import ObjectRef

MAX_RETRIES = 3
"""Times that a job is begun again whose node was lost."""


def on_ray(
    jobs: Sequence[Job], address: str | None, workers: int | None = None
) -> Generator[tuple[Job, Measured]]:
    """Yield jobs as they end, on the cluster at an address, or on one that is started here.

    At most `workers` are computed at once; None for as many as the cluster has cores.
    """
    connect(address)
    import ray

    compute = ray.remote(num_cpus=1, max_retries=MAX_RETRIES)(_attempt)
    tables = os.environ.get(FOLDER_VARIABLE)
    waiting, running = deque(jobs), dict["ObjectRef[Measured]", Job]()
    try:
        while waiting or running:
            while waiting and len(running) < (workers or len(jobs)):
                job = waiting.popleft()
                running[compute.remote(job, tables)] = job
            (done,), _ = ray.wait(list(running), num_returns=1)
            job = running.pop(done)
            try:
                measured: Measured = ray.get(done)
            except ray.exceptions.RayError as error:
                measured = failed(job, _reason(error))
            yield job, measured
    finally:
        for left in running:
            ray.cancel(left, force=True)


def _reason(error: Exception) -> str:
    """Say why Ray has no result of a job; that it was killed only where that is so."""
    from ray import exceptions

    if isinstance(error, exceptions.WorkerCrashedError | exceptions.OutOfMemoryError):
        return KILLED
    cause = getattr(error, "cause", error)
    words = str(cause).strip().splitlines()
    return ": ".join([f"Ray: {type(cause).__name__}", *words[:1]])


def _attempt(job: Job, tables: str | None) -> Measured:
    """Compute a job in one thread, with tables from a folder; Ray has many processes on a node."""
    import torch

    os.environ["OMP_NUM_THREADS"] = "1"
    torch.set_num_threads(1)
    if tables:
        os.environ[FOLDER_VARIABLE] = tables
    return attempt(job)
