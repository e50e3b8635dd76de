"""`LambdaDisplay`: how each lambda did in validation, and the weight it got."""

from dataclasses import dataclass
from typing import final

import numpy as np

from fewlier.detector import AnomalyDetector
from fewlier.fitting.summary import Summary
from fewlier.report.plots.base import Axes, Display

_MARKERS = "osD^vP*X"


@final
@dataclass(eq=False)
class LambdaDisplay(Display):
    """Validation curves of the members, with a mark at the epoch each of them kept.

    Members that the score leaves out are dotted. The legend has the weight of each lambda.

    Parameters
    ----------
    summary : Summary
        Summary of the fit, which has the curves.

    Examples
    --------
    >>> import numpy as np
    >>> from fewlier import AnomalyDetector
    >>> from fewlier.report.plots import LambdaDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(size=(200, 2)), rng.normal(6, 1, size=(10, 2))])
    >>> y = np.repeat([0, 1], [200, 10])
    >>> detector = AnomalyDetector(random_state=0).fit(X, y)
    >>> display = LambdaDisplay.from_detector(detector)
    >>> sorted(display.summary.lambda_weights)
    [0.1, 1000.0]
    >>> display.ax_.get_xlabel()
    'epoch'
    """

    summary: Summary

    @classmethod
    def from_detector(cls, detector: AnomalyDetector, *, ax: Axes | None = None) -> "LambdaDisplay":
        """Draw the curves of a fitted or loaded detector."""
        return cls(detector.summary_).plot(ax)

    def _draw(self, ax: Axes) -> None:
        for number, (lam, weight) in enumerate(self.summary.lambda_weights.items()):
            colour, marker = f"C{number}", _MARKERS[number % len(_MARKERS)]
            label = f"λ {lam:g}: {weight:.2f}" if weight else f"λ {lam:g}: left out"
            ax.plot([], [], "-" if weight else ":", color=colour, marker=marker, label=label)
            for curve in self.summary.history:
                if curve.lam != lam:
                    continue
                style, width = ("-", 1.5) if curve.weight else (":", 1.0)
                ax.plot(curve.epochs, curve.values, style, color=colour, linewidth=width)
                if curve.weight and curve.epochs:
                    kept = np.interp(curve.best_epoch, curve.epochs, curve.values)
                    ax.plot(curve.best_epoch, kept, marker, color=colour, markersize=6)
        criterion = self.summary.criterion.replace("_", " ")
        ax.set(xlabel="epoch", ylabel=f"validation {criterion}")
        ax.legend(  # outside the axes, which the curves fill
            title="weight in\nthe score",
            frameon=False,
            fontsize="small",
            loc="upper left",
            bbox_to_anchor=(1, 1),
        )
