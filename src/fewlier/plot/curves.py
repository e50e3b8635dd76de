"""`CurveDisplay`: ROC and precision-recall, with how far chance may have moved them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, final

import numpy as np
import numpy.typing as npt
from sklearn.metrics import average_precision_score, roc_auc_score

from fewlier.errors import UserError
from fewlier.plot.base import axes_or_new
from fewlier.table.labels import ANOMALY, NORMAL, read_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fewlier.detector import AnomalyDetector

Floats = npt.NDArray[np.float64]
CurveKind = Literal["roc", "precision_recall"]

LEVEL = 0.95
N_RESAMPLES = 500
MAX_STEPS = 1000
"""Scores of each label at which a curve is taken; a band over more would look the same."""
_SEED = 0
_GRID = np.linspace(0, 1, 201)
_NAMES = {
    "roc": ("share of normal rows above (false alarms)", "share of anomalies above (recall)"),
    "precision_recall": ("share of anomalies above (recall)", "anomalies among rows above"),
}


@final
@dataclass(frozen=True, eq=False)
class _Shares:
    """Shares of normals and anomalies above thresholds that fall along the last axis."""

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
        before = np.diff(self.normal, prepend=0) / 2  # ties count half
        return np.asarray((steps * (1 - self.normal + before)).sum(-1))

    def curve(self, kind: CurveKind) -> tuple[Floats, Floats]:
        """Return x and y."""
        if kind == "roc":
            return self.normal, self.anomaly
        return self.anomaly, self.precision


@final
class CurveDisplay:
    """A ROC or precision-recall curve with a pointwise band of 95 %.

    The band, and the interval of the area, are quantiles of a Bayesian bootstrap: rows of each
    label get random weights (Dirichlet), and so does half a row of each label above all scores
    and half a row below. Without these two, scores that separate a handful of anomalies would
    seem beyond doubt; with them, intervals of shares are those of Jeffreys.

    Parameters
    ----------
    kind : {"roc", "precision_recall"}
        Which curve.
    x, y : array
        The curve.
    grid, lower, upper : array (g,)
        The band.
    area, area_interval : float, (float, float)
        AUC or average precision, and its interval.
    point : (float, float) or None
        Where the threshold lies on the curve.
    chance : float
        Share of anomalies, the precision of a random order.

    Attributes
    ----------
    ax_, figure_
        What was drawn.
    """

    ax_: "Axes"
    figure_: "Figure"

    def __init__(  # noqa: PLR0913 - the data of the figure
        self,
        *,
        kind: CurveKind,
        x: Floats,
        y: Floats,
        grid: Floats,
        lower: Floats,
        upper: Floats,
        area: float,
        area_interval: tuple[float, float],
        chance: float,
        point: tuple[float, float] | None = None,
    ) -> None:
        self.kind, self.x, self.y = kind, x, y
        self.grid, self.lower, self.upper = grid, lower, upper
        self.area, self.area_interval = area, area_interval
        self.chance, self.point = chance, point

    @classmethod
    def from_detector(
        cls,
        detector: "AnomalyDetector",
        X: object,
        y: object,
        *,
        kind: CurveKind = "roc",
        ax: "Axes | None" = None,
    ) -> "CurveDisplay":
        """Score labelled rows, and draw; unlabelled rows are left out."""
        scores = detector.anomaly_score(X)
        labels = read_labels(y, len(scores))
        return cls.from_scores(scores, labels, kind=kind, threshold=detector.threshold_).plot(ax)

    @classmethod
    def from_scores(
        cls,
        scores: Floats,
        labels: npt.NDArray[np.int8],
        *,
        kind: CurveKind,
        threshold: float | None = None,
    ) -> "CurveDisplay":
        """Compare scores with labels: 1 anomaly, 0 normal, -1 unlabelled and left out."""
        normal, anomaly = np.sort(scores[labels == NORMAL]), np.sort(scores[labels == ANOMALY])
        if not len(normal) or not len(anomaly):
            raise UserError(
                f"A curve must have rows of both labels; got {len(normal)} normal and "
                f"{len(anomaly)} anomalous. Label some of each."
            )
        chance = len(anomaly) / (len(normal) + len(anomaly))
        steps = np.unique(np.concatenate([_thinned(normal), _thinned(anomaly)]))[::-1]
        counts = _at_least(normal, steps), _at_least(anomaly, steps)
        found = _Shares(counts[0] / len(normal), counts[1] / len(anomaly), chance)
        x, y = found.curve(kind)
        lower, upper, interval = _band(*counts, chance, kind)
        area = _area(normal, anomaly, kind)
        return cls(
            kind=kind,
            x=np.append(0, x),
            y=np.append(0 if kind == "roc" else y[0], y),
            grid=_GRID,
            lower=lower,
            upper=upper,
            area=area,
            area_interval=(min(interval[0], area), max(interval[1], area)),
            chance=chance,
            point=None if threshold is None else _point(normal, anomaly, threshold, kind),
        )

    def plot(self, ax: "Axes | None" = None) -> "CurveDisplay":
        """Draw on some axes, or on new ones."""
        ax = self.ax_ = axes_or_new(ax)
        self.figure_ = ax.get_figure(root=True)  # type: ignore[assignment] # axes have one
        xlabel, ylabel = _NAMES[self.kind]
        area = "AUC" if self.kind == "roc" else "average precision"
        low, high = self.area_interval
        ax.fill_between(
            self.grid, self.lower, self.upper, color="C0", alpha=0.2, linewidth=0, label="95 % band"
        )
        # Between scores a precision-recall curve keeps the precision that comes with more recall.
        style = "default" if self.kind == "roc" else "steps-pre"
        label = f"{area} {self.area:.3f} ({low:.3f} to {high:.3f})"
        ax.plot(self.x, self.y, color="C0", drawstyle=style, label=label)
        by_chance = [0, 1] if self.kind == "roc" else [self.chance, self.chance]
        ax.plot([0, 1], by_chance, color="C2", linestyle=":", label="random order")
        if self.point is not None:
            ax.plot(*self.point, color="C3", marker="D", linestyle="", label="at the threshold")
        ax.set(xlabel=xlabel, ylabel=ylabel, xlim=(-0.01, 1.01), ylim=(-0.01, 1.03))
        ax.legend(loc="lower right" if self.kind == "roc" else "lower left", frameon=False)
        return self


def _thinned(ascending: Floats) -> Floats:
    distinct = np.unique(ascending)
    places = np.linspace(0, len(distinct) - 1, min(len(distinct), MAX_STEPS))
    return np.take(distinct, places.round().astype(int))


def _at_least(ascending: Floats, steps: Floats) -> Floats:
    """Count the scores at or above each step."""
    found: Floats = len(ascending) - np.searchsorted(ascending, steps, side="left").astype(float)
    return found


def _area(normal: Floats, anomaly: Floats, kind: CurveKind) -> float:
    truth = np.repeat([0, 1], [len(normal), len(anomaly)])
    metric = roc_auc_score if kind == "roc" else average_precision_score
    return float(metric(truth, np.concatenate([normal, anomaly])))


def _point(
    normal: Floats, anomaly: Floats, threshold: float, kind: CurveKind
) -> tuple[float, float] | None:
    """Return where a threshold lies on the curve; above all rows there is no precision."""
    alarms, hits = (normal > threshold).sum(), (anomaly > threshold).sum()
    if kind == "roc":
        return float(alarms / len(normal)), float(hits / len(anomaly))
    return (float(hits / len(anomaly)), float(hits / (hits + alarms))) if hits + alarms else None


def _band(
    normal: Floats, anomaly: Floats, prevalence: float, kind: CurveKind
) -> tuple[Floats, Floats, tuple[float, float]]:
    """Return the band on the grid, and the interval of the area, from resampled weights.

    `normal` and `anomaly` count the rows at or above each step, of falling scores.
    """
    rng = np.random.default_rng(_SEED)
    drawn = _Shares(_resampled(normal, rng), _resampled(anomaly, rng), prevalence)
    lines = zip(*drawn.curve(kind), strict=True)
    on_grid = np.stack([np.interp(_GRID, x, y) for x, y in lines])
    ends = (1 - LEVEL) / 2, (1 + LEVEL) / 2
    lower, upper = np.quantile(on_grid, ends, axis=0)
    low, high = np.quantile(drawn.area(kind), ends)
    return lower, upper, (float(low), float(high))


def _resampled(counts: Floats, rng: np.random.Generator) -> Floats:
    """Draw shares of rows above each step, and above none and all of them."""
    sizes = np.concatenate([[0.5], np.diff(counts, prepend=0), [0.5]])
    weights = rng.standard_gamma(sizes, (N_RESAMPLES, len(sizes)))
    shares: Floats = np.cumsum(weights, axis=1)
    return shares / shares[:, -1:]
