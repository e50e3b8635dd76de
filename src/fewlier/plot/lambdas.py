"""`LambdaDisplay`: what validation said of each lambda, and the weight it got."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np

from fewlier.plot.base import axes_or_new
from fewlier.training.history import MemberCurve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fewlier.detector import AnomalyDetector

_MARKERS = "osD^vP*X"
Style: TypeAlias = dict[str, Any]


@final
class LambdaDisplay:
    """Validation curves of the members, a mark at the epoch that each kept.

    Members that the score leaves out are dotted; the legend has the weight of every lambda.

    Parameters
    ----------
    weights : mapping of float to float
        Weight of each lambda in the score.
    curves : sequence of MemberCurve
        Validation curve of every member; a model file of old has none.
    criterion : str
        What the curves are of.

    Attributes
    ----------
    ax_, figure_
        What was drawn.
    """

    ax_: "Axes"
    figure_: "Figure"

    def __init__(
        self, *, weights: Mapping[float, float], curves: Sequence[MemberCurve], criterion: str
    ) -> None:
        self.weights, self.curves, self.criterion = dict(weights), tuple(curves), criterion

    @classmethod
    def from_detector(
        cls, detector: "AnomalyDetector", *, ax: "Axes | None" = None
    ) -> "LambdaDisplay":
        """Take the curves of a fit, or of a loaded model, and draw."""
        summary = detector.summary_
        return cls(
            weights=summary.lambda_weights, curves=summary.curves, criterion=summary.criterion
        ).plot(ax)

    def plot(self, ax: "Axes | None" = None) -> "LambdaDisplay":
        """Draw on some axes, or on new ones."""
        ax = self.ax_ = axes_or_new(ax)
        self.figure_ = ax.get_figure(root=True)  # type: ignore[assignment] # axes have one
        for number, (lam, weight) in enumerate(self.weights.items()):
            label = f"λ {lam:g}: {weight:.2f}" if weight else f"λ {lam:g}: left out"
            style: Style = {"color": f"C{number}", "marker": _MARKERS[number % len(_MARKERS)]}
            ax.plot([], [], linestyle="-" if weight else ":", label=label, **style)
            for curve in (curve for curve in self.curves if curve.lam == lam):
                self._draw(curve, ax, style)
        ax.set(xlabel="epoch", ylabel=f"validation {self.criterion.replace('_', ' ')}")
        # Beside the axes: curves are everywhere in them.
        place: Style = {"loc": "upper left", "bbox_to_anchor": (1, 1)}
        ax.legend(title="weight in\nthe score", frameon=False, fontsize="small", **place)
        return self

    def _draw(self, curve: MemberCurve, ax: "Axes", style: Style) -> None:
        is_kept = curve.weight > 0
        ax.plot(
            curve.epochs,
            curve.values,
            color=style["color"],
            linestyle="-" if is_kept else ":",
            linewidth=1.5 if is_kept else 1.0,
        )
        if is_kept and curve.epochs:
            value = np.interp(curve.best_epoch, curve.epochs, curve.values)
            ax.plot(curve.best_epoch, value, linestyle="", markersize=6, **style)
