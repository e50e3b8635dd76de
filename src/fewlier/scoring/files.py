"""A detector on data files: fit, update, score, explain, evaluate; rows are scored in batches."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, TypeAlias, final

import numpy as np
import pyarrow as pa

from fewlier.decision.evaluation import Evaluation, KindEvaluation, evaluate, evaluate_kinds
from fewlier.decision.threshold import check_share
from fewlier.detector import AnomalyDetector
from fewlier.errors import UserError, warn
from fewlier.files.folder import TableFolder
from fewlier.files.reading import Batch, TableFile, naming
from fewlier.files.reservoir import Reservoir
from fewlier.files.writing import Spool, Write
from fewlier.process.progress import FitProgress, Progress, no_progress
from fewlier.reasons.explanation import Explanation
from fewlier.score.model import FittedModel
from fewlier.scoring.batches import (
    ScoreReport,
    at_discovery_rate,
    score_batch,
    score_batches,
    write_scores,
)
from fewlier.scoring.scored import Scored, check_free
from fewlier.table import Table
from fewlier.table.arrays import Ints
from fewlier.table.frame import all_unread, unread_note
from fewlier.table.label_column import LabelColumn, LabelReader
from fewlier.table.labels import Labels
from fewlier.table.text_forms import Unread

Answers: TypeAlias = Callable[[pa.Table, Labels | None], Labels]
"""Adds what was answered elsewhere to the labels of some rows."""


@final
class FileLabels:
    """The labels of a file, read batch by batch."""

    def __init__(self, label: LabelColumn, file: TableFile) -> None:
        with naming(file.name):
            label.check(file.columns)
        self._file, self._reader = file.name, LabelReader(label)
        self._rows: list[Ints] = []

    def add(self, batch: Batch) -> None:
        """Read the labels of a batch."""
        with naming(batch.file, batch.start):
            cells = batch.rows[self._reader.column.name].to_pylist()
            self._rows.append(self._reader.add(cells))

    def passing(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Read the labels of batches, and pass these on."""
        for batch in batches:
            self.add(batch)
            yield batch

    def read(self, *, is_complete: bool = False) -> Labels:
        """Return the labels of the whole file, and warn of what they were taken for."""
        with naming(self._file):
            labels = self._reader.read(np.concatenate(self._rows), is_complete=is_complete)
        labels.warn(self._file)
        return labels


def read_rows(
    file: TableFile, label: LabelColumn | None, *, is_complete: bool = False
) -> tuple[pa.Table, Labels | None]:
    """Return the features and labels of a file.

    A file that is not complete may lack values that `label` names.
    """
    labels = label and FileLabels(label, file)
    batch = file.whole()
    if labels:
        labels.add(batch)
    features = batch.rows.select(file.features(label and label.name))
    return features, labels and labels.read(is_complete=is_complete)


def fit_file(
    detector: AnomalyDetector,
    file: TableFile | TableFolder,
    label: LabelColumn | None,
    *,
    answers: Answers | None = None,
    validation: TableFile | None = None,
    progress: FitProgress | None = None,
) -> AnomalyDetector:
    """Fit a detector to the rows of files; without a label column all rows are unlabelled.

    The files are read once, and of very many rows a sample is kept. `answers` returns the labels
    when it is given the rows of one file, which are kept in memory, and the labels of the column.
    """
    held_back = None if validation is None else read_rows(validation, label)
    # Either may be at fault.
    name = file.name if validation is None else f"{file.name}, {validation.name}"
    with naming(name):
        told = progress or FitProgress()
        if answers is None:
            given: tuple[object, object] = file.batches(told.reading), label
        else:
            given = _read_answered(file, label, answers)
        return detector.fit(*given, validation=held_back, progress=told.training)


def _read_answered(
    file: TableFile | TableFolder, label: LabelColumn | None, answers: Answers
) -> tuple[pa.Table, Labels]:
    """Return the rows of a file and their labels, with what was answered elsewhere."""
    if isinstance(file, TableFolder):
        raise UserError("answers belong to the rows of one file; got a folder. Name the file.")
    rows, labels = read_rows(file, label, is_complete=True)
    return rows, answers(rows, labels)


def update_file(
    detector: AnomalyDetector, file: TableFile, label: LabelColumn, progress: Progress = no_progress
) -> AnomalyDetector:
    """Let a detector learn from the labelled rows of a file, which may have further columns."""
    labels = FileLabels(label, file)
    batch = file.whole()
    labels.add(batch)
    found = labels.read()
    schema = detector.model_.encoder.schema
    features = batch.features(schema)
    with naming(file.name):
        if not features.num_columns:
            schema.match(Table({}))  # says which columns are missing
        return detector.update(features, found, progress=progress)


def score_file(
    detector: AnomalyDetector,
    file: TableFile,
    write: Write,
    *,
    typed: bool = False,
    fdr: float | None = None,
    progress: Progress = no_progress,
) -> ScoreReport:
    """Write every row with its score, verdict, p-value and, for anomalies, reasons.

    Rows keep their order and all of their columns; there may be none. `typed` gives the columns of
    a CSV file that the model knows their types, for Parquet; otherwise cells are written as they
    were read. With `fdr` the threshold is that of the whole file (see `AnomalyDetector.predict`);
    its rows wait in a temporary file until it is known.
    """
    with naming(file.name):
        check_free(file.columns)
    model: FittedModel = detector.model_
    scored = scored_batches(model, file, file.batches(may_be_empty=True), progress)
    if fdr is None:
        return write_scores(model, scored, write, typed=typed).report(model)
    check_share("fdr", fdr)
    with Spool() as spool:
        ranks = model.calibration.counts(np.empty(0))
        for batch, one in scored:
            spool.keep(batch, one.scores)
            ranks += model.calibration.counts(one.scores)
        model = at_discovery_rate(model, fdr, ranks)
        again = ((batch, score_batch(model, batch, scores)) for batch, scores in spool.read())
        return write_scores(model, again, write, typed=typed).report(model)


def scored_batches(
    model: FittedModel, file: TableFile, batches: Iterable[Batch], progress: Progress
) -> Iterator[tuple[Batch, Scored]]:
    """Yield batches of a file with their scores, and in the end warn of cells not read."""
    unread: dict[str, Unread] = {}
    for batch, scored in score_batches(model, batches):
        unread = all_unread(unread, scored.rows.unread, batch.start)
        yield batch, scored
        progress(file.share_read())
    if unread:
        warn(f"{file.name}: {unread_note(unread)}")


@final
@dataclass(frozen=True)
class RowsOfFile:
    """Some rows of a file.

    Parameters
    ----------
    numbers : array (n,)
        Their numbers, counted from 0.
    cells : pyarrow.Table
        All of their columns, as they were read.
    scored : Scored
        Their scores.
    """

    numbers: Ints
    cells: pa.Table
    scored: Scored

    @classmethod
    def of(cls, batch: Batch, scored: Scored) -> "RowsOfFile":
        """Return the rows of a batch."""
        return cls(batch.start + np.arange(len(scored)), batch.rows, scored)

    @classmethod
    def joined(cls, parts: Sequence["RowsOfFile"]) -> "RowsOfFile":
        """Put parts together."""
        numbers = np.concatenate([part.numbers for part in parts])
        scored = reduce(Scored.followed_by, (part.scored for part in parts))
        return cls(numbers, pa.concat_tables(part.cells for part in parts), scored)

    def take(self, rows: Ints) -> "RowsOfFile":
        """Return the rows at some positions."""
        return RowsOfFile(self.numbers[rows], self.cells.take(rows), self.scored.take(rows))

    def records(self, labels: Labels | None, reasons: Iterable[object]) -> list[dict[str, Any]]:
        """Return what is known of each row: number, score, verdict, p-value, label and reasons."""
        known = ({} if labels is None else labels.record(row) for row in self.numbers.tolist())
        lines = zip(self.numbers.tolist(), self.scored.records(), known, reasons, strict=True)
        return [{"row": row} | own | label | {"reasons": why} for row, own, label, why in lines]


@final
@dataclass(frozen=True)
class ExplainedRows:
    """The highest-scored rows of a file, the highest first, and why they score so.

    `labels` are those of the whole file. `by_kind` compares each kind of anomaly with the normal
    rows; None without labels, or where rows were chosen and the others not scored.
    """

    rows: RowsOfFile
    explanation: Explanation
    labels: Labels | None = None
    by_kind: tuple[KindEvaluation, ...] | None = None

    def records(self, n_reasons: int) -> list[dict[str, Any]]:
        """Return one record per row, of JSON values."""
        tops = self.explanation.tops(n=n_reasons)
        return self.rows.records(self.labels, [[one._asdict() for one in why] for why in tops])


def explain_file(
    detector: AnomalyDetector,
    file: TableFile,
    n_rows: int | None,
    label: LabelColumn | None = None,
    chosen: Sequence[int] = (),
    progress: Progress = no_progress,
) -> ExplainedRows:
    """Explain the highest-scored rows of a file; all where n_rows is None.

    Where rows are chosen by their numbers, the others are not scored.
    """
    labels, model = label and FileLabels(label, file), detector.model_
    top = Reservoir(sys.maxsize if n_rows is None else n_rows, RowsOfFile.joined)
    batches, scores = file.batches() if labels is None else labels.passing(file.batches()), []
    batches = _chosen(batches, file.name, chosen) if chosen else batches
    for batch, scored in scored_batches(model, file, batches, progress):
        scores.append(scored.scores)
        top.offer(-scored.scores, RowsOfFile.of(batch, scored))
    found, by_kind = labels and labels.read(), None
    if found is not None and not chosen:
        trained = detector.summary_.labelled_kinds
        by_kind = evaluate_kinds(np.concatenate(scores), found, detector.threshold_, trained)
    rows = top.in_order()
    return ExplainedRows(rows, Explanation(rows.scored, model), found, by_kind)


def _chosen(batches: Iterable[Batch], file: str, numbers: Sequence[int]) -> Iterator[Batch]:
    """Yield the rows of these numbers, one by one; refuse, in the end, numbers beyond the last."""
    n_rows = 0
    for batch in batches:
        n_rows = batch.start + batch.rows.num_rows
        for number in sorted({one for one in numbers if batch.start <= one < n_rows}):
            row = batch.rows.slice(number - batch.start, 1)
            yield replace(batch, rows=row, start=number)
    if beyond := [str(number) for number in sorted(set(numbers)) if number >= n_rows]:
        with naming(file):
            found = ", ".join(beyond)
            raise UserError(f"rows must be counted from 0 to {n_rows - 1}; got {found}.")


def evaluate_file(
    detector: AnomalyDetector, file: TableFile, label: LabelColumn, progress: Progress = no_progress
) -> Evaluation:
    """Compare scores with labels."""
    labels = FileLabels(label, file)
    scored = scored_batches(detector.model_, file, labels.passing(file.batches()), progress)
    scores = np.concatenate([one.scores for _, one in scored])
    found = labels.read()
    with naming(file.name):
        trained = detector.summary_.labelled_kinds
        return evaluate(scores, found, detector.threshold_, trained)
