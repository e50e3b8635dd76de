"""`PValueDisplay`: whether the p-values of normal rows keep their promise."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, final

import numpy as np
from scipy import stats

from fewlier.detector import AnomalyDetector
from fewlier.report.plots.base import Axes, Display
from fewlier.table.arrays import Floats
from fewlier.table.labels import NORMAL, read_labels

LEVELS = (0.01, 0.05, 0.1, 0.2)
"""p-values to test: decisions about rows depend on the small ones."""
LEVEL = 0.95
_N_POINTS = 200  # of the band


class Check(NamedTuple):
    """How many rows have a p-value of at most `alpha`, compared with what m normals promise.

    They promise a share of r / (m + 1), r = floor(alpha (m + 1)); these rows have `share`, and 95 %
    of fits have between `low` and `high`. The chance of at least this many rows is `p_value` over
    all fits, and `p_value_of_model` for a model whose true share is exactly the promised one.
    """

    alpha: float
    share: float
    low: float
    high: float
    p_value: float
    p_value_of_model: float


@final
@dataclass(eq=False, kw_only=True)
class PValueDisplay(Display):
    r"""Share of rows with a p-value of at most alpha, over alpha: for normals, the diagonal.

    The m held-out normals are a sample too. So the share of fresh normals with a p-value of at
    most r / (m + 1) differs from fit to fit and is Beta(r, m + 1 - r) distributed, and the number
    of such rows among n is beta-binomial. This gives the band and the tests at `LEVELS`, which are
    Bonferroni-corrected.

    Parameters
    ----------
    p_values : array (n,)
        p-values of rows that are normal as far as is known.
    n_held_out : int
        Number of held-out normals behind the p-values.
    what : str
        Which rows these are.

    Examples
    --------
    >>> import numpy as np
    >>> from fewlier import AnomalyDetector
    >>> from fewlier.report.plots import PValueDisplay
    >>> rng = np.random.default_rng(0)
    >>> detector = AnomalyDetector(random_state=0).fit(rng.normal(size=(300, 2)))
    >>> PValueDisplay.from_detector(detector, rng.normal(size=(300, 2))).verdict
    'kept'
    >>> PValueDisplay.from_detector(detector, rng.normal(1, 1, size=(300, 2))).verdict
    'broken'
    """

    p_values: Floats
    n_held_out: int
    what: str

    @classmethod
    def from_detector(
        cls, detector: AnomalyDetector, X: object, y: object = None, *, ax: Axes | None = None
    ) -> "PValueDisplay":
        """Draw the p-values of rows labelled normal, or of all rows without labels."""
        p_values, what = detector.p_value(X), "all rows"
        if y is not None:
            p_values = p_values[read_labels(y, len(p_values)) == NORMAL]
            what = "rows labelled normal"
        n = len(detector.model_.calibration.normal_scores)
        return cls(p_values=p_values, n_held_out=n, what=what).plot(ax)

    @cached_property
    def checks_(self) -> tuple[Check, ...]:
        """One test for each of `LEVELS` that the p-values can reach."""
        levels = [alpha for alpha in LEVELS if alpha * (self.n_held_out + 1) >= 1]
        return tuple(map(self._check, levels or [1 / (self.n_held_out + 1)]))

    @property
    def p_value(self) -> float:
        """The chance that a fit has this many small p-values although all rows are normal."""
        return min(1.0, len(self.checks_) * min(check.p_value for check in self.checks_))

    @property
    def verdict(self) -> Literal["kept", "scatter", "broken"]:
        """What the tests say.

        "kept": no more rows have small p-values than chance in these rows allows. "scatter": more
        than that, but no more than chance in the held-out normals allows. "broken": more than
        both allow.
        """
        if self.p_value <= 1 - LEVEL:
            return "broken"
        of_model = len(self.checks_) * min(check.p_value_of_model for check in self.checks_)
        return "scatter" if of_model <= 1 - LEVEL else "kept"

    def _draw(self, ax: Axes) -> None:
        ranks = np.unique(np.linspace(1, self.n_held_out, _N_POINTS).round())
        low, high = self._interval(ranks)
        grid, low, high = (
            np.concatenate([[0], part, [1]]) for part in (ranks / (self.n_held_out + 1), low, high)
        )
        ax.fill_between(grid, low, high, color="C2", alpha=0.15, linewidth=0, label="95 % of fits")
        ax.plot([0, 1], [0, 1], color="C2", linestyle=":", label="as promised")
        p_values = np.sort(self.p_values)
        steps = np.unique(np.quantile(p_values, np.linspace(0, 1, 101), method="nearest"))
        shares = np.searchsorted(p_values, steps, side="right") / len(p_values)
        ax.step([0, *steps, 1], [0, *shares, 1], where="post", color="C0", label=self.what)
        ax.set(xlabel="p-value", ylabel="share of rows up to it", xlim=(0, 1), ylim=(0, 1.01))
        ax.legend(loc="lower right", frameon=False)

    def _check(self, alpha: float) -> Check:
        n, m = len(self.p_values), self.n_held_out
        rank = int(alpha * (m + 1) + 1e-9)
        promised = rank / (m + 1)
        n_small = int((self.p_values <= promised * (1 + 1e-12)).sum())
        low, high = self._interval(np.array([rank]))
        over_fits = float(stats.betabinom.sf(n_small - 1, n, rank, m + 1 - rank))
        of_model = float(stats.binom.sf(n_small - 1, n, promised))
        return Check(alpha, n_small / n, float(low[0]), float(high[0]), over_fits, of_model)

    def _interval(self, ranks: Floats) -> tuple[Floats, Floats]:
        """Return the shares that 95 % of fits have up to the p-value of each rank.

        They are quantiles of a Beta distribution with the mean and variance of the beta-binomial
        share, widened to whole rows: within a row of the exact ones, which take minutes to find
        for 100,000 rows.
        """
        n, m = len(self.p_values), self.n_held_out
        size = max(n * (m + 2) / (n + m + 1) - 1, 1e-6)
        mean = ranks / (m + 1)
        low, high = (
            stats.beta.ppf(share, mean * size, (1 - mean) * size)
            for share in ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
        )
        return np.floor(n * low) / n, np.ceil(n * high) / n
