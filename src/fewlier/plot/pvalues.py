"""`PValueDisplay`: whether p-values of normal rows are what they say."""

from typing import TYPE_CHECKING, Literal, NamedTuple, final

import numpy as np
import numpy.typing as npt
from scipy import stats

from fewlier.plot.base import axes_or_new
from fewlier.table.labels import NORMAL, read_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fewlier.detector import AnomalyDetector

Floats = npt.NDArray[np.float64]

LEVELS = (0.01, 0.05, 0.1, 0.2)
"""p-values that are tested: those that decide about rows are small."""
LEVEL = 0.95
# Points of the band.
_N_DRAWN = 200


class Check(NamedTuple):
    """How many rows have a p-value of at most `alpha`, against what m held-back normals promise.

    `share` is that of the rows; `expected` is r / (m + 1), r = floor(alpha (m + 1)), and 95 % of
    fits have a share from `low` to `high`. Of the chance of so many rows or more, `p_value` is over
    all fits, and `p_value_of_model` for a model that had exactly `expected`.
    """

    alpha: float
    expected: float
    share: float
    low: float
    high: float
    p_value: float
    p_value_of_model: float


@final
class PValueDisplay:
    r"""Share of rows with a p-value of at most alpha, over alpha: the diagonal for normal rows.

    From fit to fit the share of fresh normals with a p-value of at most r / (m + 1) is
    Beta(r, m + 1 - r) distributed, because m held-back normals are a sample too. So the number of
    such rows among n is beta-binomial: it has the band, and the tests at `LEVELS`, which are
    corrected for their number (Bonferroni).

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
    checks_ : tuple of Check
        The tests, one for each of `LEVELS` that p-values can reach.
    ax_, figure_
        What was drawn.
    """

    ax_: "Axes"
    figure_: "Figure"

    def __init__(self, *, p_values: Floats, n_held_back: int, what: str) -> None:
        self.p_values, self.n_held_back, self.what = np.sort(p_values), n_held_back, what
        levels = [alpha for alpha in LEVELS if alpha * (n_held_back + 1) >= 1]
        self.checks_ = tuple(map(self._check, levels or [1 / (n_held_back + 1)]))

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
    def p_value(self) -> float:
        """The chance that some fit has so many small p-values, if all rows are normal."""
        return min(1.0, len(self.checks_) * min(check.p_value for check in self.checks_))

    @property
    def verdict(self) -> Literal["kept", "scatter", "broken"]:
        """What the tests say.

        "kept": no more rows have small p-values than chance in these rows allows. "scatter": more
        have, but no more than the chance in the held-back normals allows. "broken": more than both
        allow.
        """
        if self.p_value <= 1 - LEVEL:
            return "broken"
        of_model = len(self.checks_) * min(check.p_value_of_model for check in self.checks_)
        return "scatter" if of_model <= 1 - LEVEL else "kept"

    @property
    def farthest(self) -> Check:
        """The check that speaks most against the p-values."""
        return min(self.checks_, key=lambda check: (check.p_value_of_model, check.p_value))

    def share_up_to(self, alpha: float) -> float:
        """Return the share of rows whose p-value is at most alpha."""
        return float((self.p_values <= alpha).mean())

    def plot(self, ax: "Axes | None" = None) -> "PValueDisplay":
        """Draw on some axes, or on new ones."""
        ax = self.ax_ = axes_or_new(ax)
        self.figure_ = ax.get_figure(root=True)  # type: ignore[assignment] # axes have one
        ranks = np.unique(np.linspace(1, self.n_held_back, _N_DRAWN).round())
        low, high = self._interval(ranks)
        grid = np.concatenate([[0], ranks / (self.n_held_back + 1), [1]])
        ends = np.concatenate([[0], low, [1]]), np.concatenate([[0], high, [1]])
        ax.fill_between(grid, *ends, color="C2", alpha=0.15, linewidth=0, label="95 % of fits")
        ax.plot([0, 1], [0, 1], color="C2", linestyle=":", label="as promised")
        steps = np.unique(np.quantile(self.p_values, np.linspace(0, 1, 101), method="nearest"))
        shares = np.searchsorted(self.p_values, steps, side="right") / len(self.p_values)
        shown = [0, *steps, 1], [0, *shares, 1]
        ax.step(*shown, where="post", color="C0", label=self.what)
        ax.set(xlabel="p-value", ylabel="share of rows up to it", xlim=(0, 1), ylim=(0, 1.01))
        ax.legend(loc="lower right", frameon=False)
        return self

    def _check(self, alpha: float) -> Check:
        n, m = len(self.p_values), self.n_held_back
        rank = int(alpha * (m + 1) + 1e-9)
        expected = rank / (m + 1)
        n_small = int((self.p_values <= expected * (1 + 1e-12)).sum())
        low, high = self._interval(np.array([rank]))
        chances = stats.betabinom(n, rank, m + 1 - rank), stats.binom(n, expected)
        tails = (float(chance.sf(n_small - 1)) for chance in chances)
        return Check(alpha, expected, n_small / n, float(low[0]), float(high[0]), *tails)

    def _interval(self, ranks: Floats) -> tuple[Floats, Floats]:
        """Return the shares that 95 % of fits have up to the p-value of each rank."""
        n = len(self.p_values)
        chance = stats.betabinom(n, ranks, self.n_held_back + 1 - ranks)
        return chance.ppf((1 - LEVEL) / 2) / n, chance.ppf((1 + LEVEL) / 2) / n
