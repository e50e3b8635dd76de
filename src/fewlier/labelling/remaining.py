"""`Remaining`: how many anomalies are left, by how the questions were answered so far."""

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from fewlier.arrays import Bools, Floats, Ints

# Mean and standard deviation over tables of the intercept and of the slope of log odds on the
# score: what is known of a table before the first answer.
_MEAN, _DEVIATION = np.array([-5.0, 1.0]), np.array([1.5, 0.4])
_STEPS, _DRAWS = 50, 400
_SHARE = 0.9


class Remaining(NamedTuple):
    """How many rows that nobody answered are anomalies: an estimate, and a 90 % interval."""

    estimate: float
    low: int
    high: int


def estimate_remaining(
    asked: Floats, is_anomaly: Bools, others: tuple[Floats, Floats], seed: int
) -> Remaining:
    r"""Estimate how many of the other rows are anomalies.

    A row with score s is one with log odds a + b s. The answers, each with the score that its row
    had when it was asked, give the posterior of a and b, normal around its maximum; the prior is
    what was found on other tables. Each of 400 draws of a and b gives a number of anomalies.

    Parameters
    ----------
    asked, is_anomaly : array (m,)
        Scores of rows when they were asked, and which turned out to be anomalies.
    others : pair of arrays (n,)
        Scores of rows that nobody labelled, and for how many rows each stands.
    seed : int
        What is drawn depends on it alone.
    """
    x = np.column_stack([np.ones(len(asked)), asked])
    at, precision = _MEAN, np.diag(1 / _DEVIATION**2)
    for _ in range(_STEPS):
        p = expit(x @ at)
        slope = x.T @ (is_anomaly - p) - precision @ (at - _MEAN)
        curvature = x.T @ (x * (p * (1 - p))[:, None]) + precision
        step = np.linalg.solve(curvature, slope)
        at = at + step * min(1.0, 2.0 / max(np.abs(step).max(), 1e-9))
    rng = np.random.default_rng(seed)
    draws = rng.multivariate_normal(at, np.linalg.inv(curvature), size=_DRAWS)
    bins, counts = _binned(*others)
    p = expit(draws[:, :1] + np.maximum(draws[:, 1:], 0.0) * bins)
    left = rng.binomial(counts, p).sum(1)
    low, high = np.quantile(left, [(1 - _SHARE) / 2, (1 + _SHARE) / 2]).astype(np.int64).tolist()
    return Remaining(float(left.mean()), low, high)


def _binned(scores: Floats, stands_for: Floats) -> tuple[Floats, Ints]:
    """Count scores in bins so narrow that their middle stands for all of them."""
    counts, edges = np.histogram(scores, bins=200, weights=stands_for)
    return (edges[:-1] + edges[1:]) / 2, np.round(counts).astype(np.int64)
