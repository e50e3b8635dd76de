"""`PValueDisplay`: whether p-values of normal rows are what they say."""

import math
from typing import TYPE_CHECKING, final

import numpy as np
import numpy.typing as npt

from fewlier.plot.base import axes_or_new
from fewlier.table.labels import NORMAL, read_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fewlier.detector import AnomalyDetector

Floats = npt.NDArray[np.float64]

LEVEL = 0.95


@final
class PValueDisplay:
    """Share of rows with a p-value of at most alpha, over alpha: the diagonal for normal rows.

    The band is that of two samples of one distribution, the rows and the m held-back normals that
    p-values count: alpha ± sqrt(log(2 / 0.05) / 2 · (1 / n + 1 / m)), which with probability of
    at least about 95 % covers the whole curve (Smirnov).

    Parameters
    ----------
    p_values : array (n,)
        p-values of normal rows, as far as is known.
    n_held_back : int
        Held-back normals that p-values count.
    what : str
        Which rows they are.

    Attributes
    ----------
    half_width_ : float
        Half the width of the band.
    excess_ : float
        How far at most the curve lies above the diagonal: more small p-values than there should be.
    ax_, figure_
        What was drawn.
    """

    ax_: "Axes"
    figure_: "Figure"

    def __init__(self, *, p_values: Floats, n_held_back: int, what: str) -> None:
        self.p_values, self.n_held_back, self.what = np.sort(p_values), n_held_back, what
        n = len(p_values)
        self.half_width_ = math.sqrt(math.log(2 / (1 - LEVEL)) / 2 * (1 / n + 1 / n_held_back))
        self.excess_ = float(np.max(np.arange(1, n + 1) / n - self.p_values))

    @classmethod
    def from_detector(
        cls, detector: "AnomalyDetector", X: object, y: object = None, *, ax: "Axes | None" = None
    ) -> "PValueDisplay":
        """Take the p-values of rows labelled normal, or of all rows without labels, and draw."""
        p_values, what = detector.p_value(X), "all rows"
        if y is not None:
            p_values = p_values[read_labels(y, len(p_values)) == NORMAL]
            what = "rows labelled normal"
        n = len(detector.model_.calibration.normal_scores)
        return cls(p_values=p_values, n_held_back=n, what=what).plot(ax)

    @property
    def is_kept(self) -> bool:
        """Whether no more p-values are small than chance allows."""
        return self.excess_ <= self.half_width_

    def share_up_to(self, alpha: float) -> float:
        """Return the share of rows whose p-value is at most alpha."""
        return float((self.p_values <= alpha).mean())

    def plot(self, ax: "Axes | None" = None) -> "PValueDisplay":
        """Draw on some axes, or on new ones."""
        ax = self.ax_ = axes_or_new(ax)
        self.figure_ = ax.get_figure(root=True)  # type: ignore[assignment] # axes have one
        grid = np.linspace(0, 1, 101)
        low, high = (np.clip(grid + half, 0, 1) for half in (-self.half_width_, self.half_width_))
        ax.fill_between(
            grid, low, high, color="C2", alpha=0.15, linewidth=0, label="95 % by chance"
        )
        ax.plot([0, 1], [0, 1], color="C2", linestyle=":", label="as promised")
        steps = np.unique(np.quantile(self.p_values, grid, method="nearest"))
        shares = np.searchsorted(self.p_values, steps, side="right") / len(self.p_values)
        shown = [0, *steps, 1], [0, *shares, 1]
        ax.step(*shown, where="post", color="C0", label=self.what)
        ax.set(xlabel="p-value", ylabel="share of rows up to it", xlim=(0, 1), ylim=(0, 1.01))
        ax.legend(loc="lower right", frameon=False)
        return self
