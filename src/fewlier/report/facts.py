"""The facts on a page, gathered in one pass over a file of any size."""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, final

import numpy as np
import pyarrow as pa

from fewlier.decision.calibration import Calibration
from fewlier.decision.drift import Drift
from fewlier.decision.evaluation import KindEvaluation, evaluate_kinds
from fewlier.detector import AnomalyDetector
from fewlier.files.reading import Batch, TableFile
from fewlier.fitting.summary import Summary
from fewlier.process.progress import Progress
from fewlier.reasons.explanation import Explanation
from fewlier.reasons.reason import Reason
from fewlier.report.sketches import Sketch
from fewlier.scoring.batches import Tally
from fewlier.scoring.files import FileLabels, explain_batches
from fewlier.scoring.scored import N_REASONS
from fewlier.table.arrays import Bools, Floats
from fewlier.table.label_column import LabelColumn
from fewlier.table.labels import ANOMALY, NORMAL, Labels

N_ROWS = 200  # the highest-scored rows on a page
N_FLAGGED = 500  # rows above the threshold, drawn at random, that show which columns matter
N_OTHERS = 2  # columns unknown to the model, such as an id, that are shown with each row


class RowFacts(NamedTuple):
    """A row: its number in the file, the cells of other columns, its score, its label, and why.

    Each reason comes with the place of its value in the sketch of its column; None if missing.
    """

    row: int
    others: tuple[str, ...]
    score: float
    p_value: float
    label: str
    kind: str
    reasons: tuple[tuple[Reason, float | None], ...]


@final
@dataclass(frozen=True, eq=False)
class Facts:
    """What a page says about a table.

    Attributes
    ----------
    source, model : str
        Names of the table and of the model.
    made : datetime
        When the page was made.
    detector : AnomalyDetector
        The model.
    scores : array (n,)
        Scores of all rows.
    labels : Labels or None
        Labels of all rows, where known.
    by_kind : tuple of KindEvaluation
        Scores of each kind of anomaly against normal rows, where labels name kinds.
    others : tuple of str
        Columns of the table, unknown to the model, that are shown with each row.
    rows : tuple of RowFacts
        The highest-scored rows, the highest first.
    sketches : dict of str to Sketch
        Training normals in each column that is a reason for one of these rows.
    flagged : Explanation
        Some rows above the threshold, or the highest-scored rows if none is above it.
    drift : Drift
        Whether the rows look like the training normals.
    n_impossible : dict of str to int
        Number of impossible values, by column.
    """

    source: str
    model: str
    made: datetime
    detector: AnomalyDetector
    scores: Floats
    labels: Labels | None
    by_kind: tuple[KindEvaluation, ...]
    others: tuple[str, ...]
    rows: tuple[RowFacts, ...]
    sketches: dict[str, Sketch]
    flagged: Explanation
    drift: Drift
    n_impossible: dict[str, int]

    @property
    def summary(self) -> Summary:
        """What the fit did."""
        summary: Summary = self.detector.summary_
        return summary

    @property
    def calibration(self) -> Calibration:
        """What the scores mean."""
        calibration: Calibration = self.detector.model_.calibration
        return calibration

    @property
    def is_above(self) -> Bools:
        """Which rows score above the threshold."""
        return np.asarray(self.scores > self.calibration.threshold)

    @property
    def has_both_labels(self) -> bool:
        """Whether scores can be compared with labels, if need be with unlabelled rows."""
        codes = () if self.labels is None else self.labels.compared
        return NORMAL in codes and ANOMALY in codes


@final
class _Kept:
    """The rows of a file with the smallest keys, as they were read, and why they scored so."""

    rows: pa.Table
    why: Explanation

    def __init__(self, most: int) -> None:
        self.most = most
        self.keys = np.empty(0)
        self.numbers = np.empty(0, dtype=np.int64)

    def offer(self, keys: Floats, batch: Batch, why: Explanation) -> None:
        """Keep the rows of a batch with small enough keys; never one with an infinite key."""
        order = np.argsort(keys, kind="stable")[: self.most]
        order = order[np.isfinite(keys[order])]
        rows, why = batch.rows.take(order), why.take(order)
        if len(self.numbers):
            rows, why = pa.concat_tables([self.rows, rows]), self.why.followed_by(why)
        self.keys = np.concatenate([self.keys, keys[order]])
        self.numbers = np.concatenate([self.numbers, batch.start + order])
        kept = np.argsort(self.keys, kind="stable")[: self.most]
        self.keys, self.numbers = self.keys[kept], self.numbers[kept]
        self.rows, self.why = rows.take(kept), why.take(kept)

    def cells(self, names: tuple[str, ...]) -> list[tuple[str, ...]]:
        """Return what the kept rows have in some columns, as text."""
        rows = self.rows.select(list(names)).to_pylist()
        return [tuple("" if row[n] is None else str(row[n]) for n in names) for row in rows]


def gather(
    detector: AnomalyDetector,
    file: TableFile,
    label: LabelColumn | None,
    *,
    source: str,
    model: str,
    progress: Progress,
) -> Facts:
    """Score a file. Of all rows only scores and labels are kept, 13 bytes each.

    The page calls the table `source` and the model `model`.
    """
    reader = label and FileLabels(label, file)
    rng, tally = np.random.default_rng(0), Tally(detector.model_)
    top, flagged = _Kept(N_ROWS), _Kept(N_FLAGGED)
    parts = []
    for batch, why in tally.count(explain_batches(detector.model_, file, progress)):
        is_above = why.score > detector.threshold_
        top.offer(-why.score, batch, why)
        flagged.offer(np.where(is_above, rng.random(len(is_above)), np.inf), batch, why)
        parts.append(why.score)
        if reader:
            reader.add(batch)
    scores, labels = np.concatenate(parts), reader and reader.read()
    trained = detector.summary_.labelled_kinds
    used = {"", *detector.model_.encoder.schema.sources, label and label.name}
    others = tuple(name for name in file.columns if name not in used)[:N_OTHERS]
    explanation = top.why
    reasons, sketches = _draw_reasons(detector, explanation)
    p_values = detector.model_.calibration.p_value(scores[top.numbers])
    rows = []
    lines = zip(top.numbers.tolist(), top.cells(others), p_values.tolist(), reasons, strict=True)
    for number, cells, p_value, placed in lines:
        known = {} if labels is None else labels.record(number)
        told = known.get("label") or "", known.get("kind") or ""
        rows.append(RowFacts(number, cells, float(scores[number]), p_value, *told, placed))
    return Facts(
        source=source,
        model=model,
        made=datetime.now().astimezone(),
        detector=detector,
        scores=scores,
        labels=labels,
        by_kind=evaluate_kinds(scores, labels, detector.threshold_, trained) if labels else (),
        others=others,
        rows=tuple(rows),
        sketches=sketches,
        flagged=flagged.why if len(flagged.numbers) else explanation,
        drift=tally.drift,
        n_impossible=tally.n_impossible,
    )


def _draw_reasons(
    detector: AnomalyDetector, explanation: Explanation
) -> tuple[list[tuple[tuple[Reason, float | None], ...]], dict[str, Sketch]]:
    """Return the reasons of each row with the places of their values, and the sketches used."""
    model, encoded = detector.model_, explanation.encoded
    sketches: dict[str, Sketch] = {}
    rows = []
    for i, why in enumerate(explanation.reasons(N_REASONS)):
        placed = []
        for reason in why:
            d, name = explanation.columns.index(reason.column), reason.column
            if name not in sketches:
                sketches[name] = Sketch.from_reference(model.encoder, model.reference, d)
            target, is_impossible = float(encoded.targets[i, d]), bool(encoded.impossible[i, d])
            place = sketches[name].place(target, is_impossible) if encoded.observed[i, d] else None
            placed.append((reason, place))
        rows.append(tuple(placed))
    return rows, sketches
