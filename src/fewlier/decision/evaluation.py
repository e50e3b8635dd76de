"""How well scores separate labelled anomalies from normal rows, overall and by kind."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score

from fewlier.errors import UserError
from fewlier.table.arrays import Floats
from fewlier.table.labels import ANOMALY, NORMAL, UNLABELLED, Labels

MIN_ROWS_OF_KIND = 10
"""Fewest rows of a kind whose figures are not called rough."""


@final
@dataclass(frozen=True)
class KindEvaluation:
    """One kind of anomaly against all normal rows.

    `n_in_training` counts the rows of this kind that were labelled in training; None if the model
    was fitted to labels without kinds.
    """

    kind: str
    n_rows: int
    auc: float
    recall: float
    is_few: bool
    n_in_training: int | None


@final
@dataclass(frozen=True)
class Evaluation:
    """How well scores separate labelled anomalies from normal rows.

    `auc` and `average_precision` judge the ranking; `precision`, `recall` and `false_alarm_rate`
    judge the threshold. Unlabelled rows are left out. If no row is labelled normal, they stand in
    for the normal rows, and `compared_with` says so; anomalies hidden among them then count as
    normal, so the true figures are probably better.
    """

    n_normal: int
    n_anomaly: int
    n_unlabelled: int
    compared_with: str
    auc: float
    average_precision: float
    threshold: float
    precision: float | None
    recall: float
    false_alarm_rate: float
    by_kind: tuple[KindEvaluation, ...]


def evaluate(
    scores: Floats, labels: Labels, threshold: float, in_training: Mapping[str, int] | None = None
) -> Evaluation:
    """Compare the scores of n rows with their labels.

    `in_training` counts the anomalies of each kind that were labelled in training.

    Examples
    --------
    >>> import numpy as np
    >>> from fewlier.decision.evaluation import evaluate
    >>> from fewlier.table.label_column import LabelColumn
    >>> column = LabelColumn("status", normal=("fine",))
    >>> labels = column.read(["fine", "fine", "fraud", "fraud", "slip", None])
    >>> found = evaluate(np.array([0.1, 0.4, 2.5, 3.0, 1.9, 0.2]), labels, threshold=2.0)
    >>> found.auc, round(found.recall, 2), found.false_alarm_rate, found.n_unlabelled
    (1.0, 0.67, 0.0, 1)
    >>> {kind.kind: kind.recall for kind in found.by_kind}
    {'fraud': 1.0, 'slip': 0.0}
    """
    codes = labels.compared
    normal, anomaly = scores[codes == NORMAL], scores[codes == ANOMALY]
    counts = labels.counts
    if not len(normal) or not len(anomaly):
        raise UserError(
            "an evaluation needs rows labelled anomalous, and normal or unlabelled ones to compare "
            f"them with; got {len(anomaly)} anomalous, {counts.n_normal} normal and "
            f"{counts.n_unlabelled} unlabelled. Label some of each."
        )
    judged = codes != UNLABELLED
    alarms, hits = int((normal > threshold).sum()), int((anomaly > threshold).sum())
    return Evaluation(
        n_normal=counts.n_normal,
        n_anomaly=len(anomaly),
        n_unlabelled=counts.n_unlabelled,
        compared_with="normal" if labels.has_normals else "unlabelled",
        auc=float(roc_auc_score(codes[judged], scores[judged])),
        average_precision=float(average_precision_score(codes[judged], scores[judged])),
        threshold=threshold,
        precision=hits / (hits + alarms) if hits + alarms else None,
        recall=hits / len(anomaly),
        false_alarm_rate=alarms / len(normal),
        by_kind=evaluate_kinds(scores, labels, threshold, in_training),
    )


def evaluate_kinds(
    scores: Floats, labels: Labels, threshold: float, in_training: Mapping[str, int] | None = None
) -> tuple[KindEvaluation, ...]:
    """Compare each kind of anomaly with all normal rows; return nothing without kinds or normals.

    AUC = mean over the rows of the kind of P(normal < score) + P(normal = score) / 2.
    """
    normal = np.sort(scores[labels.compared == NORMAL])
    if not len(normal) or labels.kind_of is None:
        return ()
    trained = {kind.casefold(): n for kind, n in (in_training or {}).items()}
    found = []
    for place, kind in enumerate(labels.kinds):
        own = scores[labels.kind_of == place]
        below = np.searchsorted(normal, own, "left") + np.searchsorted(normal, own, "right")
        found.append(
            KindEvaluation(
                kind,
                len(own),
                auc=float(below.mean() / (2 * len(normal))),
                recall=float((own > threshold).mean()),
                is_few=len(own) < MIN_ROWS_OF_KIND,
                n_in_training=trained.get(kind.casefold(), 0) if trained else None,
            )
        )
    return tuple(found)


def telling(kinds: tuple[KindEvaluation, ...]) -> tuple[KindEvaluation, ...]:
    """Return the kinds; none where there is one, of which the figures of all rows say the same."""
    return () if len(kinds) == 1 and kinds[0].n_in_training != 0 else kinds
