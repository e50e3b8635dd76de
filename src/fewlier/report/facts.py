"""The facts on a page, gathered in one pass over a file of any size."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, final

import numpy as np
import pyarrow as pa

from fewlier.decision.calibration import Calibration
from fewlier.decision.drift import Drift
from fewlier.decision.evaluation import KindEvaluation, evaluate_kinds
from fewlier.decision.threshold import false_alarm_interval
from fewlier.detector import AnomalyDetector
from fewlier.files.reading import TableFile
from fewlier.files.reservoir import Reservoir
from fewlier.fitting.summary import Summary
from fewlier.process.progress import Progress
from fewlier.reasons.explanation import N_REASONS, Explanation
from fewlier.reasons.reason import Reason
from fewlier.report.sketches import Sketch
from fewlier.scoring.batches import Tally
from fewlier.scoring.files import FileLabels, RowsOfFile, scored_batches
from fewlier.table.arrays import Bools, Floats, Ints
from fewlier.table.label_column import LabelColumn
from fewlier.table.labels import ANOMALY, NORMAL, Labels

N_ROWS = 200
"""Highest-scored rows on a page."""
N_FLAGGED = 500
"""Rows above the threshold, drawn at random, that show which columns matter."""
N_OTHERS = 2
"""Columns unknown to the model, such as an id, that are shown with each row."""
N_QUANTILES, N_HIGHEST = 300, 100
"""Thresholds that the slider stops at: quantiles of all scores, and the highest scores."""


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
    rows : tuple of dict
        The highest-scored rows, the highest first: `RowsOfFile.records`, and the texts of `others`.
        Each reason comes with the place of its value in the sketch of its column; None if missing.
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
    rows: tuple[dict[str, Any], ...]
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
        return self.calibration.is_anomaly(self.scores)

    @property
    def has_both_labels(self) -> bool:
        """Whether scores can be compared with labels, if need be with unlabelled rows."""
        codes = () if self.labels is None else self.labels.compared
        return NORMAL in codes and ANOMALY in codes


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
    reader, fitted = label and FileLabels(label, file), detector.model_
    rng, tally, parts = np.random.default_rng(0), Tally.zero(fitted), []
    top, flagged = Reservoir(N_ROWS, RowsOfFile.joined), Reservoir(N_FLAGGED, RowsOfFile.joined)
    batches = reader.passing(file.batches()) if reader else file.batches()
    for batch, scored in scored_batches(fitted, file, batches, progress):
        tally = tally.plus(Tally.of(fitted, batch, scored))
        rows = RowsOfFile.of(batch, scored)
        top.offer(-scored.scores, rows)
        flagged.offer(np.where(scored.is_anomaly, rng.random(len(scored)), np.inf), rows)
        parts.append(scored.scores)
    scores, labels, highest = np.concatenate(parts), reader and reader.read(), top.in_order()
    trained = detector.summary_.labelled_kinds
    used = {"", *fitted.encoder.schema.sources, label and label.name}
    others = tuple(name for name in file.columns if name not in used)[:N_OTHERS]
    reasons, sketches = _draw_reasons(Explanation(highest.scored, fitted))
    lines = zip(highest.records(labels, reasons), _texts(highest.cells, others), strict=True)
    drawn = flagged.in_order() if len(flagged) else highest
    report = tally.report(fitted)
    return Facts(
        source=source,
        model=model,
        made=datetime.now().astimezone(),
        detector=detector,
        scores=scores,
        labels=labels,
        by_kind=evaluate_kinds(scores, labels, detector.threshold_, trained) if labels else (),
        others=others,
        rows=tuple(record | {"others": texts} for record, texts in lines),
        sketches=sketches,
        flagged=Explanation(drawn.scored, fitted),
        drift=report.drift,
        n_impossible=report.n_impossible,
    )


def _texts(cells: pa.Table, names: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return what rows have in some columns, as text."""
    rows = cells.select(list(names)).to_pylist() if names else [{}] * cells.num_rows
    return [tuple("" if row[n] is None else str(row[n]) for n in names) for row in rows]


def _draw_reasons(
    explanation: Explanation,
) -> tuple[list[list[tuple[Reason, float | None]]], dict[str, Sketch]]:
    """Return the reasons of each row with the places of their values, and the sketches used."""
    model, encoded = explanation.model, explanation.scored.encoded
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
        rows.append(placed)
    return rows, sketches


def tabulate_thresholds(facts: Facts) -> dict[str, Any]:
    """Return, as JSON values, ascending thresholds and the number of rows above each.

    They are quantiles of the scores, the highest scores one by one, and the model's own threshold,
    at position `start`. `rate` is the false-alarm rate by the held-out normals; for 95 % of such
    thresholds the true rate is between `rate_low` and `rate_high`.
    """
    scores, own = facts.scores, facts.calibration.threshold
    quantiles = np.quantile(scores, np.linspace(0, 1, N_QUANTILES), method="nearest")
    steps = np.unique(np.concatenate([quantiles, np.sort(scores)[-N_HIGHEST:], [own]]))
    held_out = facts.calibration.normal_scores
    n_above = _count_above(held_out, steps)
    low, high = false_alarm_interval(n_above, len(held_out))
    found: dict[str, Any] = {
        "thresholds": steps.tolist(),
        "start": int(np.searchsorted(steps, own)),
        "above": _count_above(scores, steps).tolist(),
        "rate": ((1 + n_above) / (1 + len(held_out))).tolist(),
        "rate_low": low.tolist(),
        "rate_high": high.tolist(),
        "rows": len(scores),
    }
    if facts.labels is not None:
        for name, label in (("normal", NORMAL), ("anomalous", ANOMALY)):
            labelled = scores[facts.labels.compared == label]
            above = _count_above(labelled, steps).tolist()
            found[name] = {"rows": len(labelled), "above": above}
    return found


def _count_above(scores: Floats, steps: Floats) -> Ints:
    return np.asarray(len(scores) - np.searchsorted(np.sort(scores), steps, side="right"))
