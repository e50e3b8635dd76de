"""`Remaining`: how many anomalies are left, by how the questions were answered so far."""

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from fewlier.table.arrays import Bools, Floats, Ints

# Intercept and slope of log odds on the score, over tables: mean, deviations and correlation.
_MEAN = np.array([-4.7, 1.3])
_DEVIATION, _CORRELATION = np.array([2.9, 1.0]), -0.92
# Other rows that stand in as normal ones, one at each of their quantiles. Most rows are normal.
_N_NORMAL = 50
# No table follows a logistic curve exactly: intervals of tables needed twice the variance.
_INFLATION = 2.0
_STEPS, _MAX_STEP = 50, 2.0
_DRAWS, _SHARE, _N_BINS = 400, 0.9, 200


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
    had when it was asked, and fifty of the other rows, taken for normal, give the posterior of a
    and b, normal around its maximum; the prior is what was found on other tables. Each of 400 draws
    of a and b gives a number of anomalies. The estimate is the median, and the interval holds the
    middle 90 %.

    Parameters
    ----------
    asked, is_anomaly : array (m,)
        Scores of rows when they were asked, and which turned out to be anomalies.
    others : pair of arrays (n,)
        Scores of rows that nobody labelled, and for how many rows each stands.
    seed : int
        What is drawn depends on it alone.
    """
    bins, counts = _binned(*others)
    if not counts.sum():
        return Remaining(0.0, 0, 0)
    normal = np.quantile(others[0], (np.arange(_N_NORMAL) + 0.5) / _N_NORMAL)
    score = np.concatenate([asked, normal])
    at, covariance = _posterior(score, np.pad(is_anomaly.astype(np.float64), (0, _N_NORMAL)))
    rng = np.random.default_rng(seed)
    draws = rng.multivariate_normal(at, _INFLATION * covariance, size=_DRAWS)
    p = expit(draws[:, :1] + np.maximum(draws[:, 1:], 0.0) * bins)
    left = rng.binomial(counts, p).sum(1)
    low, middle, high = np.quantile(left, [(1 - _SHARE) / 2, 0.5, (1 + _SHARE) / 2]).tolist()
    return Remaining(middle, int(low), int(np.ceil(high)))


def _posterior(score: Floats, is_anomaly: Floats) -> tuple[Floats, Floats]:
    """Return the likeliest intercept and slope, shape (2,), and their covariance, by Newton."""
    x = np.column_stack([np.ones(len(score)), score])
    covariance = np.outer(_DEVIATION, _DEVIATION) * [[1, _CORRELATION], [_CORRELATION, 1]]
    precision, at = np.linalg.inv(covariance), _MEAN
    for _ in range(_STEPS):
        p = expit(x @ at)
        slope = x.T @ (is_anomaly - p) - precision @ (at - _MEAN)
        curvature = x.T @ (x * (p * (1 - p))[:, None]) + precision
        step = np.linalg.solve(curvature, slope)
        at = at + step * min(1.0, _MAX_STEP / max(np.abs(step).max(), 1e-9))
    return at, np.linalg.inv(curvature)


def _binned(scores: Floats, stands_for: Floats) -> tuple[Floats, Ints]:
    """Count scores in bins so narrow that their middle stands for all of them."""
    counts, edges = np.histogram(scores, bins=_N_BINS, weights=stands_for)
    return (edges[:-1] + edges[1:]) / 2, np.round(counts).astype(np.int64)
