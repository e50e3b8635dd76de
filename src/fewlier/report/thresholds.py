"""What each threshold would mean: the figures behind the slider."""

from typing import Any

import numpy as np

from fewlier.decision.calibration import false_alarm_interval
from fewlier.report.facts import Facts
from fewlier.table.labels import ANOMALY, NORMAL

N_QUANTILES = 300
N_HIGHEST = 100


def thresholds(facts: Facts) -> dict[str, Any]:
    """Return, as JSON values, thresholds in rising order and how many rows lie above each.

    They are quantiles of the scores, the highest scores one by one, and the model's own, at
    `start`. `rate` is the false-alarm rate that held-back normals vouch for; 95 % of such
    thresholds have one from `rate_low` to `rate_high`.
    """
    scores, own = np.sort(facts.scores), facts.calibration.threshold
    quantiles = np.quantile(scores, np.linspace(0, 1, N_QUANTILES), method="nearest")
    steps = np.unique(np.concatenate([quantiles, scores[-N_HIGHEST:], [own]]))
    held_back = facts.calibration.normal_scores
    n_above = _above(held_back, steps)
    low, high = false_alarm_interval(n_above, len(held_back))
    found: dict[str, Any] = {
        "thresholds": steps.tolist(),
        "start": int(np.searchsorted(steps, own)),
        "above": _above(scores, steps).tolist(),
        "rate": ((1 + n_above) / (1 + len(held_back))).tolist(),
        "rate_low": low.tolist(),
        "rate_high": high.tolist(),
        "rows": len(scores),
    }
    if facts.labels is not None:
        for name, label in (("normal", NORMAL), ("anomalous", ANOMALY)):
            part = np.sort(facts.scores[facts.labels.compared == label])
            found[name] = {"rows": len(part), "above": _above(part, steps).tolist()}
    return found


def _above(ascending: np.ndarray, steps: np.ndarray) -> np.ndarray:
    below: np.ndarray = np.searchsorted(ascending, steps, side="right")
    return len(ascending) - below
