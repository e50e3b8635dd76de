"""What a page tells, gathered in one pass over a file of any size, as plain data."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fewlier.decision.calibration import Calibration
from fewlier.decision.drift import Drift
from fewlier.decision.evaluation import KindEvaluation, evaluate_kinds
from fewlier.detector import AnomalyDetector
from fewlier.files import N_REASONS, VISIBLE, FileLabels, OnBatch, Tally, scored_batches
from fewlier.reasons.explanation import Explanation, Reason, explain
from fewlier.report.sketches import Sketch, sketch_columns
from fewlier.summary import Summary
from fewlier.table.label_column import LabelColumn
from fewlier.table.labels import ANOMALY, NORMAL, Labels
from fewlier.table.reading import Batch, TableFile

Floats = npt.NDArray[np.float64]

N_ROWS = 200
"""Highest-scored rows on a page."""
N_FLAGGED = 500
"""Rows above the threshold, drawn at random, that say which columns matter."""
N_OTHERS = 2
"""Columns that the model does not know, such as an id, shown with each row."""


class RowFacts(NamedTuple):
    """One row: its number in the file, what it got, its label and kind if it has any, and why.

    `places` says where the value of each reason lies in the sketch of its column; None where it
    has none.
    """

    row: int
    others: tuple[str, ...]
    score: float
    p_value: float
    label: str
    kind: str
    reasons: tuple[Reason, ...]
    places: tuple[float | None, ...]


@final
@dataclass(frozen=True, eq=False)
class Facts:
    """What a page tells of a table.

    Attributes
    ----------
    source, model : str
        Names of the table and of the model.
    made : datetime
        When the page was made.
    summary, calibration : Summary, Calibration
        What the fit did, and what its scores mean.
    density, selection : str
        How the model was fitted.
    scores : array (n,)
        Scores of all rows.
    labels : Labels or None
        What is known of all rows.
    by_kind : tuple of KindEvaluation
        Scores of each kind of anomalies against normal rows, where labels name kinds.
    others : tuple of str
        Columns of the table, not of the model, that are shown with each row.
    rows : tuple of RowFacts
        The highest-scored rows, the highest first.
    flagged : Explanation
        Of some rows above the threshold; of the highest-scored where none is.
    drift : Drift
        Whether the rows look like the training normals; None where the model cannot tell.
    n_impossible : dict of str to int
        Cells, by column, that training never saw the like of.
    sketches : dict of str to Sketch
        How training normals lie in each column.
    """

    source: str
    model: str
    made: datetime
    summary: Summary
    calibration: Calibration
    density: str
    selection: str
    scores: Floats
    labels: Labels | None
    by_kind: tuple[KindEvaluation, ...]
    others: tuple[str, ...]
    rows: tuple[RowFacts, ...]
    flagged: Explanation
    drift: Drift
    n_impossible: dict[str, int]
    sketches: dict[str, Sketch]

    @property
    def is_above(self) -> npt.NDArray[np.bool_]:
        """Which rows score above the threshold."""
        above: npt.NDArray[np.bool_] = self.scores > self.calibration.threshold
        return above

    @property
    def has_both_labels(self) -> bool:
        """Whether scores can be compared with labels, if need be with unlabelled rows."""
        codes = () if self.labels is None else self.labels.compared
        return NORMAL in codes and ANOMALY in codes


@final
class _Kept:
    """The rows of a file that have the smallest keys, as they stand in it."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.keys = np.empty(0)
        self.numbers = np.empty(0, dtype=np.int64)
        self.rows: pa.Table | None = None

    def offer(self, keys: Floats, batch: Batch) -> None:
        """Keep those of a batch whose keys are small enough; never one of infinite key."""
        order = np.argsort(keys, kind="stable")[: self.most]
        order = order[np.isfinite(keys[order])]
        rows = batch.rows.take(order)
        self.rows = rows if self.rows is None else pa.concat_tables([self.rows, rows])
        self.keys = np.concatenate([self.keys, keys[order]])
        self.numbers = np.concatenate([self.numbers, batch.start + order])
        kept = np.argsort(self.keys, kind="stable")[: self.most]
        self.keys, self.numbers = self.keys[kept], self.numbers[kept]
        self.rows = self.rows.take(kept)

    def explained(self, detector: AnomalyDetector, file: TableFile) -> Explanation:
        """Explain the kept rows."""
        batch = Batch(file.name, self.rows, 0, file.layout)
        table = batch.table(detector.model_.encoder.schema)
        return explain(detector.model_, table, detector.score_unit_)


def gather(
    detector: AnomalyDetector,
    file: TableFile,
    label: LabelColumn | None,
    *,
    source: str,
    model: str,
    on_batch: OnBatch,
) -> Facts:
    """Score a file; of all rows only scores and labels are held, 13 bytes each.

    `source` and `model` are what to call the table and the model.
    """
    reader = label and FileLabels(label, file)
    fitted, threshold = detector.model_, detector.threshold_
    rng, tally = np.random.default_rng(0), Tally(detector)
    top, flagged = _Kept(N_ROWS), _Kept(N_FLAGGED)
    parts = []
    for batch, _, scores in tally.counted(scored_batches(detector, file, on_batch)):
        top.offer(-scores, batch)
        flagged.offer(np.where(scores > threshold, rng.random(len(scores)), np.inf), batch)
        parts.append(scores)
        if reader:
            reader.add(batch)
    scores, labels = np.concatenate(parts), reader and reader.read()
    trained = detector.summary_.labelled_kinds
    others = _others(detector, file, label)
    explanation = top.explained(detector, file)
    sketches = dict(
        zip(explanation.columns, sketch_columns(fitted.encoder, fitted.reference), strict=True)
    )
    rows = _row_facts(top, explanation, sketches, (scores, labels), others, fitted.calibration)
    return Facts(
        source=source,
        model=model,
        made=datetime.now().astimezone(),
        summary=detector.summary_,
        calibration=fitted.calibration,
        density=detector.density,
        selection=detector.selection,
        scores=scores,
        labels=labels,
        by_kind=evaluate_kinds(scores, labels, threshold, trained) if labels else (),
        others=others,
        rows=tuple(rows),
        flagged=flagged.explained(detector, file) if len(flagged.numbers) else explanation,
        drift=tally.drift,
        n_impossible=tally.n_impossible,
        sketches=sketches,
    )


def _others(
    detector: AnomalyDetector, file: TableFile, label: LabelColumn | None
) -> tuple[str, ...]:
    known = {"", *detector.model_.encoder.schema.sources, *([label.name] if label else [])}
    return tuple(name for name in file.columns if name not in known)[:N_OTHERS]


def _row_facts(
    top: _Kept,
    explanation: Explanation,
    sketches: dict[str, Sketch],
    judged: tuple[Floats, Labels | None],
    others: tuple[str, ...],
    calibration: Calibration,
) -> list[RowFacts]:
    scores, labels = judged
    p_values = calibration.p_value(scores[top.numbers])
    cells: Any = top.rows.select(list(others)).to_pylist() if top.rows is not None else []
    lines = []
    reasons = explanation.tops(n=N_REASONS)
    for i, (number, (first, *more)) in enumerate(zip(top.numbers.tolist(), reasons, strict=True)):
        known = {} if labels is None else labels.record(number)
        shown = (first, *(reason for reason in more if reason.contribution >= VISIBLE))
        lines.append(
            RowFacts(
                number,
                tuple("" if cells[i][name] is None else str(cells[i][name]) for name in others),
                float(scores[number]),
                float(p_values[i]),
                known.get("label") or "",
                known.get("kind") or "",
                shown,
                tuple(_place(reason, explanation, sketches, i) for reason in shown),
            )
        )
    return lines


def _place(
    reason: Reason, explanation: Explanation, sketches: dict[str, Sketch], row: int
) -> float | None:
    """Return where the value of a reason lies in the sketch of its column."""
    d, encoded = explanation.columns.index(reason.column), explanation.encoded
    if not encoded.observed[row, d]:
        return None
    target, is_impossible = float(encoded.targets[row, d]), bool(encoded.impossible[row, d])
    return sketches[reason.column].place(target, is_impossible)
