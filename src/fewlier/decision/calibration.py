"""`Calibration`: thresholds, p-values and probabilities, from scores of held-out normals.

Held-out rows are scored by what has not trained on them, as new rows are.
"""

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import final

import numpy as np
from scipy import special

from fewlier.decision.evidence import Evidence
from fewlier.decision.ranking import Ranking
from fewlier.decision.threshold import (
    ENOUGH_ANOMALIES,
    Costs,
    Promise,
    Threshold,
    check_cost,
    check_share,
    percent,
    threshold_at_rate,
)
from fewlier.errors import UserError, parameter, warn
from fewlier.modelfile.state import State, require
from fewlier.table.arrays import Bools, Floats, Ints

_SCORES = ("normal_scores", "training_scores", "anomaly_scores")


@final
@dataclass(frozen=True, eq=False)
class Calibration:
    """What a score means.

    Parameters
    ----------
    normal_scores : array (m,)
        Scores of the held-out normals, ascending.
    training_scores : array (t,)
        Scores of training rows that are not labelled anomalies, by what has not seen them,
        ascending: normals, and whatever is hidden among the unlabelled rows.
    threshold : float
        Rows that score above it are anomalies.
    promise : Promise
        What the p-values promise where every row behind them is normal.
    rule : str
        How the threshold was chosen, in words.
    anomaly_scores : array (k,)
        Scores of labelled anomalies by members that did not train on them, ascending.
    prior : float or None
        Share of anomalies among the rows to come, if the user has stated it.
    caveat : str
        What unlabelled rows among the held-out normals do to the promise, in words.
    labelled_share : float
        Share of labelled anomalies among the training rows.
    costs : (float, float) or None
        Costs of a miss and of an alarm, if they have set the threshold.
    """

    normal_scores: Floats
    training_scores: Floats
    threshold: float
    promise: Promise
    rule: str = ""
    anomaly_scores: Floats = field(default_factory=lambda: np.empty(0))
    prior: float | None = None
    caveat: str = ""
    labelled_share: float = 0.0
    costs: tuple[float, float] | None = None

    @property
    def guarantee(self) -> str:
        """What the p-values promise, in words."""
        return "; ".join(filter(None, (self.promise, self.caveat)))

    @property
    def decision(self) -> Threshold:
        """The threshold with what to expect of it."""
        n = 0 if self.promise is Promise.NOTHING else len(self.normal_scores)
        n_above = int((self.normal_scores > self.threshold).sum())
        flagged = float(self.flagged_share(np.array([self.threshold]))[0])
        costs = None
        if self.costs and self.prior:
            missed = float((self.anomaly_scores <= self.threshold).mean())
            shares = self.prior, missed, n_above / len(self.normal_scores)
            costs = Costs(*self.costs, *shares, len(self.anomaly_scores))
        return Threshold(self.threshold, self.rule, n_above, n, flagged, self.caveat, costs)

    @property
    def ranking(self) -> Ranking | None:
        """How well the held-out anomalies rank among the held-out normals."""
        return Ranking.of(self.normal_scores, self.anomaly_scores)

    def state(self) -> State:
        """Return what a model file holds of it."""
        names = ("threshold", "rule", "promise", "prior", "caveat", "labelled_share")
        record = {name: getattr(self, name) for name in names}
        record["costs"] = self.costs and list(self.costs)
        return State(record, {name: getattr(self, name) for name in _SCORES})

    @classmethod
    def from_state(cls, state: State) -> "Calibration":
        """Inverse of `state`, checked."""
        normal, training, anomaly = (state.array(name, np.float64, (None,)) for name in _SCORES)
        for name, scores in zip(_SCORES, (normal, training, anomaly), strict=True):
            require(bool((np.diff(scores) >= 0).all()), f"'{state.name}.{name}' is not sorted.")
        require(min(len(normal), len(training)) > 0, f"{state.name!r} has no scores.")
        costs = tuple(state.numbers("costs")) if state.has("costs") else None
        is_pair = costs is None or (len(costs) == 2 and min(costs) > 0 and len(anomaly) > 0)
        require(is_pair, f"'{state.name}.costs' must be two costs of held-out anomalies.")
        return cls(
            normal,
            training,
            state.number("threshold"),
            Promise(state.text("promise", [*Promise])),
            state.text("rule"),
            anomaly,
            state.positive("prior", below=1) if state.has("prior") else None,
            state.text("caveat"),
            state.number("labelled_share", least=0, most=1),
            costs,  # type: ignore[arg-type] # a pair
        )

    def by_rule(
        self,
        *,
        false_alarm_rate: float | None,
        contamination: float | None,
        cost_miss: float | None,
        cost_alarm: float | None,
        is_labelled: bool,
    ) -> "Calibration":
        """Move the threshold by the one rule that is given, as `AnomalyDetector.set_threshold`.

        By costs, the labelled share stands in for a contamination that is not given, if
        `is_labelled`: all training rows are.
        """
        if cost_miss is not None and cost_alarm is not None and false_alarm_rate is None:
            share = self.labelled_share if contamination is None and is_labelled else contamination
            return self.at_costs(cost_miss, cost_alarm, share)
        rates = {"false_alarm_rate": false_alarm_rate, "contamination": contamination}
        costs = {"cost_miss": cost_miss, "cost_alarm": cost_alarm}
        given = [name for name, value in (rates | costs).items() if value is not None]
        if len(given) == 1 and contamination is not None:
            return self.at_contamination(contamination)
        if len(given) != 1 or false_alarm_rate is None:
            rules = " and ".join(map(parameter, rates)), " and ".join(map(parameter, costs))
            raise UserError(
                f"The threshold must be set by one of {rules[0]}, or by both {rules[1]}; got "
                f"{' and '.join(map(parameter, given)) or 'none of these'}.",
                parameter=given[0] if given else "false_alarm_rate",
            )
        moved = self.at_false_alarm_rate(false_alarm_rate)
        moved.warn_of_rate(false_alarm_rate)
        return moved

    def at_false_alarm_rate(self, rate: float) -> "Calibration":
        """Move the threshold so that fresh normals exceed it with probability at most `rate`.

        The conformal quantile: of m held-out normals at most floor(rate (m + 1)) - 1 lie above.
        With m < 1 / rate - 1 the smallest attainable rate, 1 / (m + 1), is used.
        """
        threshold, rule = threshold_at_rate(self.normal_scores, rate)
        return replace(self, threshold=threshold, rule=rule, prior=None, costs=None)

    def warn_of_rate(self, rate: float) -> None:
        """Warn that a false-alarm rate is smaller than can be known, if so."""
        outcome = f"the threshold stands for {self.smallest_rate:.2g}"
        self.warn_if_too_few("false-alarm rate", rate, outcome)

    def at_contamination(self, share: float) -> "Calibration":
        """Move the threshold so that this share of new rows lies above it.

        It is the lowest known score that at most this share exceeds, by `flagged_share`, or the
        highest known score.
        """
        check_share("contamination", share)
        known = np.unique(np.concatenate([self.training_scores, self.anomaly_scores]))
        is_rare = self.flagged_share(known) <= share * (1 + 1e-9)
        threshold = float(known[np.argmax(is_rare)] if is_rare.any() else known[-1])
        rule = f"contamination {100 * share:.4g} %"
        return replace(self, threshold=threshold, rule=rule, prior=share, costs=None)

    def flagged_share(self, thresholds: Floats) -> Floats:
        """Return the expected share above each threshold of new rows like the training rows.

        (1 - a) (1 + #{training scores above}) / (t + 1) + a #{anomaly scores above} / k, where a
        is the share of labelled anomalies; 0 where none was held out.
        """
        rows = (1 + _n_above(self.training_scores, thresholds)) / (len(self.training_scores) + 1)
        k = len(self.anomaly_scores)
        share = self.labelled_share if k else 0.0
        found = _n_above(self.anomaly_scores, thresholds) / max(k, 1)
        return (1 - share) * rows + share * found

    def at_costs(self, miss: float, alarm: float, share: float | None) -> "Calibration":
        """Move the threshold to where a miss and a false alarm cost the same on average.

        A row is flagged if P(anomaly | score) `miss` > P(normal | score) `alarm`, where `share` is
        the share of anomalies among the rows to come.
        """
        if not len(self.anomaly_scores):
            raise UserError(
                "A threshold by cost needs held-out labelled anomalies; this model has none. Fit "
                f"with two or more labelled anomalies, or use {parameter('false_alarm_rate')}.",
                parameter="cost_miss",
            )
        check_cost("cost_miss", miss)
        check_cost("cost_alarm", alarm)
        if share is None:
            raise UserError(
                "A threshold by cost must have the share of anomalies among the rows to come, "
                f"{parameter('contamination')}: some training rows are unlabelled, and the "
                f"labelled anomalies are only {percent(self.labelled_share)} % of all rows. Give a "
                f"rough share, such as {parameter('contamination', 0.05)}, or use "
                f"{parameter('false_alarm_rate')}.",
                parameter="contamination",
            )
        check_share("contamination", share)
        ratio = math.log(alarm) - math.log(miss) - float(special.logit(share))
        costs = float(miss), float(alarm)
        anomalies = f"{100 * share:.3g} % of the rows are anomalies"
        rule = f"a miss costs {miss:g}, an alarm {alarm:g}; {anomalies}"
        threshold = self._evidence.score_at(ratio)
        rule += self._beyond_known(threshold)
        return replace(self, threshold=threshold, rule=rule, prior=float(share), costs=costs)

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
        return replace(self, threshold=threshold, rule=rule, prior=None, costs=None)

    def warn_if_none(self, rate: float, counts: Ints) -> None:
        """Warn, with the reason, that a false-discovery rate flags no row of a batch, if so.

        As in `at_discovery_rate`, k of n rows above all m normals are flagged if
        n / (m + 1) <= k rate.
        """
        self.warn_if_too_few("false-discovery rate", rate, "no row can be flagged")
        n_rows, n_above, m = int(counts.sum()), int(counts[-1]), len(self.normal_scores)
        is_none = n_rows and math.isinf(self.at_discovery_rate(rate, counts).threshold)
        if is_none and rate >= self.smallest_rate:
            least = math.ceil(n_rows / (m + 1) / rate)
            warn(
                f"No row of {n_rows:,} can be flagged at a false-discovery rate of {rate:g} unless "
                f"{least:,} score above all {m:,} held-out normal rows; {n_above:,} do. Score "
                "fewer rows at once, fit on more normal rows, or ask for a higher rate."
            )

    def rank(self, scores: Floats) -> Ints:
        """Return how many of the held-out normals score lower, from 0 to m."""
        return np.searchsorted(self.normal_scores, scores, side="left")

    def counts(self, scores: Floats) -> Ints:
        """Count the scores of each rank, shape (m + 1,)."""
        return np.bincount(self.rank(scores), minlength=len(self.normal_scores) + 1)

    @property
    def smallest_rate(self) -> float:
        """The smallest false-alarm rate that can be known from this many held-out normals."""
        return 1 / (len(self.normal_scores) + 1)

    def warn_if_too_few(self, what: str, rate: float, outcome: str) -> None:
        """Warn that a rate needs more held-out normals than there are."""
        if rate < self.smallest_rate:
            warn(
                f"A {what} of {rate:g} needs at least {round(1 / rate) - 1} held-out normal rows; "
                f"there are {len(self.normal_scores)} distinct ones, and {outcome}. Fit on more "
                "normal rows or ask for a higher rate."
            )

    def is_anomaly(self, scores: Floats) -> Bools:
        """Return which scores are above the threshold."""
        return np.asarray(scores > self.threshold)

    def p_value(self, scores: Floats) -> Floats:
        """Return (1 + #{held-out normals with a score at least as high}) / (m + 1)."""
        n = len(self.normal_scores)
        return (1 + n - self.rank(scores)) / (n + 1)

    def probability(self, scores: Floats) -> Floats:
        r"""Return P(anomaly | score), rising with the score.

        log odds = log prior odds + evidence of the score (see `Evidence`). The prior is the stated
        share of anomalies; without one, odds are even at the threshold. Without held-out
        anomalies, the log odds are the distance from the threshold divided by the upper half of
        the normals' range: they order rows, and are not frequencies.
        """
        if not len(self.anomaly_scores):
            width = self.normal_scores[-1] - np.median(self.normal_scores)
            odds = (scores - self.threshold) / max(float(width), 1e-9)
        elif self.prior is None:
            odds = self._evidence.beyond(self.threshold, scores)
        else:
            odds = special.logit(self.prior) + self._evidence.log_ratio(scores)
        return np.asarray(special.expit(np.clip(odds, -700, 700)))

    @property
    def meaning(self) -> str:
        """What `probability` rests on, in words."""
        k = len(self.anomaly_scores)
        if not k:
            return "an order of rows, no frequency: no labelled anomaly was held out"
        share = "even odds at the threshold"
        if self.prior is not None:
            share = f"if {100 * self.prior:.3g} % of the rows are anomalies"
        rough = "; rough, because they are few" if k < ENOUGH_ANOMALIES else ""
        return f"from {k} labelled anomalies that were held out, {share}{rough}"

    @cached_property
    def _evidence(self) -> Evidence:
        return Evidence.fit(self.normal_scores, self.anomaly_scores)

    def _beyond_known(self, threshold: float) -> str:
        """Say so where a threshold lies beyond all known scores."""
        known = np.concatenate([self.normal_scores, self.training_scores, self.anomaly_scores])
        if threshold < known.min():
            return "; every known row is flagged"
        return "; no known row is flagged" if threshold >= known.max() else ""


def _n_above(scores: Floats, thresholds: Floats) -> Ints:
    """Count the ascending scores above each threshold."""
    return np.asarray(len(scores) - np.searchsorted(scores, thresholds, side="right"))
