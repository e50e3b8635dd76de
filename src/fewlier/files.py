"""A detector on data files: fit, score, explain, evaluate; rows pass through in batches."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sklearn.metrics import average_precision_score, roc_auc_score

from fewlier.calibration import Calibration, check_share
from fewlier.detector import AnomalyDetector
from fewlier.drift import Drift
from fewlier.errors import UserError
from fewlier.explanation import Explanation, explain
from fewlier.model import FittedModel
from fewlier.table import Encoded, Table
from fewlier.table.columns import listed
from fewlier.table.labels import ANOMALY, NORMAL, UNLABELLED, label_values, read_labels
from fewlier.table.reading import Batch, TableFile, naming
from fewlier.table.waiting import waiting
from fewlier.table.writing import Write
from fewlier.training import OnEpoch, no_news

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


@final
@dataclass(frozen=True)
class LabelColumn:
    """The column that holds the labels, and the value in it that means anomaly, if it is text."""

    name: str
    anomaly: str | None = None

    def check(self, file: TableFile) -> None:
        """Refuse a file without this column."""
        if self.name not in file.columns:
            raise UserError(
                f"{file.name}: the label column must be among its columns; got {self.name!r}. "
                f"{_choices(self.name, file.columns)}"
            )

    def values(self, batch: Batch) -> Floats:
        """Return the labels of a batch as numbers, NaN where there is none."""
        with naming(batch.file, batch.start):
            return label_values(self.name, batch.rows[self.name].to_pylist(), self.anomaly)

    def read(self, values: Floats, file: TableFile) -> npt.NDArray[np.int8]:
        """Return the labels of a whole file."""
        with naming(file.name):
            if self.anomaly is not None and not (values == 1).any():
                raise UserError(
                    f"label column {self.name!r} must hold the value that means anomaly; "
                    f"{self.anomaly!r} is not in it. Give another value to --anomaly."
                )
            return read_labels(values, len(values))


def read_training_rows(
    file: TableFile,
    label: LabelColumn | None,
    ignore: Sequence[str] = (),
    declared: Mapping[str, str] | None = None,
) -> tuple[pa.Table, npt.NDArray[np.int8] | None]:
    """Return the features and labels of a file.

    Features are all columns but the label, those to ignore, and one without a name, such as the
    index that pandas writes.
    """
    if label is not None:
        label.check(file)
    unknown = [name for name in ignore if name not in file.columns]
    if unknown:
        raise UserError(
            f"{file.name}: columns to ignore must be among its columns; got {listed(unknown)}. "
            f"{_choices(unknown[0], file.columns)}"
        )
    left_out = {"", *ignore, *([label.name] if label else [])}
    features = [name for name in file.columns if name not in left_out]
    if not features:
        raise UserError(f"{file.name}: a table must have a column to learn from; none is left.")
    batch = file.whole()
    labels = None if label is None else label.read(label.values(batch), file)
    with naming(file.name):
        return batch.training_rows(features, declared or {}), labels


def _choices(name: str, columns: Sequence[str]) -> str:
    close = get_close_matches(name, columns, n=1)
    return f"Did you mean {close[0]!r}?" if close else f"Choose from {listed(columns)}."


def fit_file(
    detector: AnomalyDetector,
    file: TableFile,
    label: LabelColumn | None,
    *,
    ignore: Sequence[str] = (),
    validation: TableFile | None = None,
    on_epoch: OnEpoch = no_news,
) -> AnomalyDetector:
    """Fit a detector to the rows of a file; without a label column all rows are unlabelled."""
    columns = detector.columns
    declared = columns if isinstance(columns, Mapping) else None
    rows, labels = read_training_rows(file, label, ignore, declared)
    held_back = None
    if validation is not None:
        held_back = read_training_rows(validation, label, ignore, declared)
    # Either may be at fault.
    with naming(file.name if validation is None else f"{file.name}, {validation.name}"):
        return detector.fit(rows, labels, validation=held_back, on_epoch=on_epoch)


def update_file(
    detector: AnomalyDetector, file: TableFile, label: LabelColumn, on_epoch: OnEpoch = no_news
) -> AnomalyDetector:
    """Let a detector learn from the labelled rows of a file, which may have further columns."""
    label.check(file)
    batch = file.whole()
    labels = label.read(label.values(batch), file)
    schema = detector.model_.encoder.schema
    table = batch.table(schema)
    with naming(file.name):
        return detector.update(pa.table(table.cells), labels, on_epoch=on_epoch)


@final
@dataclass(frozen=True)
class ScoreReport:
    """What scoring a file came to.

    `outside` counts, by column, the cells that training never saw the like of: a category never
    met, a negative count. `passed_through` names the columns that the model does not know.
    `threshold` is the model's own, or that of the file, infinite where no row can be above it.
    """

    n_rows: int
    n_above_threshold: int
    threshold: float
    passed_through: tuple[str, ...]
    outside: dict[str, int]
    drift: Drift


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
            again = stack.enter_context(waiting((batch, scores) for batch, _, scores in scored))
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
    passed_through = tuple(name for name in file.columns if name not in schema.names)
    return ScoreReport(tally.n_rows, n_above, threshold, passed_through, tally.outside, tally.drift)


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
        self._outside = np.zeros(len(self._names), dtype=np.int64)

    def counted(
        self, scored: Iterator[tuple[Batch, Table, Encoded, Floats]]
    ) -> Iterator[tuple[Batch, Table, Floats]]:
        """Pass rows on and count them."""
        for batch, table, encoded, scores in scored:
            self._ranks += self._calibration.counts(scores)
            self._outside += encoded.outside.sum(0)
            for total, new in zip(self._cells, self._reference.count(encoded), strict=True):
                total += new
            yield batch, table, scores

    @property
    def n_rows(self) -> int:
        """Rows seen."""
        return int(self._ranks.sum())

    @property
    def outside(self) -> dict[str, int]:
        """Cells that training never saw the like of, by column."""
        return {name: int(n) for name, n in zip(self._names, self._outside, strict=True) if n}

    @property
    def drift(self) -> Drift:
        """How the rows seen differ from the training normals."""
        return self._model.drift(self._ranks, self._cells)

    def threshold(self, fdr: float) -> float:
        """Return the threshold that keeps a false-discovery rate among the rows seen."""
        return self._calibration.at_discovery_rate(fdr, self._ranks).threshold


def _check_free(file: TableFile) -> None:
    taken = [name for name in ADDED if name in file.columns]
    if taken:
        raise UserError(
            f"{file.name}: columns that scoring adds must not be there yet; got {listed(taken)}. "
            "Score the table from before, or rename them."
        )


def scored_batches(
    detector: AnomalyDetector, file: TableFile, on_batch: OnBatch
) -> Iterator[tuple[Batch, Table, Encoded, Floats]]:
    """Yield the batches of a file with their scores."""
    model = detector.model_
    for batch in file.batches():
        table = batch.table(model.encoder.schema)
        encoded = model.encoder.encode(table)
        yield batch, table, encoded, model.score(encoded)
        on_batch(file.share_read())


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
    """The highest-scored rows of a file, the highest first: their numbers, scores, and why."""

    rows: npt.NDArray[np.int64]
    scores: Floats
    explanation: Explanation

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
                "reasons": [reason._asdict() for reason in reasons[i]],
            }
            for i, row in enumerate(self.rows)
        ]


def explain_file(
    detector: AnomalyDetector,
    file: TableFile,
    n_rows: int,
    on_batch: OnBatch = _no_news,
) -> TopRows:
    """Explain the highest-scored rows of a file."""
    best = np.empty(0)
    rows = np.empty(0, dtype=np.int64)
    table = Table({})
    for batch, part, _, scores in scored_batches(detector, file, on_batch):
        table = table.followed_by(part) if len(rows) else part
        best = np.concatenate([best, scores])
        rows = np.concatenate([rows, batch.start + np.arange(len(scores))])
        kept = np.argsort(-best, kind="stable")[:n_rows]
        best, rows, table = best[kept], rows[kept], table.take(kept)
    return TopRows(rows, best, explain(detector.model_, table, detector.score_unit_))


@final
@dataclass(frozen=True)
class Evaluation:
    """How well the scores of labelled rows tell anomalies from normal rows.

    `auc` and `average_precision` judge the ranking; `precision`, `recall` and `false_alarm_rate`
    the threshold. Unlabelled rows are left out.
    """

    n_normal: int
    n_anomaly: int
    n_unlabelled: int
    auc: float
    average_precision: float
    threshold: float
    precision: float | None
    recall: float
    false_alarm_rate: float


def evaluate_file(
    detector: AnomalyDetector,
    file: TableFile,
    label: LabelColumn,
    on_batch: OnBatch = _no_news,
) -> Evaluation:
    """Compare scores with labels."""
    label.check(file)
    parts = [
        (s, label.values(batch)) for batch, _, _, s in scored_batches(detector, file, on_batch)
    ]
    scores, values = (np.concatenate(part) for part in zip(*parts, strict=True))
    labels = label.read(values, file)
    normal, anomaly = scores[labels == NORMAL], scores[labels == ANOMALY]
    if not len(normal) or not len(anomaly):
        raise UserError(
            f"{file.name}: an evaluation needs rows of both labels; got {len(normal)} normal and "
            f"{len(anomaly)} anomalous. Label some of each."
        )
    truth, judged = labels[labels != UNLABELLED], scores[labels != UNLABELLED]
    alarms, hits = int((normal > detector.threshold_).sum()), (anomaly > detector.threshold_).sum()
    return Evaluation(
        len(normal),
        len(anomaly),
        int((labels == UNLABELLED).sum()),
        float(roc_auc_score(truth, judged)),
        float(average_precision_score(truth, judged)),
        detector.threshold_,
        float(hits / (hits + alarms)) if hits + alarms else None,
        float(hits / len(anomaly)),
        alarms / len(normal),
    )
