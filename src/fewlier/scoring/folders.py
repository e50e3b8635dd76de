"""A detector on folders of tables: each file is scored by itself, here or by workers elsewhere."""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, nullcontext
from functools import reduce
from itertools import chain, groupby
from pathlib import Path
from typing import NamedTuple, TypeAlias

from fewlier.decision.threshold import check_share
from fewlier.detector import AnomalyDetector
from fewlier.errors import warn
from fewlier.files.atomic import PathLike
from fewlier.files.folder import TableFolder
from fewlier.files.reading import Batch, naming
from fewlier.files.streams import check_types
from fewlier.files.writing import create_folder, create_table, output_names
from fewlier.process.progress import Progress, no_progress
from fewlier.score.model import FittedModel
from fewlier.scoring.batches import (
    ScoreReport,
    Tally,
    at_discovery_rate,
    score_batches,
    write_scores,
)
from fewlier.scoring.scored import Scored, check_free
from fewlier.table.frame import unread_note


class Job(NamedTuple):
    """A file to score: where its rows come from and go to; where to nowhere, they are counted."""

    source: Path
    target: Path | None


ScoreJobs: TypeAlias = Callable[[FittedModel, Sequence[Job], Progress], Generator[Tally]]
"""Scores files by a model, and yields what is counted of each, in any order, as they are done.

When it ends or is closed, nobody writes any more.
"""


def score_jobs(
    model: FittedModel, jobs: Sequence[Job], progress: Progress = no_progress
) -> Generator[Tally]:
    """Score files in this process, in their order; the counts are the same in every process.

    While one batch is written, the next are read and scored, also those of the next file.
    """

    def score_one(target: Path | None, of_file: Iterator[tuple[Batch, Scored]]) -> Tally:
        first = next(of_file)
        delimiter = first[0].delimiter or ","
        with create_table(target, delimiter) if target else nullcontext() as write:
            return write_scores(model, chain([first], of_file), write)

    targets = {str(job.source): job.target for job in jobs}
    folder = TableFolder("", Path(), tuple(job.source for job in jobs))
    batches = score_batches(model, folder.batches(lambda so_far: progress(so_far.share)))
    for name, of_file in groupby(batches, key=lambda one: one[0].file):
        yield score_one(targets[name], of_file)


def score_folder(
    detector: AnomalyDetector,
    folder: TableFolder,
    output: PathLike,
    *,
    fdr: float | None = None,
    score: ScoreJobs = score_jobs,
    progress: Progress = no_progress,
) -> ScoreReport:
    """Score the rows of many files into a folder, each file into one of its name and format.

    The folder is complete when it has the file `_SUCCESS`, as `create_folder` says. The columns of
    all files are checked before any row is scored. With `fdr` the files are read twice: the
    threshold is that of all of their rows.
    """
    if fdr is not None:
        check_share("fdr", fdr)
    inside = output_names(path.relative_to(folder.root) for path in folder.paths)
    model: FittedModel = detector.model_
    _check_columns(model, folder)

    def total(model: FittedModel, jobs: list[Job]) -> Tally:
        with closing(score(model, jobs, progress)) as tallies:
            return reduce(Tally.plus, tallies)

    if fdr is not None:
        counted = total(model, [Job(path, None) for path in folder.paths])
        model = at_discovery_rate(model, fdr, counted.ranks)
    with create_folder(output) as target:
        jobs = [Job(folder.root / path, target / name) for path, name in inside.items()]
        for name in inside.values():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
        tally = total(model, jobs)
    if tally.unread:
        note = unread_note(tally.unread, lambda row: f"{row} of a file")
        warn(f"{folder.name}: {note}")
    return tally.report(model)


def _check_columns(model: FittedModel, folder: TableFolder) -> None:
    for file, _ in folder.files():
        with naming(file.name):
            check_free(file.columns)
            Batch(file.name, file.schema.empty_table(), 0, None).table(model.encoder.schema)
            check_types(model.encoder.schema, file.schema)
