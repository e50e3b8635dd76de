"""A detector on data files: fit, score, explain, evaluate; rows pass through in batches."""

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, fields
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fewlier.decision.calibration import Calibration
from fewlier.decision.drift import Drift
from fewlier.decision.evaluation import Evaluation, KindEvaluation, evaluate, evaluate_kinds
from fewlier.decision.threshold import check_share
from fewlier.detector import AnomalyDetector
from fewlier.errors import FewlierWarning, LabelWarning, LeftOutWarning, UserError, warn
from fewlier.reasons.explanation import Explanation, explain
from fewlier.score.model import FittedModel
from fewlier.shown import list_names
from fewlier.table import Encoded, Table
from fewlier.table.choice import RowChoice
from fewlier.table.forms import Unread
from fewlier.table.frame import all_unread, unread_note
from fewlier.table.label_column import LabelColumn, LabelReader
from fewlier.table.labels import Labels
from fewlier.table.reading import Batch, TableFile, naming
from fewlier.table.writing import Write, put_by
from fewlier.training.stack import OnEpoch, no_news

ADDED = ("anomaly_score", "is_anomaly", "p_value", "reason")
"""Columns that `score_file` adds."""
N_REASONS = 3
VISIBLE = 0.05
"""A smaller contribution is no reason; it would be shown as 0.0."""

Floats = npt.NDArray[np.float64]
OnBatch: TypeAlias = Callable[[float | None], None]
"""Told after each batch how much of the file is done, from 0 to 1, or None if nobody knows."""


def _no_news(share: float | None) -> None:
    """Ignore the progress."""


def read_training_rows(
    file: TableFile,
    label: LabelColumn | None,
    *,
    is_complete: bool,
) -> tuple[pa.Table, Labels | None]:
    """Return the features and labels of a file.

    A file that is not complete may lack values that `label` names.
    """
    labels = label and FileLabels(label, file)
    features = file.features(label and label.name)
    if not features:
        raise UserError(f"{file.name}: a table must have a column to learn from; none is left.")
    batch = file.whole()
    if labels:
        labels.add(batch)
    return batch.rows.select(features), labels and labels.read(is_complete=is_complete)


@final
class FileLabels:
    """The labels of a file, read batch by batch."""

    def __init__(self, label: LabelColumn, file: TableFile) -> None:
        with naming(file.name):
            label.check(file.columns)
        self._file, self._reader = file.name, LabelReader(label)

    def add(self, batch: Batch) -> None:
        """Read the labels of a batch."""
        with naming(batch.file, batch.start):
            self._reader.add(batch.rows[self._reader.column.name].to_pylist())

    def read(self, *, is_complete: bool = False) -> Labels:
        """Return the labels of the whole file, and warn of what they were taken for.

        A complete file must have every value that the label column names.
        """
        with naming(self._file):
            labels = self._reader.read(is_complete=is_complete)
        for category, messages in ((FewlierWarning, labels.notes), (LabelWarning, labels.doubts)):
            for message in messages:
                warn(f"{self._file}: {message}", category)
        return labels


def fit_file(
    detector: AnomalyDetector,
    file: TableFile,
    label: LabelColumn | None,
    *,
    validation: TableFile | None = None,
    strict: bool = False,
    on_epoch: OnEpoch = no_news,
) -> AnomalyDetector:
    """Fit a detector to the rows of a file; without a label column all rows are unlabelled.

    `strict` refuses a table with columns that would be left out.
    """
    rows, labels = read_training_rows(file, label, is_complete=True)
    held_back = None
    if validation is not None:
        held_back = read_training_rows(validation, label, is_complete=False)
    # Either may be at fault.
    name = file.name if validation is None else f"{file.name}, {validation.name}"
    with naming(name), warnings.catch_warnings():
        if strict:
            warnings.simplefilter("error", LeftOutWarning)
        try:
            return detector.fit(rows, labels, validation=held_back, on_epoch=on_epoch)
        except LeftOutWarning as warning:
            raise UserError(f"a strict fit must use every column. {warning}") from warning


def update_file(
    detector: AnomalyDetector, file: TableFile, label: LabelColumn, on_epoch: OnEpoch = no_news
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
        return detector.update(features, found, on_epoch=on_epoch)


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
    on_batch: OnBatch = _no_news,
) -> ScoreReport:
    """Write every row with its score, verdict, p-value and, for anomalies, reasons.

    Rows keep their order and all of their columns. `typed` gives the columns of a CSV file that
    the model knows their types, for Parquet; otherwise cells are written as they were read. With
    `fdr` the threshold is that of the whole file (see `AnomalyDetector.predict`); its rows wait
    in a temporary file until it is known.
    """
    _check_free(file)
    schema, tally = detector.model_.encoder.schema, Tally(detector)
    scored = tally.counted(scored_batches(detector, file, on_batch))
    with ExitStack() as stack:
        threshold, n_above = detector.threshold_, 0
        if fdr is not None:
            check_share("fdr", fdr)
            again = stack.enter_context(put_by((batch, scores) for batch, _, scores in scored))
            scored = ((batch, batch.table(schema), scores) for batch, scores in again)
            threshold = tally.threshold(fdr)
        for batch, table, scores in scored:
            is_anomaly = scores > threshold
            columns = (
                scores,
                is_anomaly,
                detector.model_.calibration.p_value(scores),
                pa.array(_reasons(detector, table, is_anomaly), pa.string()),
            )
            rows = batch.typed(schema) if typed else batch.rows
            for name, values in zip(ADDED, columns, strict=True):
                rows = rows.append_column(name, pa.chunked_array([pa.array(values)]))
            write(rows)
            n_above += int(is_anomaly.sum())
    known = set(schema.given)
    passed_through = tuple(name for name in file.columns if name not in known)
    return ScoreReport(
        tally.n_rows,
        n_above,
        threshold,
        passed_through,
        tally.n_impossible,
        dict(tally.unread),
        tally.drift,
    )


@final
class Tally:
    """What is counted over all rows of a file while they are scored."""

    def __init__(self, detector: AnomalyDetector) -> None:
        self._model: FittedModel = detector.model_
        self._names = self._model.encoder.schema.names
        self._calibration: Calibration = self._model.calibration
        self._reference = self._model.reference
        self._cells = [np.zeros_like(part) for part in self._reference.counts]
        self._ranks = self._calibration.counts(np.empty(0))
        self._n_impossible = np.zeros(len(self._names), dtype=np.int64)
        self.unread: Counter[str] = Counter()  # cells that could not be read, by column

    def counted(
        self, scored: Iterator[tuple[Batch, Table, Encoded, Floats]]
    ) -> Iterator[tuple[Batch, Table, Floats]]:
        """Pass rows on and count them."""
        for batch, table, encoded, scores in scored:
            self._ranks += self._calibration.counts(scores)
            self._n_impossible += encoded.impossible.sum(0)
            self.unread.update({name: cells.n for name, cells in table.unread.items()})
            for total, new in zip(self._cells, self._reference.count(encoded), strict=True):
                total += new
            yield batch, table, scores

    @property
    def n_rows(self) -> int:
        """Rows seen."""
        return int(self._ranks.sum())

    @property
    def n_impossible(self) -> dict[str, int]:
        """Cells that training never saw the like of, by column."""
        return {name: int(n) for name, n in zip(self._names, self._n_impossible, strict=True) if n}

    @property
    def drift(self) -> Drift:
        """How the rows seen differ from the training normals."""
        return self._model.drift(self._ranks, self._cells)

    def threshold(self, fdr: float) -> float:
        """Return the threshold that keeps a false-discovery rate among the rows seen."""
        self._calibration.warn_if_too_few("false-discovery rate", fdr, "no row can be flagged")
        return self._calibration.at_discovery_rate(fdr, self._ranks).threshold


def _check_free(file: TableFile) -> None:
    taken = [name for name in ADDED if name in file.columns]
    if taken:
        raise UserError(
            f"{file.name}: columns that scoring adds must not be there yet; got "
            f"{list_names(taken)}. Score the table from before, or rename them."
        )


def scored_batches(
    detector: AnomalyDetector, file: TableFile, on_batch: OnBatch
) -> Iterator[tuple[Batch, Table, Encoded, Floats]]:
    """Yield the batches of a file with their scores."""
    model = detector.model_
    for batch, table in _matched_batches(model, file, on_batch):
        encoded = model.encoder.encode(table)
        yield batch, table, encoded, model.score(encoded)


def _matched_batches(
    model: FittedModel, file: TableFile, on_batch: OnBatch
) -> Iterator[tuple[Batch, Table]]:
    """Yield the batches of a file with the columns of a model; name at the end what is unread."""
    unread: dict[str, Unread] = {}
    for batch in file.batches():
        table = batch.table(model.encoder.schema)
        unread = all_unread(unread, table.unread, batch.start)
        yield batch, table
        on_batch(file.share_read())
    if unread:
        warn(f"{file.name}: {unread_note(unread)}")


def _reasons(
    detector: AnomalyDetector, table: Table, chosen: npt.NDArray[np.bool_]
) -> list[str | None]:
    """Say of each chosen row which columns add most to its score."""
    reasons: list[str | None] = [None] * table.n_rows
    rows = np.flatnonzero(chosen)
    explanation = explain(detector.model_, table.take(rows), detector.score_unit_)
    for row, top in zip(rows, explanation.tops(n=N_REASONS), strict=True):
        reasons[row] = "; ".join(str(reason) for reason in top if reason.contribution >= VISIBLE)
    return reasons


@final
@dataclass(frozen=True)
class TopRows:
    """The highest-scored rows of a file, the highest first: their numbers, scores, and why.

    `labels` are those of the whole file. `by_kind` compares each kind of anomalies with the normal
    rows; None without labels, or where rows were chosen and the others not scored.
    """

    rows: npt.NDArray[np.int64]
    scores: Floats
    explanation: Explanation
    labels: Labels | None = None
    by_kind: tuple[KindEvaluation, ...] | None = None

    def records(self, detector: AnomalyDetector, n_reasons: int) -> list[dict[str, Any]]:
        """Return one record per row, of JSON values."""
        scores = self.scores
        p_values = detector.model_.calibration.p_value(scores)
        reasons = self.explanation.tops(n=n_reasons)
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
    on_batch: OnBatch = _no_news,
) -> TopRows:
    """Explain the highest-scored rows of a file, or of the chosen ones; all where n_rows is None.

    Rows that are not chosen are not scored.
    """
    labels, model = label and FileLabels(label, file), detector.model_
    parts = []
    best, rows, table = np.empty(0), np.empty(0, dtype=np.int64), Table({})
    for batch, part in _matched_batches(model, file, on_batch):
        if labels:
            labels.add(batch)
        places = np.arange(part.n_rows) if choice is None else choice.find(batch)
        part = part.take(places)
        table = table.followed_by(part) if len(rows) else part
        parts.append(model.score(model.encoder.encode(part)))
        best = np.concatenate([best, parts[-1]])
        rows = np.concatenate([rows, batch.start + places])
        kept = np.argsort(-best, kind="stable")[:n_rows]
        best, rows, table = best[kept], rows[kept], table.take(kept)
    if choice:
        choice.check()
    explanation = explain(model, table, detector.score_unit_)
    found, by_kind = labels and labels.read(), None
    if found is not None and choice is None:
        trained = detector.summary_.labelled_kinds
        by_kind = evaluate_kinds(np.concatenate(parts), found, detector.threshold_, trained)
    return TopRows(rows, best, explanation, found, by_kind)


def evaluate_file(
    detector: AnomalyDetector,
    file: TableFile,
    label: LabelColumn,
    on_batch: OnBatch = _no_news,
) -> Evaluation:
    """Compare scores with labels."""
    labels, parts = FileLabels(label, file), []
    for batch, _, _, scores in scored_batches(detector, file, on_batch):
        labels.add(batch)
        parts.append(scores)
    found = labels.read()
    with naming(file.name):
        trained = detector.summary_.labelled_kinds
        return evaluate(np.concatenate(parts), found, detector.threshold_, trained)
