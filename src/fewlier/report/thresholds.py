"""What each threshold would mean: the numbers behind the slider."""

from typing import Any

import numpy as np

from fewlier.decision.threshold import false_alarm_interval
from fewlier.report.facts import Facts
from fewlier.table.arrays import Floats, Ints
from fewlier.table.labels import ANOMALY, NORMAL

N_QUANTILES = 300
N_HIGHEST = 100


def tabulate_thresholds(facts: Facts) -> dict[str, Any]:
    """Return, as JSON values, ascending thresholds and the number of rows above each.

    They are quantiles of the scores, the highest scores one by one, and the model's own threshold,
    at position `start`. `rate` is the false-alarm rate by the held-out normals; for 95 % of such
    thresholds the true rate is between `rate_low` and `rate_high`.
    """
    scores, own = facts.scores, facts.calibration.threshold
    quantiles = np.quantile(scores, np.linspace(0, 1, N_QUANTILES), method="nearest")
    steps = np.unique(np.concatenate([quantiles, np.sort(scores)[-N_HIGHEST:], [own]]))
    held_out = facts.calibration.normal_scores
    n_above = _count_above(held_out, steps)
    low, high = false_alarm_interval(n_above, len(held_out))
    found: dict[str, Any] = {
        "thresholds": steps.tolist(),
        "start": int(np.searchsorted(steps, own)),
        "above": _count_above(scores, steps).tolist(),
        "rate": ((1 + n_above) / (1 + len(held_out))).tolist(),
        "rate_low": low.tolist(),
        "rate_high": high.tolist(),
        "rows": len(scores),
    }
    if facts.labels is not None:
        for name, label in (("normal", NORMAL), ("anomalous", ANOMALY)):
            labelled = scores[facts.labels.compared == label]
            above = _count_above(labelled, steps).tolist()
            found[name] = {"rows": len(labelled), "above": above}
    return found


def _count_above(scores: Floats, steps: Floats) -> Ints:
    return np.asarray(len(scores) - np.searchsorted(np.sort(scores), steps, side="right"))
