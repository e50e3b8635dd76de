"""Thresholds, probabilities and p-values, from the scores of normals that nothing else has seen."""

import math
import sys
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Real
from typing import Any, final

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

from fewlier.errors import ParameterError, warn
from fewlier.state import State, require

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

LEVEL = 0.95
"""Share of fits whose false-alarm rate lies in the interval that is stated."""
NOTHING = "none"
"""What a guarantee that is none begins with."""
ENOUGH_ANOMALIES = 20
"""Held-back anomalies from which on probabilities are not called rough."""
# Evidence grows with the score up to so many spreads of the normals, beyond it with its logarithm.
_LINEAR = 3.0
# No threshold is farther from the middle of normals than some 600,000 spreads of theirs.
_FARTHEST = 14.0
# The evidence curve rises, however little the labelled anomalies speak for it, and has an end.
_SLOPES = (1e-3, 100.0)
_SCORES = ("normal_scores", "training_scores", "anomaly_scores")


def false_alarm_interval(n_above: npt.ArrayLike, n_held_back: int) -> tuple[Floats, Floats]:
    """Return the ends between which 95 % of thresholds have their false-alarm rate.

    At the r-th highest of m held-back normals, r = 1 + those above it, a fresh normal lies above
    the threshold with a probability that differs from fit to fit: it is Beta(r, m + 1 - r)
    distributed, with mean r / (m + 1).
    """
    rank = np.minimum(np.asarray(n_above) + 1, n_held_back)
    tails = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
    low, high = (special.betaincinv(rank, n_held_back + 1 - rank, tail) for tail in tails)
    return low, high


@final
@dataclass(frozen=True)
class Threshold:
    """The score above which rows are anomalies, and how many fresh normals it flags.

    Parameters
    ----------
    value : float
        The score.
    rule : str
        What it stands for, in words.
    n_above, n_held_back : int
        Held-back normals that score above it, and all of them; 0 where none was held back.
    """

    value: float
    rule: str
    n_above: int
    n_held_back: int

    @property
    def rate(self) -> float | None:
        """The share of fresh normals that such thresholds flag on average, if one is promised."""
        return (self.n_above + 1) / (self.n_held_back + 1) if self.n_held_back else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The shares between which 95 % of such thresholds flag fresh normals."""
        if not self.n_held_back:
            return None
        low, high = false_alarm_interval(self.n_above, self.n_held_back)
        return float(low), float(high)

    @property
    def meaning(self) -> str:
        """The rule and the scatter of what it gives, in words."""
        if self.interval is None:
            return self.rule
        low, high = map(_percent, self.interval)
        return f"{self.rule}; 95 % of such thresholds have {low} to {high} % false alarms"

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        interval = self.interval and list(self.interval)
        rates = {"expected_false_alarm_rate": self.rate, "false_alarm_interval": interval}
        return {"threshold": self.value, "rule": self.rule, **rates}


def _percent(share: float) -> str:
    percent = 100 * share
    digits = 0 if percent >= 10 else 1 if percent >= 0.1 else 2
    return f"{percent:.{digits}f}"


@final
@dataclass(frozen=True, eq=False)
class Calibration:
    """What a score means.

    Parameters
    ----------
    normal_scores : array (m,)
        Scores of the held-back normals, ascending.
    training_scores : array (t,)
        Scores of a sample of all training rows, ascending; a share of them sets the threshold
        where the user states the contamination.
    threshold : float
        A row is an anomaly if its score is above.
    guarantee : str
        What the p-values promise, in words.
    rule : str
        What the threshold stands for, in words.
    anomaly_scores : array (k,)
        Scores of labelled anomalies by members that did not train on them, ascending.
    prior : float or None
        Share of anomalies among the rows to come, where the user has stated it.
    """

    normal_scores: Floats
    training_scores: Floats
    threshold: float
    guarantee: str
    rule: str = ""
    anomaly_scores: Floats = field(default_factory=lambda: np.empty(0))
    prior: float | None = None

    @property
    def at(self) -> Threshold:
        """The threshold, with what is known of its false-alarm rate."""
        n = 0 if self.guarantee.startswith(NOTHING) else len(self.normal_scores)
        n_above = int((self.normal_scores > self.threshold).sum())
        return Threshold(self.threshold, self.rule, n_above, n)

    def state(self) -> State:
        """Return what a model file holds of it."""
        names = ("threshold", "rule", "guarantee", "prior")
        record = {name: getattr(self, name) for name in names}
        return State(record, {name: getattr(self, name) for name in _SCORES})

    @classmethod
    def from_state(cls, state: State) -> "Calibration":
        """Inverse of `state`, checked."""
        normal, training, anomaly = (state.array(name, np.float64, (None,)) for name in _SCORES)
        for name, scores in zip(_SCORES, (normal, training, anomaly), strict=True):
            require(bool((np.diff(scores) >= 0).all()), f"'{state.name}.{name}' is not sorted.")
        require(min(len(normal), len(training)) > 0, f"{state.name!r} has no scores.")
        return cls(
            normal,
            training,
            state.number("threshold"),
            state.text("guarantee"),
            state.text("rule"),
            anomaly,
            state.positive("prior", below=1) if state.has("prior") else None,
        )

    def at_false_alarm_rate(self, rate: float) -> "Calibration":
        """Move the threshold so that fresh normals exceed it with probability at most `rate`.

        The conformal quantile: of m held-back normals at most floor(rate (m + 1)) - 1 lie above.
        With m < 1 / rate - 1 the smallest attainable rate, 1 / (m + 1), is used.
        """
        check_share("false_alarm_rate", rate)
        n = len(self.normal_scores)
        above = min(max(math.floor(rate * (n + 1) + 1e-9), 1), n)
        stands_for = above / (n + 1)
        rule = f"false-alarm rate {100 * rate:.4g} %"
        if not math.isclose(stands_for, rate, rel_tol=0.05):
            asked_for = f"{100 * rate:.4g} % was asked for"
            rule = f"false-alarm rate {_percent(stands_for)} %; {asked_for}"
        threshold = float(self.normal_scores[-above])
        return replace(self, threshold=threshold, rule=rule, prior=None)

    def at_contamination(self, share: float) -> "Calibration":
        """Move the threshold so that this share of the training rows lies above it."""
        check_share("contamination", share)
        threshold = float(np.quantile(self.training_scores, 1 - share))
        return replace(
            self, threshold=threshold, rule=f"contamination {100 * share:.4g} %", prior=share
        )

    def at_costs(self, miss: float, alarm: float, share: float) -> "Calibration":
        """Move the threshold to where a miss and a false alarm cost the same on average.

        A row is flagged if P(anomaly | score) `miss` > P(normal | score) `alarm`, `share` being
        that of anomalies among the rows to come.
        """
        if not len(self.anomaly_scores):
            raise ParameterError(
                "A threshold by cost must have labelled anomalies to compare with; this model "
                "has none that were held back. Fit with two or more, or use 'false_alarm_rate'."
            )
        check_cost("cost_miss", miss)
        check_cost("cost_alarm", alarm)
        check_share("contamination", share)
        ratio = math.log(alarm) - math.log(miss) - float(special.logit(share))
        anomalies = f"{100 * share:.3g} % of the rows are anomalies"
        rule = f"a miss costs {miss:g}, an alarm {alarm:g}; {anomalies}"
        threshold = self._score_at(ratio)
        return replace(
            self, threshold=threshold, rule=rule + self._beyond_known(threshold), prior=share
        )

    def at_discovery_rate(self, rate: float, counts: Ints) -> "Calibration":
        """Move the threshold for one batch so that few of the rows above it are normal.

        Benjamini & Hochberg (1995) on the conformal p-values, which keeps the expected share of
        normal rows among the flagged ones at `rate` (Bates et al. 2023). Above the threshold are
        the rows whose p-value is at most the largest p with p n / #{p-values <= p} <= rate; it is
        infinite where there is none.

        Parameters
        ----------
        rate : float
            The false-discovery rate.
        counts : array (m + 1,)
            Rows of the batch by `rank`.
        """
        check_share("fdr", rate)
        n_rows, m = int(counts.sum()), len(self.normal_scores)
        p = (1 + m - np.arange(m + 1)) / (m + 1)
        n_as_odd = np.cumsum(counts[::-1])[::-1]
        kept = np.flatnonzero((counts > 0) & (p * n_rows <= rate * n_as_odd * (1 + 1e-12)))
        threshold = float(self.normal_scores[kept[0] - 1]) if len(kept) else math.inf
        rule = f"false-discovery rate {rate:g} among {n_rows} rows"
        return replace(self, threshold=threshold, rule=rule, prior=None)

    def rank(self, scores: Floats) -> Ints:
        """Return how many of the held-back normals score lower, from 0 to m."""
        return np.searchsorted(self.normal_scores, scores, side="left")

    def counts(self, scores: Floats) -> Ints:
        """Count the scores of each rank, shape (m + 1,)."""
        return np.bincount(self.rank(scores), minlength=len(self.normal_scores) + 1)

    @property
    def smallest_rate(self) -> float:
        """The smallest false-alarm rate that so many held-back normals can vouch for."""
        return 1 / (len(self.normal_scores) + 1)

    def warn_if_too_few(self, what: str, rate: float, outcome: str) -> None:
        """Warn of a rate that takes more held-back normals than there are."""
        if rate < self.smallest_rate:
            warn(
                f"A {what} of {rate:g} needs at least {round(1 / rate) - 1} held-back normal rows; "
                f"there are {len(self.normal_scores)} distinct ones, and {outcome}. Fit on more "
                "normal rows or ask for a higher rate."
            )

    def p_value(self, scores: Floats) -> Floats:
        """Return (1 + #{held-back normals with a score at least as high}) / (m + 1)."""
        n = len(self.normal_scores)
        return (1 + n - self.rank(scores)) / (n + 1)

    def probability(self, scores: Floats) -> Floats:
        r"""Return P(anomaly | score), rising with the score.

        log odds = log prior odds + log ratio(score), the ratio being the evidence of a score for
        an anomaly: a + b asinh((score - median of normals) / spread of normals), a logistic curve
        fitted to the held-back normals and the held-back anomalies, both classes counting alike,
        with Platt's (1999) targets: of k anomalies no score is more than (k + 1) / (k + 2)
        certain. The prior is the stated share; without one it is that for which the threshold is
        the point of even odds. Without held-back anomalies, the log odds are the distance from
        the threshold, in units of the upper half of the normals' scores: an order, no frequency.
        """
        if not len(self.anomaly_scores):
            width = self.normal_scores[-1] - np.median(self.normal_scores)
            odds = (scores - self.threshold) / max(float(width), 1e-9)
        elif self.prior is None:
            odds = self._curve[1] * (self._place(scores) - self._place(np.array(self.threshold)))
        else:
            odds = special.logit(self.prior) + self._curve[0] + self._curve[1] * self._place(scores)
        probability: Floats = special.expit(np.clip(odds, -700, 700))
        return probability

    @property
    def meaning(self) -> str:
        """What `probability` rests on, in words."""
        k = len(self.anomaly_scores)
        if not k:
            return "an order of rows, no frequency: no labelled anomaly was held back"
        share = "even odds at the threshold"
        if self.prior is not None:
            share = f"if {100 * self.prior:.3g} % of the rows are anomalies"
        rough = "; rough, because they are few" if k < ENOUGH_ANOMALIES else ""
        return f"from {k} labelled anomalies that were held back, {share}{rough}"

    @cached_property
    def _middle_and_spread(self) -> tuple[float, float]:
        middle, high = np.quantile(self.normal_scores, (0.5, 0.95))
        return float(middle), max(_LINEAR * float(high - middle), 1e-9)

    def _place(self, scores: Floats) -> Floats:
        """Return scores on the scale of normals, far ones growing only logarithmically."""
        middle, spread = self._middle_and_spread
        with np.errstate(over="ignore"):
            distance = np.clip((scores - middle) / spread, -1e300, 1e300)
        return np.arcsinh(distance)

    def _score_at(self, log_ratio: float) -> float:
        """Return the score whose evidence for an anomaly is this."""
        (a, b), (middle, spread) = self._curve, self._middle_and_spread
        place = np.clip((log_ratio - a) / b, -_FARTHEST, _FARTHEST)
        return middle + spread * math.sinh(place)

    def _beyond_known(self, threshold: float) -> str:
        """Say where a threshold lies beyond all known scores."""
        known = np.concatenate([self.normal_scores, self.training_scores, self.anomaly_scores])
        if threshold < known.min():
            return "; every known row is flagged"
        return "; no known row is flagged" if threshold >= known.max() else ""

    @cached_property
    def _curve(self) -> tuple[float, float]:
        """Fit a and b of the evidence of a score; see `probability`."""
        k, m = len(self.anomaly_scores), len(self.normal_scores)
        x = self._place(np.concatenate([self.normal_scores, self.anomaly_scores]))
        weight = np.repeat([0.5 / m, 0.5 / k], [m, k])
        target = np.repeat([1 / (m + 2), (k + 1) / (k + 2)], [m, k])

        def loss(ab: Floats) -> tuple[float, Floats]:
            odds = ab[0] + ab[1] * x
            cross_entropy = np.logaddexp(0, odds) - target * odds
            slope = weight * (special.expit(odds) - target)
            return float(weight @ cross_entropy), np.array([slope.sum(), slope @ x])

        bounds = ((None, None), _SLOPES)
        found = optimize.minimize(loss, (0.0, 1.0), jac=True, bounds=bounds, method="L-BFGS-B")
        a, b = found.x
        return float(a), float(b)


def check_cost(name: str, value: float) -> None:
    """Refuse a number that is no cost."""
    if not isinstance(value, Real) or not 0 < value <= sys.float_info.max:
        raise ParameterError(f"{name!r} must be a positive number; got {value!r}.")


def check_share(name: str, value: float) -> None:
    """Refuse a number that is no share of rows."""
    if not isinstance(value, Real) or not 0 < value < 1:
        raise ParameterError(f"{name!r} must be a share between 0 and 1; got {value!r}.")
