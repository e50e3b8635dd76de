"""Ray: files, or the blocks of a dataset, scored by a pool of actors that load the model once."""

import json
import logging
import os
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import pyarrow as pa
import torch

from fewlier.atomic import PathLike
from fewlier.batches import BatchScorer
from fewlier.errors import UserError, missing_package
from fewlier.folders import Job, Scored, Workers, score_jobs
from fewlier.progress import Progress

if TYPE_CHECKING:
    from ray.data import ActorPoolStrategy, Dataset

MAX_LOST = 3
"""Actors that may be lost one after the other before they have begun."""


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
    arguments = {"model": str(Path(model).absolute()), "with_reason": with_reason}
    scored = dataset.map_batches(
        _BlockScorer,
        fn_constructor_kwargs=arguments,
        batch_format="pyarrow",
        batch_size=None,
        compute=_pool(workers),
        num_cpus=1,
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

    def score(self, jobs: Sequence[Job], progress: Progress) -> Iterator[Scored]:
        """Score files in any order, each by one actor."""
        import ray

        items = [
            {"job": json.dumps([str(j.source.absolute()), str(j.target), j.threshold])}
            for j in jobs
        ]
        rows = ray.data.from_items(items, override_num_blocks=len(items)).map_batches(
            _FileScorer,
            fn_constructor_kwargs={"model": self._model},
            batch_format="pyarrow",
            batch_size=1,
            compute=_pool(self._workers, len(jobs)),
            num_cpus=1,
        )
        rows.context.max_consecutive_actor_init_deaths = MAX_LOST  # a node may go as it begins
        for n_done, row in enumerate(rows.iter_rows(), 1):
            found: Mapping[str, Any] = json.loads(row["found"])
            if "error" in found:
                raise UserError(found["error"])
            yield Scored(found["n_above"], found["totals"])
            progress(n_done / len(jobs))


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


def _pool(workers: int | None, most: int | None = None) -> "ActorPoolStrategy":
    from ray.data import ActorPoolStrategy

    if workers is not None:
        return ActorPoolStrategy(size=workers)
    import ray

    n_cores = max(int(ray.cluster_resources().get("CPU", 1)), 1)
    return ActorPoolStrategy(size=min(n_cores, most or n_cores))


@final
class _BlockScorer:
    """An actor that scores blocks of rows."""

    def __init__(self, model: str, with_reason: bool) -> None:
        torch.set_num_threads(1)
        self._score = BatchScorer(model, with_reason=with_reason)

    def __call__(self, rows: pa.Table) -> pa.Table:
        """Score a block, which may have no row."""
        whole = rows.combine_chunks()
        batches = whole.to_batches() or [pa.RecordBatch.from_pylist([], schema=whole.schema)]
        return pa.Table.from_batches([*map(self._score, batches)])


@final
class _FileScorer:
    """An actor that scores files."""

    def __init__(self, model: str) -> None:
        torch.set_num_threads(1)
        self._scorer = BatchScorer(model)

    def __call__(self, rows: pa.Table) -> pa.Table:
        """Score files; what the user can fix is returned, so that it arrives as one sentence."""
        return pa.table(
            {"found": [json.dumps(self._found(text)) for text in rows["job"].to_pylist()]}
        )

    def _found(self, text: str) -> dict[str, Any]:
        source, target, threshold = json.loads(text)
        job = Job(Path(source), Path(target), threshold)
        try:
            (scored,) = score_jobs(self._scorer.model, [job])
            return scored._asdict()
        except UserError as error:
            return {"error": str(error)}
