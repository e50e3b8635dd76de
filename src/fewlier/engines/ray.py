"""Ray: files, or the blocks of a dataset, scored by a pool of actors that load the model once."""

import logging
import os
import signal
import threading
from collections import Counter, deque
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import pyarrow as pa
import torch

from fewlier.errors import UserError, missing_package
from fewlier.files.atomic import PathLike
from fewlier.files.reading import batch_rows
from fewlier.process.progress import Progress
from fewlier.scoring.batches import BatchScorer
from fewlier.scoring.folders import Job, Scored, Workers, score_jobs

if TYPE_CHECKING:
    from ray import ObjectRef
    from ray.data import Dataset

MAX_LOST = 3
"""Times that a file or a block is begun again whose actor was lost."""


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
        max_task_retries=MAX_LOST,
    )
    scored.context.execution_options.preserve_order = True
    return scored


@final
class RayWorkers(Workers):
    """Actors of a Ray cluster, which reads the files and writes to the folder under the same paths.

    Parameters
    ----------
    model : path
        The model file.
    address : str or None
        Of the cluster: "auto" finds one that is running; None starts one on this machine.
    workers : int or None
        Actors; None for one per core.
    """

    def __init__(
        self, model: PathLike, address: str | None = None, workers: int | None = None
    ) -> None:
        self._model, self._workers = str(Path(model).absolute()), workers
        connect(address)

    def score(self, jobs: Sequence[Job], progress: Progress) -> Generator[Scored]:
        """Score files in any order, each by one actor; all are gone when this ends."""
        jobs = [job._replace(source=job.source.absolute()) for job in jobs]
        crew = _Crew(self._model, _n_workers(self._workers, len(jobs)))
        try:
            for n_done, found in enumerate(crew.score(jobs), 1):
                if isinstance(found, UserError):
                    raise found
                yield found
                progress(n_done / len(jobs))
        finally:
            crew.dismiss()


@final
class _Crew:
    """Actors that score one file at a time; that of an actor that is lost is begun again."""

    def __init__(self, model: str, size: int) -> None:
        import ray

        self._hire = ray.remote(num_cpus=1)(_FileScorer).remote
        self._model = model
        self._busy: dict[ObjectRef[Any], tuple[Any, Job | None]] = {}
        self._idle: list[Any] = []
        self._n_lost: Counter[Job | None] = Counter()  # by the file they had
        for _ in range(size):
            self._add()

    def score(self, jobs: Sequence[Job]) -> Iterator[Scored | UserError]:
        """Yield what files come to, or what the user can mend, as they are done."""
        waiting, n_left = deque(jobs), len(jobs)
        while n_left:
            job, found = self._next()
            if job and found is None:
                waiting.appendleft(job)
            elif job:
                n_left -= 1
                yield found
            while waiting and self._idle:
                self._give(self._idle.pop(), waiting.popleft())

    def _next(self) -> tuple[Job | None, Any]:
        """Wait for an actor; return the file that it had, if any, and None if it was lost."""
        import ray

        (done,), _ = ray.wait([*self._busy], num_returns=1)
        actor, job = self._busy.pop(done)
        try:
            found = ray.get(done)
        except ray.exceptions.RayError as error:
            self._n_lost[job] += 1
            is_lost = not isinstance(error, ray.exceptions.RayTaskError)
            if self._n_lost[job] > MAX_LOST or not is_lost:
                raise _failed(job, self._n_lost[job], error) from error
            if not self._idle:
                self._add()
            return job, None
        self._n_lost[None] = 0
        self._idle.append(actor)
        return job, found

    def dismiss(self) -> None:
        """End all actors, whatever they do."""
        import ray

        for actor in (*self._idle, *(actor for actor, _ in self._busy.values())):
            ray.kill(actor)

    def _add(self) -> None:
        actor = self._hire(self._model)
        self._busy[actor.__ray_ready__.remote()] = actor, None

    def _give(self, actor: Any, job: Job) -> None:  # noqa: ANN401 - an actor's handle
        self._busy[actor.score.remote(job)] = actor, job


def _failed(job: Job | None, n_times: int, error: Exception) -> UserError:
    """Return what to say of an actor that has failed in a way that another would not mend."""
    import ray

    what = f"got {n_times} workers that were lost one after the other"
    if isinstance(error, ray.exceptions.RayTaskError):
        words = str(error.cause).strip().splitlines()
        what = ": ".join([f"got {type(error.cause).__name__}", *words[:1]])
    if job is None:
        return UserError(
            f"A worker of Ray must be able to start; {what}. fewlier of this version and the model "
            "file must be on every node, and a core and memory must be free."
        )
    return UserError(
        f"{job.source}: a worker of Ray must be able to score it; {what}. If it takes more memory "
        "than a worker has, use fewer --workers, or split the file."
    )


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


def _n_workers(workers: int | None, most: int | None = None) -> int:
    """Return how many actors to start; by default one per core of the cluster."""
    import ray

    n_workers = workers or max(int(ray.cluster_resources().get("CPU", 1)), 1)
    return min(n_workers, n_workers if most is None else most)


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


@final
class _FileScorer:
    """An actor that scores files."""

    def __init__(self, model: str) -> None:
        torch.set_num_threads(1)
        self._scorer = BatchScorer(model)

    def score(self, job: Job) -> Scored | UserError:
        """Score a file; what the user can mend is returned, so that it arrives as one sentence."""
        try:
            (scored,) = score_jobs(self._scorer.model, [job])
            return scored
        except UserError as error:
            return UserError(str(error))
