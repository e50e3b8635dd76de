"""`ScoreDisplay`: how the scores lie about the threshold."""

from typing import TYPE_CHECKING, Any, final

import numpy as np
import numpy.typing as npt

from fewlier.plot.base import axes_or_new
from fewlier.table.labels import ANOMALY, NORMAL, UNLABELLED, read_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from fewlier.detector import AnomalyDetector

Floats = npt.NDArray[np.float64]

N_BINS = 48
# A few far rows must not squeeze all others into one bar.
SHOWN_SHARE = 0.99
_GROUPS = {NORMAL: "normal", ANOMALY: "anomalous", UNLABELLED: "unlabelled"}
_HATCHES = {NORMAL: None, ANOMALY: "////", UNLABELLED: "...."}


@final
class ScoreDisplay:
    """Histogram of anomaly scores, with the threshold; counts are on a logarithmic axis.

    Parameters
    ----------
    scores : array (n,)
        Anomaly scores.
    threshold : float
        Rows that score above are anomalies.
    unit : str
        Unit of both.
    labels : array (n,) or None
        1 anomaly, 0 normal, -1 unlabelled, where known.

    Attributes
    ----------
    edges_ : array (bins + 1,)
        Edges of the bins. The last bin also holds the rows beyond it.
    counts_ : dict of str to array (bins,)
        Rows in each bin: "normal", "anomalous" and "unlabelled", or "all".
    ax_, figure_, threshold_line_
        What was drawn.
    """

    ax_: "Axes"
    figure_: "Figure"
    threshold_line_: "Line2D"

    def __init__(
        self,
        *,
        scores: Floats,
        threshold: float,
        unit: str,
        labels: npt.NDArray[np.int8] | None = None,
    ) -> None:
        self.scores, self.threshold, self.unit, self.labels = scores, threshold, unit, labels
        self.edges_ = _edges(scores, threshold)
        groups = {"all": scores}
        if labels is not None:
            groups = {name: scores[labels == label] for label, name in _GROUPS.items()}
        last = self.edges_[-1]
        self.counts_ = {
            name: np.histogram(np.minimum(part, last), self.edges_)[0]
            for name, part in groups.items()
            if len(part)
        }

    @classmethod
    def from_detector(
        cls, detector: "AnomalyDetector", X: object, y: object = None, *, ax: "Axes | None" = None
    ) -> "ScoreDisplay":
        """Score some rows, and draw; with labels each kind is drawn by itself."""
        scores = detector.anomaly_score(X)
        labels = None if y is None else read_labels(y, len(scores))
        threshold, unit = detector.threshold_, detector.score_unit_
        return cls(scores=scores, threshold=threshold, unit=unit, labels=labels).plot(ax)

    def plot(self, ax: "Axes | None" = None) -> "ScoreDisplay":
        """Draw on some axes, or on new ones."""
        ax = self.ax_ = axes_or_new(ax)
        self.figure_ = ax.get_figure(root=True)  # type: ignore[assignment] # axes have one
        styles = {name: (i, _HATCHES[label]) for i, (label, name) in enumerate(_GROUPS.items())}
        for name, counts in self.counts_.items():
            number, hatch = styles.get(name, (0, None))
            colour = f"C{number}"
            fill: Any = "none" if hatch else (colour, 0.25)
            ax.stairs(
                counts,
                self.edges_,
                fill=True,
                facecolor=fill,
                edgecolor=colour,
                linewidth=1.2,
                hatch=hatch,
                label=name,
            )
        label = f"threshold {self.threshold:.4g}"
        self.threshold_line_ = ax.axvline(self.threshold, color="C3", linestyle="--", label=label)
        ax.set(xlabel=f"anomaly score ({self.unit}){self._beyond()}", ylabel="rows", yscale="log")
        ax.set_ylim(bottom=0.7)
        ax.yaxis.set_major_formatter("{x:,.0f}")
        ax.set_xlim(self.edges_[0], self.edges_[-1])
        ax.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=4, frameon=False, borderpad=0)
        return self

    def _beyond(self) -> str:
        n = int((self.scores > self.edges_[-1]).sum())
        return f"\nlast bar: {n} rows beyond, up to {self.scores.max():.4g}" if n else ""


def _edges(scores: Floats, threshold: float) -> Floats:
    low, high = float(scores.min()), float(scores.max())
    room = threshold + 0.3 * max(threshold - low, 0.0)
    last = min(max(float(np.quantile(scores, SHOWN_SHARE)), room), max(high, threshold))
    width = max(last - low, 1e-9 * max(abs(low), 1.0))
    return np.linspace(low, low + width, N_BINS + 1)
