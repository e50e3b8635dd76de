"""`ReasonDisplay`: which columns make rows odd."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from fewlier.detector import AnomalyDetector
from fewlier.process.escape import shown
from fewlier.reasons.explanation import Explanation
from fewlier.report.plots.base import Axes, Display
from fewlier.table.arrays import Bools, Floats

# A new figure is wide enough for the longest label and tall enough for every line of text.
_WIDTH, _LINE, _FRAME = 8.0, 0.22, 1.2  # inches
_MAX_NAME, _MAX_EXPECTATION = 28, 53  # characters


@final
@dataclass(eq=False, kw_only=True)
class ReasonDisplay(Display):
    """Bars that show how much columns add to the score, the largest first.

    Parameters
    ----------
    names : sequence of str
        Label of each bar: the column, with its value if the figure is about one row.
    contributions : array
        What each column adds to the score.
    unit : str
        Unit of the score.
    title : str
        Which rows the figure is about.
    expectations : sequence of str
        What was expected in each column, such as ``expected 12–40``; empty where unknown.

    Examples
    --------
    >>> import numpy as np
    >>> from fewlier import AnomalyDetector
    >>> from fewlier.report.plots import ReasonDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(size=(200, 2)), rng.normal(6, 1, size=(10, 2))])
    >>> y = np.repeat([0, 1], [200, 10])
    >>> detector = AnomalyDetector(random_state=0).fit(X, y)
    >>> display = ReasonDisplay.from_detector(detector, X)  # the mean of rows above the threshold
    >>> sorted(display.names)
    ['x0', 'x1']
    >>> ReasonDisplay.from_detector(detector, [[0.0, 9.0]], row=0).names
    ['x1 = 9', 'x0 = 0']
    """

    names: Sequence[str]
    contributions: Floats
    unit: str
    title: str
    expectations: Sequence[str] = ()

    @classmethod
    def from_detector(
        cls,
        detector: AnomalyDetector,
        X: object,
        *,
        row: int | None = None,
        n_columns: int = 12,
        ax: Axes | None = None,
    ) -> "ReasonDisplay":
        """Explain one row, or the average row above the threshold, and draw."""
        explanation = detector.explain(X)
        if row is None:
            is_above = explanation.scored.is_anomaly
            return cls.from_mean(explanation, is_above, n_columns).plot(ax)
        reasons = explanation.top(row, n_columns)
        return cls(
            names=[f"{reason.column} {reason.state}" for reason in reasons],
            contributions=np.array([reason.contribution for reason in reasons]),
            unit=explanation.unit,
            title=f"row {row}, score {explanation.score[row]:.4g}",
            expectations=[reason.expected_in_words.removeprefix(", ") for reason in reasons],
        ).plot(ax)

    @classmethod
    def from_mean(
        cls, explanation: Explanation, is_above: Bools, n_columns: int = 12
    ) -> "ReasonDisplay":
        """Average over the rows above the threshold, or over all rows if none is above it."""
        rows, what = explanation.contributions[is_above], "rows above the threshold"
        if not len(rows):
            rows, what = explanation.contributions, "rows; none is above the threshold"
        mean = rows.mean(0)
        order = np.argsort(-mean, kind="stable")[:n_columns]
        return cls(
            names=[explanation.columns[j] for j in order],
            contributions=mean[order],
            unit=explanation.unit,
            title=f"mean of {len(rows):,} {what}",
        )

    @property
    def _size(self) -> tuple[float, float]:
        n_lines = 1.5 * len(self.names) + sum(map(bool, self.expectations))
        return _WIDTH, _FRAME + _LINE * n_lines

    def _draw(self, ax: Axes) -> None:
        labels = [_shorten(name, _MAX_NAME) for name in self.names]
        for j, expected in enumerate(self.expectations):
            labels[j] += f"\n{_shorten(expected, _MAX_EXPECTATION)}" if expected else ""
        places = np.arange(len(labels))
        bars = ax.barh(places, self.contributions, height=0.62, color="C0")
        ax.bar_label(bars, fmt="{:+z.2f}", padding=4)
        # A dollar sign in a column's name does not start a formula.
        ax.set_yticks(places, labels, parse_math=False)
        ax.invert_yaxis()
        ax.margins(x=0.2)
        ax.grid(visible=False, axis="y")  # the bars guide the eye already
        ax.set(xlabel=f"adds to the score ({self.unit})")
        ax.set_title(self.title, parse_math=False)


def _shorten(text: str, most: int) -> str:
    """Return text that fits on one line of a figure."""
    return shown(" ".join(text.split()), most)
