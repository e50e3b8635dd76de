"""Ray: files, or the blocks of a dataset, scored by workers that each load the model once."""

import logging
import os
import signal
import threading
from collections import deque
from collections.abc import Generator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import pyarrow as pa
import torch

from fewlier.detector import AnomalyDetector
from fewlier.errors import UserError, missing_package
from fewlier.files.atomic import PathLike
from fewlier.files.reading import batch_rows
from fewlier.process.progress import Progress
from fewlier.score.model import FittedModel
from fewlier.scoring.batches import BatchScorer, Tally
from fewlier.scoring.folders import Job, score_jobs

if TYPE_CHECKING:
    from ray import ObjectRef
    from ray.data import Dataset

MAX_RETRIES = 3
"""Times that a file or a block is begun again whose worker was lost."""
_SECONDS_TO_END = 10.0  # that workers are given


def score(
    dataset: "Dataset",
    model: PathLike,
    *,
    with_reason: bool = True,
    workers: int | None = None,
) -> "Dataset":
    """Return a dataset of Ray with the columns that scoring adds; rows keep their order.

    Parameters
    ----------
    dataset : ray.data.Dataset
        Rows with the columns of the model; others pass through.
    model : path
        A model file that every node can read.
    with_reason : bool
        Whether to say of each anomaly why it is one.
    workers : int or None
        Actors, each with one core and one thread; None lets Ray take as many as there is room for.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import pandas as pd
    >>> import ray
    >>> from fewlier import AnomalyDetector
    >>> from fewlier.engines.ray import score
    >>> amount = np.append(np.random.default_rng(0).normal(50, 10, 199), 400)
    >>> payments = pd.DataFrame({"amount": amount})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     AnomalyDetector(random_state=0).fit(payments).save(f"{folder}/fraud.fewlier")
    ...     scored = score(ray.data.from_pandas(payments), f"{folder}/fraud.fewlier")
    ...     found = scored.to_pandas()  # Ray computes when it is asked for rows
    >>> found["is_anomaly"].tail(2).tolist()
    [False, True]
    """
    from ray.data import ActorPoolStrategy

    arguments = {"model": str(Path(model).absolute()), "with_reason": with_reason}
    scored = dataset.map_batches(
        _BlockScorer,
        fn_constructor_kwargs=arguments,
        batch_format="pyarrow",
        batch_size=None,
        compute=ActorPoolStrategy(size=_n_workers(workers)),
        num_cpus=1,
        # Else a block that kills its actor is tried for ever. Ray 2.64 is to take this away.
        max_task_retries=MAX_RETRIES,
    )
    scored.context.execution_options.preserve_order = True
    return scored


@final
class RayWorkers:
    """Workers of a Ray cluster, which reads and writes files under the same paths as this process.

    Parameters
    ----------
    model : path
        The model file.
    address : str or None
        Of the cluster: "auto" finds one that is running; None starts one on this machine.
    workers : int or None
        Files that are scored at a time; None for one per core.
    """

    def __init__(
        self, model: PathLike, address: str | None = None, workers: int | None = None
    ) -> None:
        self._path, self._workers = Path(model).absolute(), workers
        connect(address)

    def score(
        self, model: FittedModel, jobs: Sequence[Job], progress: Progress
    ) -> Generator[Tally]:
        """Score files as `score_jobs` does; Ray tries that of a worker that was lost again."""
        import ray

        score_one = ray.remote(num_cpus=1, max_retries=MAX_RETRIES)(_score_job)
        file = self._path, self._path.stat().st_mtime_ns
        waiting, running = deque(jobs), dict["ObjectRef[Any]", Job]()
        most = _n_workers(self._workers)
        try:
            for n_done in range(1, len(jobs) + 1):
                while waiting and len(running) < most:
                    job = waiting.popleft()
                    job = job._replace(source=job.source.absolute())
                    running[score_one.remote(*file, model.calibration.threshold, job)] = job
                (done,), _ = ray.wait([*running], num_returns=1)
                yield _result(done, running.pop(done))
                progress(n_done / len(jobs))
        finally:
            for task in running:
                ray.cancel(task, force=True)
            if running:
                ray.wait([*running], num_returns=len(running), timeout=_SECONDS_TO_END)


@cache
def _load(path: Path, changed: int) -> FittedModel:  # noqa: ARG001 - a file that changes is another
    """Read a model, once in each worker."""
    torch.set_num_threads(1)
    model: FittedModel = AnomalyDetector.load(path).model_
    return model


def _score_job(path: Path, changed: int, threshold: float, job: Job) -> Tally | UserError:
    """Score a file; what the user can mend is returned, so that it arrives as one sentence."""
    try:
        model = _load(path, changed)
        calibration = replace(model.calibration, threshold=threshold)
        (tally,) = score_jobs(model.with_calibration(calibration), [job])
        return tally
    except UserError as error:
        return UserError(str(error))


def _result(task: "ObjectRef[Any]", job: Job) -> Tally:
    """Return what was counted of a file, or say why there is nothing."""
    import ray

    try:
        found: Tally | UserError = ray.get(task)
    except ray.exceptions.RayError as error:
        cause = getattr(error, "cause", error)  # of what a worker raised; else the worker was lost
        words = ": ".join([type(cause).__name__, *str(cause).strip().splitlines()[:1]])
        raise UserError(
            f"{job.source}: a worker of Ray must be able to score this file; got {words}. Workers "
            f"that are lost are replaced {MAX_RETRIES} times. One may lack memory, or what the "
            "file needs: use fewer --workers, or split the file."
        ) from error
    if isinstance(found, UserError):
        raise found
    return found


def connect(address: str | None) -> None:
    """Join a cluster of Ray, or start one on this machine, unless this process has one."""
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise missing_package("--engine ray needs Ray", error, "ray") from error
    if ray.is_initialized():
        return
    before = signal.getsignal(signal.SIGTERM)
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # its warnings say nothing to users
    try:
        # Without an address Ray would join whatever cluster it finds.
        ray.init(
            address=address or "local",
            log_to_driver=False,
            logging_level="error",
            **({} if address else {"include_dashboard": False}),
        )
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise UserError(
            f"--address must be that of a Ray cluster that is running; got {address!r}: {error}"
        ) from error
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, before)  # Ray's own would end the process in its way
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    ray.data.DataContext.get_current().enable_progress_bars = False


def _n_workers(workers: int | None) -> int:
    """Return how many workers to have; by default one per core of the cluster."""
    import ray

    return workers or max(int(ray.cluster_resources().get("CPU", 1)), 1)


@final
class _BlockScorer:
    """An actor that scores blocks of rows."""

    def __init__(self, model: str, with_reason: bool) -> None:
        torch.set_num_threads(1)
        self._scorer = BatchScorer(model, with_reason=with_reason)

    def __call__(self, rows: pa.Table) -> pa.Table:
        """Score a block, which may have no row, a batch at a time."""
        whole, start = rows.combine_chunks(), 0
        batches = whole.to_batches(batch_rows(rows.num_columns))
        scored = []
        for batch in batches or [pa.RecordBatch.from_pylist([], schema=whole.schema)]:
            scored.append(self._scorer(batch, file="a block", start=start))
            start += batch.num_rows
        return pa.Table.from_batches(scored)
