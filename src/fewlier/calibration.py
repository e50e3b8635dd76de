"""Thresholds, probabilities and p-values, from the scores of normals that nothing else has seen."""

import math
from dataclasses import dataclass, replace
from numbers import Real
from typing import final

import numpy as np
import numpy.typing as npt

from fewlier.errors import UserError

Floats = npt.NDArray[np.float64]


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
    """

    normal_scores: Floats
    training_scores: Floats
    threshold: float
    guarantee: str
    rule: str = ""

    def at_false_alarm_rate(self, rate: float) -> "Calibration":
        """Move the threshold so that fresh normals exceed it with probability at most `rate`.

        The conformal quantile: of m held-back normals at most floor(rate (m + 1)) - 1 lie above.
        With m < 1 / rate - 1 the smallest attainable rate, 1 / (m + 1), is used.
        """
        check_share("false_alarm_rate", rate)
        n = len(self.normal_scores)
        above = min(max(math.floor(rate * (n + 1) + 1e-9), 1), n)
        stands_for = above / (n + 1)
        rule = f"false-alarm rate {rate:g}"
        if not math.isclose(stands_for, rate, rel_tol=0.05):
            rule = f"false-alarm rate {stands_for:.2g}; {rate:g} was asked for"
        return replace(self, threshold=float(self.normal_scores[-above]), rule=rule)

    def at_contamination(self, share: float) -> "Calibration":
        """Move the threshold so that this share of the training rows lies above it."""
        check_share("contamination", share)
        threshold = float(np.quantile(self.training_scores, 1 - share))
        return replace(self, threshold=threshold, rule=f"contamination {share:g}")

    @property
    def smallest_rate(self) -> float:
        """The smallest false-alarm rate that so many held-back normals can vouch for."""
        return 1 / (len(self.normal_scores) + 1)

    def p_value(self, scores: Floats) -> Floats:
        """Return (1 + #{held-back normals with a score at least as high}) / (m + 1)."""
        below = np.searchsorted(self.normal_scores, scores, side="left")
        n = len(self.normal_scores)
        return (1 + n - below) / (n + 1)

    def probability(self, scores: Floats) -> Floats:
        """Map scores to (0, 1), increasing, 1/2 at the threshold.

        The step is as wide as the upper half of the normals' scores. It orders rows and agrees
        with the threshold; it is no frequency.
        """
        width = self.normal_scores[-1] - np.median(self.normal_scores)
        z = (scores - self.threshold) / max(float(width), 1e-9)
        return 1 / (1 + np.exp(-np.clip(z, -700, 700)))


def check_share(name: str, value: float) -> None:
    """Refuse a number that is no share of rows."""
    if not isinstance(value, Real) or not 0 < value < 1:
        raise UserError(f"{name!r} must be a share between 0 and 1; got {value!r}.")
