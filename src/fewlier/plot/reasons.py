"""`ReasonDisplay`: which columns make rows odd."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, final

import numpy as np
import numpy.typing as npt

from fewlier.plot.base import axes_or_new, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fewlier.detector import AnomalyDetector
    from fewlier.reasons.explanation import Explanation

Floats = npt.NDArray[np.float64]

# A figure of its own is wide enough for the longest label, and has room for each line of text.
_WIDTH, _LINE, _FRAME = 8.0, 0.22, 1.2  # inches
_MAX_EXPECTATION = 44  # characters


@final
class ReasonDisplay:
    """Bars of what columns add to the score, the largest first.

    Parameters
    ----------
    names : sequence of str
        What to call each bar: a column, with its value where it is of one row.
    contributions : array
        What each adds to the score.
    unit : str
        Unit of the score.
    title : str
        Which rows they are of.
    expectations : sequence of str
        What was expected of each instead, in words, or nothing.

    Attributes
    ----------
    ax_, figure_
        What was drawn.
    """

    ax_: "Axes"
    figure_: "Figure"

    def __init__(
        self,
        *,
        names: Sequence[str],
        contributions: Floats,
        unit: str,
        title: str,
        expectations: Sequence[str] = (),
    ) -> None:
        self.names, self.contributions = tuple(names), contributions
        self.unit, self.title = unit, title
        self.expectations = tuple(expectations)

    @classmethod
    def from_detector(
        cls,
        detector: "AnomalyDetector",
        X: object,
        *,
        row: int | None = None,
        n_columns: int = 12,
        ax: "Axes | None" = None,
    ) -> "ReasonDisplay":
        """Explain one row, or on average the rows above the threshold, and draw."""
        explanation = detector.explain(X)
        if row is None:
            chosen = explanation.score > detector.threshold_
            return cls.of_mean(explanation, chosen, n_columns).plot(ax)
        reasons = explanation.top(row, n_columns)
        return cls(
            names=[f"{reason.column} {reason.state}" for reason in reasons],
            contributions=np.array([reason.contribution for reason in reasons]),
            unit=explanation.unit,
            title=f"row {row}, score {explanation.score[row]:.4g}",
            expectations=[reason.expectation for reason in reasons],
        ).plot(ax)

    @classmethod
    def of_mean(
        cls, explanation: "Explanation", chosen: npt.NDArray[np.bool_], n_columns: int = 12
    ) -> "ReasonDisplay":
        """Average over chosen rows, or over all where none is chosen."""
        rows = explanation.contributions[chosen] if chosen.any() else explanation.contributions
        mean = rows.mean(0)
        order = np.argsort(-mean, kind="stable")[:n_columns]
        what = "rows above the threshold" if chosen.any() else "rows; none is above the threshold"
        return cls(
            names=[explanation.columns[j] for j in order],
            contributions=mean[order],
            unit=explanation.unit,
            title=f"mean of {len(rows):,} {what}",
        )

    def plot(self, ax: "Axes | None" = None) -> "ReasonDisplay":
        """Draw on some axes, or on new ones."""
        labels = self._labels()
        n_lines = sum(1.5 + label.count("\n") for label in labels)
        ax = self.ax_ = axes_or_new(ax, (_WIDTH, _FRAME + _LINE * n_lines))
        self.figure_ = ax.get_figure(root=True)  # type: ignore[assignment] # axes have one
        places = np.arange(len(self.names))
        bars = ax.barh(places, self.contributions, height=0.62, color="C0")
        ax.bar_label(bars, fmt="%+.2f", padding=4)
        # A dollar sign in a column's name is no formula.
        ax.set_yticks(places, labels, parse_math=False)
        ax.invert_yaxis()
        ax.margins(x=0.2)
        ax.grid(visible=False, axis="y")  # bars lead the eye themselves
        ax.set(xlabel=f"adds to the score ({self.unit})")
        ax.set_title(self.title, parse_math=False)
        return self

    def _labels(self) -> list[str]:
        expectations = self.expectations or ("",) * len(self.names)
        return [
            shortened(name)
            + (f"\nexpected {shortened(expected, _MAX_EXPECTATION)}" if expected else "")
            for name, expected in zip(self.names, expectations, strict=True)
        ]
