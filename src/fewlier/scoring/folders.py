"""A detector on folders of tables: each file is scored by itself, here or by workers elsewhere."""

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, closing
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, final

from fewlier.decision.threshold import check_share
from fewlier.detector import AnomalyDetector
from fewlier.errors import warn
from fewlier.files.atomic import PathLike
from fewlier.files.folder import TableFolder
from fewlier.files.reading import Batch, naming, open_table
from fewlier.files.streams import check_types
from fewlier.files.writing import Write, create_folder, create_table, output_names
from fewlier.process.escape import list_some
from fewlier.process.progress import Progress, silent
from fewlier.process.threads import ahead
from fewlier.reasons.explanation import Explanation, explain
from fewlier.score.model import FittedModel
from fewlier.scoring.batches import ScoredBatch, Tally
from fewlier.scoring.files import ScoreReport
from fewlier.scoring.scored import check_free


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
    def score(self, jobs: Sequence[Job], progress: Progress) -> Generator[Scored]:
        """Score files, and yield what each came to, as they are done.

        When it ends or is closed, nobody writes any more.
        """


class Piece(NamedTuple):
    """A batch of the file of a job, and how much of all files has been read with it."""

    job: Job
    batch: Batch
    share_read: float


def score_jobs(
    model: FittedModel, jobs: Sequence[Job], progress: Progress = silent
) -> Generator[Scored]:
    """Score files, one after the other; what they come to is the same in every process.

    While one batch is written, the next are read and scored, also those of the next file.
    """

    def explain_one(piece: Piece) -> tuple[Piece, Explanation]:
        return piece, explain(model, piece.batch.table(model.encoder.schema))

    explained = ahead(explain_one, _pieces(jobs))
    for job, parts in groupby(explained, lambda part: part[0].job):
        yield _score_job(model, job, parts, progress)


def _pieces(jobs: Sequence[Job]) -> Iterator[Piece]:
    sizes = [job.source.stat().st_size for job in jobs]
    done, total = 0, max(sum(sizes), 1)
    for job, size in zip(jobs, sizes, strict=True):
        with open_table(job.source) as file:
            for batch in file.batches(may_be_empty=True):
                yield Piece(job, batch, (done + size * (file.share_read() or 0.0)) / total)
        done += size


def _score_job(
    model: FittedModel,
    job: Job,
    parts: Iterator[tuple[Piece, Explanation]],
    progress: Progress,
) -> Scored:
    """Count the rows of a file, and write them where there is a threshold."""
    tally, n_above = Tally(model), 0
    with ExitStack() as stack:
        write: Write | None = None
        for piece, why in parts:
            batch = piece.batch
            tally.add_rows(batch, why)
            if job.threshold is not None:
                if write is None:
                    write = stack.enter_context(create_table(job.target, batch.delimiter or ","))
                write(ScoredBatch.of(batch, why).add_scores(model, job.threshold))
                n_above += int((why.score > job.threshold).sum())
            progress(piece.share_read)
    return Scored(n_above, tally.totals())


@final
class Here(Workers):
    """Files are scored in this process, one after the other."""

    def __init__(self, model: FittedModel) -> None:
        self._model = model

    def score(self, jobs: Sequence[Job], progress: Progress) -> Generator[Scored]:
        """Score files in their order."""
        return score_jobs(self._model, jobs, progress)


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

    The folder is there, in place of another, when all is done, as `replacing_folder` says. The
    columns of all files are checked before any row is scored. With `fdr` the files are read twice:
    the threshold is that of all of their rows.
    """
    if fdr is not None:
        check_share("fdr", fdr)
    inside = output_names(path.relative_to(folder.root) for path in folder.paths)
    _check_columns(detector.model_, folder)
    workers = workers or Here(detector.model_)
    threshold = detector.threshold_
    with create_folder(output) as aside:
        names = {folder.root / path: aside / name for path, name in inside.items()}
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
            Batch(file.name, file.schema.empty_table(), 0, None).table(model.encoder.schema)
            check_types(model.encoder.schema, file.schema)


def _total(model: FittedModel, scored: Generator[Scored]) -> tuple[Tally, int]:
    tally, n_above = Tally(model), 0
    with closing(scored):
        for part in scored:
            tally.add(part.totals)
            n_above += part.n_above
    return tally, n_above
