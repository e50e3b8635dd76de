"""Jobs on a Ray cluster, one core each, instead of in processes of this machine."""

import os
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING

from fewlier.engines.ray import connect
from fewlier_bench.runs.execution import KILLED, Measured, attempt, failed
from fewlier_bench.runs.jobs import Job

if TYPE_CHECKING:
    from ray import ObjectRef

MAX_RETRIES = 3
"""Times that a job is begun again whose node was lost."""


def on_ray(jobs: Sequence[Job], address: str | None) -> Generator[tuple[Job, Measured]]:
    """Yield jobs as they end, on the cluster at an address, or on one that is started here."""
    connect(address)
    import ray

    compute = ray.remote(num_cpus=1, max_retries=MAX_RETRIES)(_attempt)
    waiting: dict[ObjectRef[Measured], Job] = {compute.remote(job): job for job in jobs}
    try:
        while waiting:
            (done,), _ = ray.wait(list(waiting), num_returns=1)
            job = waiting.pop(done)
            try:
                measured: Measured = ray.get(done)
            except ray.exceptions.RayError:
                measured = failed(job, KILLED)
            yield job, measured
    finally:
        for left in waiting:
            ray.cancel(left, force=True)


def _attempt(job: Job) -> Measured:
    """Compute a job in one thread; Ray has many processes on a node."""
    os.environ["OMP_NUM_THREADS"] = "1"
    return attempt(job)
