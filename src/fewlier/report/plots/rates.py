"""`CurveDisplay`: ROC and precision-recall curves with their uncertainty."""

from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score

from fewlier.detector import AnomalyDetector
from fewlier.errors import UserError
from fewlier.report.plots.base import Axes, Display
from fewlier.table.arrays import Codes, Floats
from fewlier.table.labels import ANOMALY, NORMAL, UNLABELLED, read_labels

CurveKind = Literal["roc", "precision_recall"]

LEVEL = 0.95
N_RESAMPLES = 500
MAX_STEPS = 1000
"""Thresholds per label at which a curve is evaluated; more would not change the band visibly."""
_SEED = 0
_AXES = {
    "roc": ("share of normal rows above (false alarms)", "share of anomalies above (recall)"),
    "precision_recall": ("share of anomalies above (recall)", "anomalies among rows above"),
}


@final
@dataclass(frozen=True, eq=False)
class _Shares:
    """Shares of normals and anomalies at or above thresholds, which fall along the last axis."""

    normal: Floats
    anomaly: Floats
    prevalence: float

    @property
    def precision(self) -> Floats:
        """Share of anomalies among the rows above."""
        hits = self.prevalence * self.anomaly
        above = hits + (1 - self.prevalence) * self.normal
        return np.divide(hits, above, out=np.ones_like(hits), where=above > 0)

    def area(self, kind: CurveKind) -> Floats:
        """Return the area under the ROC curve, or the average precision."""
        steps = np.diff(self.anomaly, prepend=0)
        if kind == "precision_recall":
            return np.asarray((steps * self.precision).sum(-1))
        half_step = np.diff(self.normal, prepend=0) / 2  # ties count half
        return np.asarray((steps * (1 - self.normal + half_step)).sum(-1))

    def curve(self, kind: CurveKind) -> tuple[Floats, Floats]:
        """Return x and y."""
        if kind == "roc":
            return self.normal, self.anomaly
        return self.anomaly, self.precision


@final
@dataclass(eq=False)
class CurveDisplay(Display):
    """A ROC or precision-recall curve with a pointwise 95 % band.

    The band and the interval of the area are quantiles of a Bayesian bootstrap: the rows of each
    label get random Dirichlet weights, together with half a row above all scores and half a row
    below. Without these two half rows, scores that separate a handful of anomalies would seem
    certain; with them, the intervals of shares are Jeffreys intervals.

    Parameters
    ----------
    scores : array (n,)
        Anomaly scores.
    labels : array (n,)
        1 anomaly, 0 normal, -1 unlabelled and left out.
    kind : {"roc", "precision_recall"}
        Which curve.
    threshold : float or None
        Where to mark the curve.

    Attributes
    ----------
    x, y : array
        The curve.
    grid, lower, upper : array (g,)
        The band.
    area, area_interval : float, (float, float)
        AUC or average precision, and its interval.
    chance : float
        Share of anomalies: the precision of a random order.
    point : (float, float) or None
        The point of the curve at the threshold; above all rows, precision is undefined.

    Examples
    --------
    >>> import numpy as np
    >>> from fewlier import AnomalyDetector
    >>> from fewlier.report.plots import CurveDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(size=(200, 2)), rng.normal(6, 1, size=(10, 2))])
    >>> y = np.repeat([0, 1], [200, 10])
    >>> detector = AnomalyDetector(random_state=0).fit(X, y)
    >>> display = CurveDisplay.from_detector(detector, X, y)
    >>> round(display.area, 2), display.ax_.get_ylabel()
    (1.0, 'share of anomalies above (recall)')
    >>> display = CurveDisplay.from_detector(detector, X, y, kind="precision_recall")
    >>> low, high = display.area_interval  # 95 %
    >>> low < display.area <= high
    True
    """

    scores: Floats
    labels: Codes
    kind: CurveKind = "roc"
    threshold: float | None = None

    def __post_init__(self) -> None:
        """Compute the curve, its area and both intervals."""
        normal, anomaly = (np.sort(self.scores[self.labels == code]) for code in (NORMAL, ANOMALY))
        if not len(normal) or not len(anomaly):
            raise UserError(
                f"A curve needs rows of both labels; got {len(normal)} normal and "
                f"{len(anomaly)} anomalous. Label some of each."
            )
        self.chance = len(anomaly) / (len(normal) + len(anomaly))
        steps = np.unique(np.concatenate([_thin(normal), _thin(anomaly)]))[::-1]
        counts = _count_from(normal, steps), _count_from(anomaly, steps)
        found = _Shares(counts[0] / len(normal), counts[1] / len(anomaly), self.chance)
        x, y = found.curve(self.kind)
        self.x, self.y = np.append(0, x), np.append(0 if self.kind == "roc" else y[0], y)
        rng = np.random.default_rng(_SEED)
        drawn = _Shares(_resample(counts[0], rng), _resample(counts[1], rng), self.chance)
        self.grid, ends = np.linspace(0, 1, 201), ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
        lines = [np.interp(self.grid, *line) for line in zip(*drawn.curve(self.kind), strict=True)]
        self.lower, self.upper = np.quantile(lines, ends, axis=0)
        low, high = np.quantile(drawn.area(self.kind), ends)
        metric = roc_auc_score if self.kind == "roc" else average_precision_score
        is_labelled = self.labels != UNLABELLED
        self.area = float(metric(self.labels[is_labelled], self.scores[is_labelled]))
        self.area_interval = min(float(low), self.area), max(float(high), self.area)

    @classmethod
    def from_detector(
        cls,
        detector: AnomalyDetector,
        X: object,
        y: object,
        *,
        kind: CurveKind = "roc",
        ax: Axes | None = None,
    ) -> "CurveDisplay":
        """Score labelled rows and draw; unlabelled rows are left out."""
        scores, threshold = detector.anomaly_score(X), detector.threshold_
        labels = read_labels(y, len(scores))
        return cls(scores, labels, kind=kind, threshold=threshold).plot(ax)

    @property
    def point(self) -> tuple[float, float] | None:
        """The point of the curve at the threshold."""
        if self.threshold is None:
            return None
        is_above = self.scores > self.threshold
        alarms, hits = (is_above[self.labels == code] for code in (NORMAL, ANOMALY))
        if self.kind == "roc":
            return float(alarms.mean()), float(hits.mean())
        n_above = alarms.sum() + hits.sum()
        return (float(hits.mean()), float(hits.sum() / n_above)) if n_above else None

    def _draw(self, ax: Axes) -> None:
        is_roc, (low, high) = self.kind == "roc", self.area_interval
        look: Any = {"color": "C0", "alpha": 0.2, "linewidth": 0, "label": "95 % band"}
        ax.fill_between(self.grid, self.lower, self.upper, **look)
        name = "AUC" if is_roc else "average precision"
        # Between scores, precision is that of the higher recall.
        style = "default" if is_roc else "steps-pre"
        label = f"{name} {self.area:.3f} ({low:.3f} to {high:.3f})"
        ax.plot(self.x, self.y, color="C0", drawstyle=style, label=label)
        by_chance = [0, 1] if is_roc else [self.chance, self.chance]
        ax.plot([0, 1], by_chance, color="C2", linestyle=":", label="random order")
        if self.point is not None:
            ax.plot(*self.point, color="C3", marker="D", linestyle="", label="at the threshold")
        xlabel, ylabel = _AXES[self.kind]
        ax.set(xlabel=xlabel, ylabel=ylabel, xlim=(-0.01, 1.01), ylim=(-0.01, 1.03))
        ax.legend(loc="lower right" if is_roc else "lower left", frameon=False)


def _thin(ascending: Floats) -> Floats:
    """Return at most `MAX_STEPS` of the distinct scores, evenly spaced by rank."""
    distinct = np.unique(ascending)
    places = np.linspace(0, len(distinct) - 1, min(len(distinct), MAX_STEPS))
    return np.take(distinct, places.round().astype(int))


def _count_from(ascending: Floats, steps: Floats) -> Floats:
    """Count the scores at or above each step."""
    return np.asarray(len(ascending) - np.searchsorted(ascending, steps), dtype=float)


def _resample(counts: Floats, rng: np.random.Generator) -> Floats:
    """Draw shares of rows above each step, with half a row above and half a row below them all."""
    sizes = np.concatenate([[0.5], np.diff(counts, prepend=0), [0.5]])
    weights = rng.standard_gamma(sizes, (N_RESAMPLES, len(sizes)))
    shares: Floats = np.cumsum(weights, axis=1)
    return shares / shares[:, -1:]
