"""A detector on folders of tables: each file is scored by itself, here or by workers elsewhere."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, final

from fewlier.atomic import PathLike
from fewlier.batches import ScoredBatch, Tally
from fewlier.decision.threshold import check_share
from fewlier.detector import AnomalyDetector
from fewlier.errors import warn
from fewlier.files import ScoreReport
from fewlier.progress import Progress, silent
from fewlier.reasons.explanation import explain
from fewlier.score.model import FittedModel
from fewlier.scored import check_free
from fewlier.shown import list_some
from fewlier.table.folder import TableFolder
from fewlier.table.reading import Batch, naming, open_table
from fewlier.table.writing import create_folder, create_table, output_name


class Job(NamedTuple):
    """A file to score: where its rows come from and go to, and by which threshold.

    Without a threshold rows are only counted.
    """

    source: Path
    target: Path
    threshold: float | None


class Scored(NamedTuple):
    """What scoring a file came to: the rows above the threshold, and `Tally.totals`."""

    n_above: int
    totals: dict[str, Any]


class Workers(ABC):
    """Those who score files."""

    @abstractmethod
    def score(self, jobs: Sequence[Job], progress: Progress) -> Iterator[Scored]:
        """Score files, and yield what each came to, as they are done."""


def score_one(model: FittedModel, job: Job, progress: Progress = silent) -> Scored:
    """Score one file, in one process; what it comes to is the same in every other."""
    tally, n_above = Tally(model), 0
    with open_table(job.source) as file:
        batches = file.batches(may_be_empty=True)
        explained = ((b, explain(model, b.table(model.encoder.schema))) for b in batches)
        counted = tally.count(explained)
        if job.threshold is None:
            for _ in counted:
                progress(file.share_read())
            return Scored(0, tally.totals())
        with create_table(job.target, file.delimiter or ",") as write:
            for batch, why in counted:
                write(ScoredBatch.of(batch, why).add_scores(model, job.threshold))
                n_above += int((why.score > job.threshold).sum())
                progress(file.share_read())
    return Scored(n_above, tally.totals())


@final
class Here(Workers):
    """Files are scored in this process, one after the other."""

    def __init__(self, model: FittedModel) -> None:
        self._model = model

    def score(self, jobs: Sequence[Job], progress: Progress) -> Iterator[Scored]:
        """Score files in their order."""
        sizes = [job.source.stat().st_size for job in jobs]
        done, total = 0, max(sum(sizes), 1)
        for job, size in zip(jobs, sizes, strict=True):

            def show(share: float | None, before: int = done, own: int = size) -> None:
                progress((before + own * (share or 0.0)) / total)

            yield score_one(self._model, job, show)
            done += size


def score_folder(
    detector: AnomalyDetector,
    folder: TableFolder,
    output: PathLike,
    *,
    fdr: float | None = None,
    workers: Workers | None = None,
    progress: Progress = silent,
) -> ScoreReport:
    """Score the rows of many files into a folder, each file into one of its name and format.

    The folder is there, in place of another, when all is done; otherwise nothing has changed. The
    columns of all files are checked before any row is scored. With `fdr` the files are read twice:
    the threshold is that of all of their rows.
    """
    if fdr is not None:
        check_share("fdr", fdr)
    _check_columns(detector.model_, folder)
    workers = workers or Here(detector.model_)
    threshold = detector.threshold_
    with create_folder(output) as aside:
        names = {path: aside / output_name(path.relative_to(folder.root)) for path in folder.paths}
        for target in names.values():
            target.parent.mkdir(parents=True, exist_ok=True)
        if fdr is not None:
            jobs = [Job(*names_of, None) for names_of in names.items()]
            tally, _ = _total(detector.model_, workers.score(jobs, progress))
            threshold = tally.threshold(fdr)
        jobs = [Job(*names_of, threshold) for names_of in names.items()]
        tally, n_above = _total(detector.model_, workers.score(jobs, progress))
        for left in aside.rglob(".*.tmp"):  # of a worker that was killed; another did its work
            left.unlink()
    if tally.unread:
        cells = list_some(f"{n:,} in {name}" for name, n in tally.unread.items())
        warn(f"{folder.name}: cells in another form than in training count as missing: {cells}.")
    return ScoreReport.of(tally, threshold, n_above)


def _check_columns(model: FittedModel, folder: TableFolder) -> None:
    for _, file, _ in folder.files():
        with naming(file.name):
            check_free(file.columns)
        Batch(file.name, file.schema.empty_table(), 0, file.delimiter).table(model.encoder.schema)


def _total(model: FittedModel, parts: Iterator[Scored]) -> tuple[Tally, int]:
    tally, n_above = Tally(model), 0
    for part in parts:
        tally.add(part.totals)
        n_above += part.n_above
    return tally, n_above
