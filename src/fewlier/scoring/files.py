"""A detector on data files: fit, update, score, explain, evaluate; rows are scored in batches."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, fields
from functools import reduce
from typing import Any, TypeAlias, final

import numpy as np
import pyarrow as pa

from fewlier.decision.drift import Drift
from fewlier.decision.evaluation import Evaluation, KindEvaluation, evaluate, evaluate_kinds
from fewlier.decision.threshold import check_share
from fewlier.detector import AnomalyDetector
from fewlier.errors import LeftOutWarning, UserError, warn
from fewlier.files.folder import TableFolder
from fewlier.files.reading import Batch, TableFile, naming
from fewlier.files.writing import Write, put_by
from fewlier.process.progress import FitProgress, Progress, silent
from fewlier.process.threads import ahead
from fewlier.reasons.explanation import Explanation, explain
from fewlier.score.model import FittedModel
from fewlier.scoring.batches import ScoredBatch, Tally, explain_later
from fewlier.scoring.choice import RowChoice
from fewlier.scoring.scored import check_free
from fewlier.table import Table
from fewlier.table.arrays import Floats, Ints
from fewlier.table.forms import Unread
from fewlier.table.frame import all_unread, unread_note
from fewlier.table.label_column import LabelColumn, LabelReader
from fewlier.table.labels import Labels

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


def fit_file(  # noqa: PLR0913 - what the command may say
    detector: AnomalyDetector,
    file: TableFile | TableFolder,
    label: LabelColumn | None,
    *,
    answers: Answers | None = None,
    validation: TableFile | None = None,
    strict: bool = False,
    progress: FitProgress | None = None,
) -> AnomalyDetector:
    """Fit a detector to the rows of files; without a label column all rows are unlabelled.

    The files are read once, and of very many rows a sample is kept. `answers` returns the labels
    when it is given the rows of one file, which are kept in memory, and the labels of the column.
    `strict` refuses a table with columns that would be left out.
    """
    held_back = None if validation is None else read_rows(validation, label)
    # Either may be at fault.
    name = file.name if validation is None else f"{file.name}, {validation.name}"
    with naming(name), warnings.catch_warnings():
        if strict:
            warnings.simplefilter("error", LeftOutWarning)
        try:
            told = progress or FitProgress()
            if answers is None:
                given: tuple[object, object] = file.batches(told.reading), label
            else:
                given = _read_answered(file, label, answers)
            return detector.fit(*given, validation=held_back, progress=told.training)
        except LeftOutWarning as warning:
            raise UserError(f"a strict fit must use every column. {warning}") from warning


def _read_answered(
    file: TableFile | TableFolder, label: LabelColumn | None, answers: Answers
) -> tuple[pa.Table, Labels]:
    """Return the rows of a file and their labels, with what was answered elsewhere."""
    if isinstance(file, TableFolder):
        raise UserError("answers belong to the rows of one file; got a folder. Name the file.")
    rows, labels = read_rows(file, label, is_complete=True)
    return rows, answers(rows, labels)


def update_file(
    detector: AnomalyDetector, file: TableFile, label: LabelColumn, progress: Progress = silent
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


@final
@dataclass(frozen=True)
class ScoreReport:
    """What scoring a file came to.

    `n_impossible` counts, by column, the cells whose value the column cannot have: a category
    never seen, a negative count; `unread` those in another form than the column's, which count as
    missing. `passed_through` names the columns that the model does not know.
    `threshold` is the model's own, or that of the file, infinite where no row can be above it.
    """

    n_rows: int
    n_above_threshold: int
    threshold: float
    passed_through: tuple[str, ...]
    n_impossible: dict[str, int]
    unread: dict[str, int]
    drift: Drift

    @classmethod
    def of(cls, tally: Tally, threshold: float, n_above: int) -> "ScoreReport":
        """Return what was counted, and what a threshold made of it."""
        return cls(
            tally.n_rows,
            n_above,
            threshold,
            tally.passed_through,
            tally.n_impossible,
            dict(tally.unread),
            tally.drift,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON values; an infinite threshold is None."""
        threshold = self.threshold if np.isfinite(self.threshold) else None
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        lists = {"passed_through": list(self.passed_through), "drift": self.drift.to_json()}
        return own | lists | {"threshold": threshold}


def score_file(
    detector: AnomalyDetector,
    file: TableFile,
    write: Write,
    *,
    typed: bool = False,
    fdr: float | None = None,
    progress: Progress = silent,
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
    tally, threshold, n_above = Tally(model), detector.threshold_, 0
    explained = tally.count(explain_batches(model, file, progress, may_be_empty=True))
    with ExitStack() as stack:
        if fdr is None:
            scored = (ScoredBatch.of(batch, why) for batch, why in explained)
        else:
            check_share("fdr", fdr)
            pairs = ((batch, why.score) for batch, why in explained)
            again = stack.enter_context(put_by(pairs))
            scored = (explain_later(model, batch, scores) for batch, scores in again)
            threshold = tally.threshold(fdr)
        for one in scored:
            write(one.add_scores(model, threshold, typed=typed))
            n_above += int((one.scores > threshold).sum())
    return ScoreReport.of(tally, threshold, n_above)


def explain_batches(
    model: FittedModel,
    file: TableFile,
    progress: Progress = silent,
    *,
    may_be_empty: bool = False,
) -> Iterator[tuple[Batch, Explanation]]:
    """Yield the batches of a file, each with the scores of its rows, and why they have them."""
    for batch, _, why in _explain_chosen(model, file, progress, None, may_be_empty):
        yield batch, why


def _explain_chosen(
    model: FittedModel,
    file: TableFile,
    progress: Progress,
    choice: RowChoice | None,
    may_be_empty: bool = False,
) -> Iterator[tuple[Batch, Ints, Explanation]]:
    """Yield batches with the positions of the chosen rows, and the explanation of these.

    At the end warn of unread cells.
    """

    def explain_one(chosen: tuple[Batch, Ints]) -> tuple[Batch, Ints, Table, Explanation]:
        batch, places = chosen
        table = batch.table(model.encoder.schema)
        is_whole = len(places) == table.n_rows
        return *chosen, table, explain(model, table if is_whole else table.take(places))

    unread: dict[str, Unread] = {}
    find = choice.find if choice else _all_rows
    chosen = ((batch, find(batch)) for batch in file.batches(may_be_empty=may_be_empty))
    for batch, places, table, why in ahead(explain_one, chosen):
        unread = all_unread(unread, table.unread, batch.start)
        yield batch, places, why
        progress(file.share_read())
    if unread:
        warn(f"{file.name}: {unread_note(unread)}")


def _all_rows(batch: Batch) -> Ints:
    return np.arange(batch.rows.num_rows)


@final
@dataclass(frozen=True)
class TopRows:
    """The highest-scored rows of a file, the highest first: their numbers, and their explanation.

    `labels` are those of the whole file. `by_kind` compares each kind of anomaly with the normal
    rows; None without labels, or where rows were chosen and the others not scored.
    """

    rows: Ints
    explanation: Explanation
    labels: Labels | None = None
    by_kind: tuple[KindEvaluation, ...] | None = None

    def records(self, detector: AnomalyDetector, n_reasons: int) -> list[dict[str, Any]]:
        """Return one record per row, of JSON values."""
        scores, reasons = self.explanation.score, self.explanation.tops(n=n_reasons)
        p_values = detector.model_.calibration.p_value(scores)
        return [
            {
                "row": int(row),
                "anomaly_score": float(scores[i]),
                "is_anomaly": bool(scores[i] > detector.threshold_),
                "p_value": float(p_values[i]),
                **({} if self.labels is None else self.labels.record(row)),
                "reasons": [reason._asdict() for reason in reasons[i]],
            }
            for i, row in enumerate(self.rows)
        ]


def explain_file(
    detector: AnomalyDetector,
    file: TableFile,
    n_rows: int | None,
    label: LabelColumn | None = None,
    choice: RowChoice | None = None,
    progress: Progress = silent,
) -> TopRows:
    """Explain the highest-scored rows of a file, or of the chosen ones; all where n_rows is None.

    Rows that are not chosen are not scored.
    """
    labels = label and FileLabels(label, file)
    scores: list[Floats] = []
    rows, kept = np.empty(0, dtype=np.int64), list[Explanation]()
    for batch, places, why in _explain_chosen(detector.model_, file, progress, choice):
        if labels:
            labels.add(batch)
        scores.append(why.score)
        top = reduce(Explanation.followed_by, [*kept, why])
        rows = np.concatenate([rows, batch.start + places])
        order = np.argsort(-top.score, kind="stable")[:n_rows]
        kept, rows = [top.take(order)], rows[order]
    if choice:
        choice.check()
    found, by_kind = labels and labels.read(), None
    if found is not None and choice is None:
        trained = detector.summary_.labelled_kinds
        by_kind = evaluate_kinds(np.concatenate(scores), found, detector.threshold_, trained)
    return TopRows(rows, kept[0], found, by_kind)


def evaluate_file(
    detector: AnomalyDetector, file: TableFile, label: LabelColumn, progress: Progress = silent
) -> Evaluation:
    """Compare scores with labels."""
    labels, scores = FileLabels(label, file), []
    for batch, why in explain_batches(detector.model_, file, progress):
        labels.add(batch)
        scores.append(why.score)
    found = labels.read()
    with naming(file.name):
        trained = detector.summary_.labelled_kinds
        return evaluate(np.concatenate(scores), found, detector.threshold_, trained)
