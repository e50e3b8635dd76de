"""`Threshold`: the score above which rows are anomalies, and its false-alarm rate."""

import math
import sys
from dataclasses import dataclass
from enum import StrEnum
from numbers import Real
from typing import Any, final

import numpy as np
import numpy.typing as npt
from scipy import special

from fewlier.errors import UserError
from fewlier.table.arrays import Floats

ENOUGH_ANOMALIES = 20
"""Fewest held-out anomalies with which probabilities and costs are not called rough."""
CONFIDENCE = 0.95
"""Share of fits whose false-alarm rate lies in the stated interval."""
TAILS = ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2)
"""The quantiles at which such an interval ends."""


@final
class Promise(StrEnum):
    """What p-values and false-alarm rates promise, in words."""

    EXACT = "exact: no member, epoch or weight depends on the normals behind it"
    CROSSED = (
        "approximate (cross-validated): rates held in simulations; there is no worst-case bound"
    )
    NOTHING = "none: the normals behind it also chose the epochs"


def false_alarm_interval(n_above: npt.ArrayLike, n_held_out: int) -> tuple[Floats, Floats]:
    """Return the interval in which 95 % of thresholds have their false-alarm rate.

    At the r-th highest of m held-out normals, r = 1 + those above it, a fresh normal lies above
    the threshold with a probability that differs from fit to fit: it is Beta(r, m + 1 - r)
    distributed, with mean r / (m + 1).
    """
    rank = np.minimum(np.asarray(n_above) + 1, n_held_out)
    low, high = (special.betaincinv(rank, n_held_out + 1 - rank, tail) for tail in TAILS)
    return low, high


@final
@dataclass(frozen=True)
class Costs:
    """What a threshold by costs is expected to cost per row, and what it would cost without one.

    Parameters
    ----------
    miss, alarm : float
        The price of a missed anomaly and of a false alarm.
    share : float
        Share of anomalies among the rows to come.
    missed, alarmed : float
        Shares of held-out anomalies at or below the threshold, and of held-out normals above it.
    n_anomalies : int
        How many anomalies were held out.
    """

    miss: float
    alarm: float
    share: float
    missed: float
    alarmed: float
    n_anomalies: int

    @property
    def expected(self) -> float:
        """The cost of a row at this threshold."""
        return self.share * self.miss * self.missed + (1 - self.share) * self.alarm * self.alarmed

    @property
    def flag_all(self) -> float:
        """The cost of a row if every row is flagged."""
        return (1 - self.share) * self.alarm

    @property
    def flag_none(self) -> float:
        """The cost of a row if no row is flagged."""
        return self.share * self.miss

    @property
    def meaning(self) -> str:
        """The three costs in words, and whether the threshold is worth having."""
        own, every, none = (
            _amount(1000 * cost) for cost in (self.expected, self.flag_all, self.flag_none)
        )
        text = f"a cost of {own} for 1,000 rows; flagging all costs {every}, flagging none {none}"
        if self.expected >= min(self.flag_all, self.flag_none):
            better = "all" if self.flag_all < self.flag_none else "none"
            text += f": this threshold is no better than flagging {better}"
        is_rough = self.n_anomalies < ENOUGH_ANOMALIES
        return text + f"; rough, from {self.n_anomalies} held-out anomalies" * is_rough

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values, the costs per row."""
        names = ("miss", "alarm", "share", "expected", "flag_all", "flag_none", "n_anomalies")
        return {name: getattr(self, name) for name in names}


@final
@dataclass(frozen=True)
class Threshold:
    """The score above which rows are anomalies, and how many fresh normals it flags.

    Parameters
    ----------
    value : float
        The score.
    rule : str
        How it was chosen, in words.
    n_above, n_held_out : int
        Held-out normals that score above it, and all of them; 0 where none was held out.
    flagged : float
        Expected share of new rows that it flags, if they are like the training rows.
    caveat : str
        What unlabelled rows do to its false-alarm rate, in words.
    costs : Costs or None
        What it costs, if it was chosen by costs.
    """

    value: float
    rule: str
    n_above: int
    n_held_out: int
    flagged: float
    caveat: str
    costs: Costs | None

    @property
    def rate(self) -> float | None:
        """Expected share of fresh normals that it flags, where rows were held out to know it."""
        return (self.n_above + 1) / (self.n_held_out + 1) if self.n_held_out else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The interval in which 95 % of such thresholds have their false-alarm rate."""
        if not self.n_held_out:
            return None
        low, high = false_alarm_interval(self.n_above, self.n_held_out)
        return float(low), float(high)

    @property
    def meaning(self) -> str:
        """The rule, and how far the false-alarm rate may be from it, in words."""
        if self.interval is None:
            return self.rule
        low, high = map(percent, self.interval)
        return f"{self.rule}; 95 % of such thresholds have {low} to {high} % false alarms"

    @property
    def facts(self) -> list[tuple[str, str]]:
        """What to expect of it, as names and texts."""
        found = [("flags", f"about {percent(self.flagged)} % of new rows like the training rows")]
        found += [("alarms", self.caveat)] * bool(self.caveat)
        return found + ([("expected", self.costs.meaning)] if self.costs else [])

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "threshold": self.value,
            "rule": self.rule,
            "expected_false_alarm_rate": self.rate,
            "false_alarm_interval": self.interval and list(self.interval),
            "expected_flagged_share": self.flagged,
            "caveat": self.caveat,
            "costs": self.costs and self.costs.to_json(),
        }


def threshold_at_rate(normals: Floats, rate: float) -> tuple[float, str]:
    """Return the threshold for a false-alarm rate, by the ascending scores of normals, and why."""
    check_share("false_alarm_rate", rate)
    n = len(normals)
    above = min(max(math.floor(rate * (n + 1) + 1e-9), 1), n)
    stands_for = above / (n + 1)
    rule = f"false-alarm rate {100 * rate:.4g} %"
    if not math.isclose(stands_for, rate, rel_tol=0.05):
        asked_for = f"{100 * rate:.4g} % was asked for"
        rule = f"false-alarm rate {percent(stands_for)} %; {asked_for}"
    return float(normals[-above]), rule


def percent(share: float) -> str:
    """Write a share as a percentage with as many digits as it needs."""
    number = 100 * share
    digits = 0 if number >= 10 else 1 if number >= 0.1 else 2
    return f"{number:.{digits}f}"


def _amount(number: float) -> str:
    """Write an amount to three digits, or as a whole number."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def check_cost(name: str, value: float) -> None:
    """Refuse a parameter that is not a positive number."""
    if not isinstance(value, Real) or not 0 < value <= sys.float_info.max:
        raise UserError(parameter=name, expected="a positive number", got=value)


def check_share(name: str, value: float) -> None:
    """Refuse a parameter that is not a share of rows."""
    if not isinstance(value, Real) or not 0 < value < 1:
        raise UserError(parameter=name, expected="a share between 0 and 1", got=value)
