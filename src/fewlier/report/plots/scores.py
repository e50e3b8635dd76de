"""`ScoreDisplay`: how the scores are spread around the threshold."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from fewlier.detector import AnomalyDetector
from fewlier.report.plots.base import Axes, Display
from fewlier.table.arrays import Codes, Floats, Ints
from fewlier.table.labels import ANOMALY, NORMAL, UNLABELLED, read_labels

N_BINS = 48
# A few extreme rows must not squeeze all others into one bar.
_SHOWN_SHARE = 0.99
_GROUPS = {  # label: name, colour, hatch
    NORMAL: ("normal", "C0", None),
    ANOMALY: ("anomalous", "C1", "////"),
    UNLABELLED: ("unlabelled", "C2", "...."),
}


@final
@dataclass(eq=False, kw_only=True)
class ScoreDisplay(Display):
    """Histogram of anomaly scores with the threshold; counts are on a logarithmic axis.

    Parameters
    ----------
    scores : array (n,)
        Anomaly scores.
    threshold : float
        Rows that score above it are anomalies.
    unit : str
        Unit of both.
    labels : array (n,) or None
        1 anomaly, 0 normal, -1 unlabelled, if known.

    Attributes
    ----------
    edges_ : array (bins + 1,)
        Edges of the bins. The last bin also counts the rows beyond it.
    counts_ : dict of str to array (bins,)
        Rows in each bin: "normal", "anomalous" and "unlabelled", or "all".
    threshold_line_, threshold_text_
        The line at the threshold and its name in the legend, once drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from fewlier import AnomalyDetector
    >>> from fewlier.report.plots import ScoreDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(size=(200, 2)), rng.normal(6, 1, size=(10, 2))])
    >>> y = np.repeat([0, 1], [200, 10])
    >>> detector = AnomalyDetector(random_state=0).fit(X, y)
    >>> display = ScoreDisplay.from_detector(detector, X, y)
    >>> {group: int(counts.sum()) for group, counts in display.counts_.items()}
    {'normal': 200, 'anomalous': 10}
    >>> display.ax_.get_ylabel(), display.unit
    ('rows', 'standard units')
    """

    scores: Floats
    threshold: float
    unit: str
    labels: Codes | None = None

    @classmethod
    def from_detector(
        cls, detector: AnomalyDetector, X: object, y: object = None, *, ax: Axes | None = None
    ) -> "ScoreDisplay":
        """Score rows and draw; with labels, each group has its own histogram."""
        scores = detector.anomaly_score(X)
        labels = None if y is None else read_labels(y, len(scores))
        threshold, unit = detector.threshold_, detector.score_unit_
        return cls(scores=scores, threshold=threshold, unit=unit, labels=labels).plot(ax)

    @cached_property
    def edges_(self) -> Floats:
        """Edges of the bins, from the lowest score to the last one shown."""
        low, high = float(self.scores.min()), float(self.scores.max())
        room = self.threshold + 0.3 * max(self.threshold - low, 0.0)
        shown = max(float(np.quantile(self.scores, _SHOWN_SHARE)), room)
        width = min(shown, max(high, self.threshold)) - low
        return np.linspace(low, low + max(width, 1e-9 * max(abs(low), 1.0)), N_BINS + 1)

    @cached_property
    def counts_(self) -> dict[str, Ints]:
        """Rows in each bin, by group."""
        groups = {"all": self.scores}
        if self.labels is not None:
            groups = {name: self.scores[self.labels == c] for c, (name, *_) in _GROUPS.items()}
        return {
            name: np.histogram(np.minimum(scores, self.edges_[-1]), self.edges_)[0]
            for name, scores in groups.items()
            if len(scores)
        }

    def _draw(self, ax: Axes) -> None:
        styles = {name: (colour, hatch) for name, colour, hatch in _GROUPS.values()}
        for name, counts in self.counts_.items():
            colour, hatch = styles.get(name, ("C0", None))
            look: Any = {"edgecolor": colour, "facecolor": "none" if hatch else (colour, 0.25)}
            look |= {"fill": True, "linewidth": 1.2, "hatch": hatch}
            ax.stairs(counts, self.edges_, label=name, **look)
        label = f"threshold {self.threshold:.4g}"
        self.threshold_line_ = ax.axvline(self.threshold, color="C3", linestyle="--", label=label)
        n_beyond = int((self.scores > self.edges_[-1]).sum())
        rows = "row" if n_beyond == 1 else "rows"
        beyond = f"\nlast bar: {n_beyond} {rows} beyond, up to {self.scores.max():.4g}"
        ax.set(xlabel=f"anomaly score ({self.unit}){beyond if n_beyond else ''}", ylabel="rows")
        ax.set(yscale="log", xlim=(self.edges_[0], self.edges_[-1]))
        ax.set_ylim(bottom=0.7)
        ax.yaxis.set_major_formatter("{x:,.0f}")
        place: Any = {"loc": "lower right", "bbox_to_anchor": (1, 1), "ncols": 4, "borderpad": 0}
        self.threshold_text_ = ax.legend(frameon=False, **place).get_texts()[-1]
