"""`Threshold`: the score above which rows are anomalies, and its false-alarm rate."""

import sys
from dataclasses import dataclass
from numbers import Real
from typing import Any, final

import numpy as np
import numpy.typing as npt
from scipy import special

from fewlier.arrays import Floats
from fewlier.errors import ParameterError

CONFIDENCE = 0.95
"""Share of fits whose false-alarm rate lies in the stated interval."""


def false_alarm_interval(n_above: npt.ArrayLike, n_held_out: int) -> tuple[Floats, Floats]:
    """Return the interval in which 95 % of thresholds have their false-alarm rate.

    At the r-th highest of m held-out normals, r = 1 + those above it, a fresh normal lies above
    the threshold with a probability that differs from fit to fit: it is Beta(r, m + 1 - r)
    distributed, with mean r / (m + 1).
    """
    rank = np.minimum(np.asarray(n_above) + 1, n_held_out)
    tails = ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2)
    low, high = (special.betaincinv(rank, n_held_out + 1 - rank, tail) for tail in tails)
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
        How it was chosen, in words.
    n_above, n_held_out : int
        Held-out normals that score above it, and all of them; 0 where none was held out.
    """

    value: float
    rule: str
    n_above: int
    n_held_out: int

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

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        interval = self.interval and list(self.interval)
        rates = {"expected_false_alarm_rate": self.rate, "false_alarm_interval": interval}
        return {"threshold": self.value, "rule": self.rule, **rates}


def percent(share: float) -> str:
    """Write a share as a percentage with as many digits as it needs."""
    number = 100 * share
    digits = 0 if number >= 10 else 1 if number >= 0.1 else 2
    return f"{number:.{digits}f}"


def check_cost(name: str, value: float) -> None:
    """Refuse a parameter that is not a positive number."""
    if not isinstance(value, Real) or not 0 < value <= sys.float_info.max:
        raise ParameterError(f"{name!r} must be a positive number; got {value!r}.")


def check_share(name: str, value: float) -> None:
    """Refuse a parameter that is not a share of rows."""
    if not isinstance(value, Real) or not 0 < value < 1:
        raise ParameterError(f"{name!r} must be a share between 0 and 1; got {value!r}.")
