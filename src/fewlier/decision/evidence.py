"""`Evidence`: the log likelihood ratio of a score."""

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy import optimize, special

from fewlier.table.arrays import Floats

# The curve is about linear up to this many spreads of the normals, and logarithmic beyond.
_LINEAR = 3.0
# asinh of the largest distance of a threshold from the median: some 600,000 spreads.
_MAX_DISTANCE = 14.0
# The curve rises even if labelled anomalies score no higher than normals, and is never a step.
_SLOPES = (1e-3, 100.0)


@final
@dataclass(frozen=True)
class Evidence:
    """log P(score | anomaly) / P(score | normal) = a + b asinh((score - middle) / spread).

    Parameters
    ----------
    middle, spread : float
        Of the scores of held-out normals.
    intercept, slope : float
        a and b.
    """

    middle: float
    spread: float
    intercept: float
    slope: float

    @classmethod
    def fit(cls, normals: Floats, anomalies: Floats) -> "Evidence":
        """Fit a logistic curve to the scores of held-out normals and anomalies.

        Both classes have the same weight. Targets are Platt's (1999): with k anomalies no score is
        more than (k + 1) / (k + 2) certain.
        """
        middle, high = map(float, np.quantile(normals, (0.5, 0.95)))
        spread = max(_LINEAR * (high - middle), 1e-9)
        m, k = len(normals), len(anomalies)
        x = _compress(np.concatenate([normals, anomalies]), middle, spread)
        weight = np.repeat([0.5 / m, 0.5 / k], [m, k])
        target = np.repeat([1 / (m + 2), (k + 1) / (k + 2)], [m, k])

        def loss(ab: Floats) -> tuple[float, Floats]:
            odds = ab[0] + ab[1] * x
            cross_entropy = np.logaddexp(0, odds) - target * odds
            slope = weight * (special.expit(odds) - target)
            return float(weight @ cross_entropy), np.array([slope.sum(), slope @ x])

        bounds = ((None, None), _SLOPES)
        found = optimize.minimize(loss, (0.0, 1.0), jac=True, bounds=bounds, method="L-BFGS-B")
        return cls(middle, spread, *map(float, found.x))

    def log_ratio(self, scores: Floats) -> Floats:
        """Return the evidence of scores."""
        return self.intercept + self.slope * _compress(scores, self.middle, self.spread)

    def beyond(self, threshold: float, scores: Floats) -> Floats:
        """Return how much more evidence scores have than a threshold, 0 exactly at it."""
        places = (_compress(s, self.middle, self.spread) for s in (scores, np.array(threshold)))
        return self.slope * np.subtract(*places)

    def score_at(self, log_ratio: float) -> float:
        """Return the score that has this evidence."""
        place = np.clip((log_ratio - self.intercept) / self.slope, -_MAX_DISTANCE, _MAX_DISTANCE)
        return self.middle + self.spread * math.sinh(place)


def _compress(scores: Floats, middle: float, spread: float) -> Floats:
    """Return scores on the scale of normals; far scores grow only logarithmically."""
    with np.errstate(over="ignore"):
        distance = np.clip((scores - middle) / spread, -1e300, 1e300)
    return np.arcsinh(distance)
