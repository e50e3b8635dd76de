"""`Ranking`: how well labelled anomalies rank that a fit has held out, and how sure that is."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy import special

from fewlier.decision.threshold import TAILS
from fewlier.table.arrays import Floats

PRIOR_PLACES = 8
"""As many anomalies vary as a coin would, beside those that are known: coverage chose it."""


@final
@dataclass(frozen=True)
class Ranking:
    """The AUC of k labelled anomalies among held-out normals, with an interval.

    Parameters
    ----------
    auc : float
        Mean over the anomalies of the share of normals that score lower; ties count half.
    low, high : float
        The interval of the AUC among new rows; it is right for about 95 % of fits, if the labelled
        anomalies are like those to come.
    n_anomalies : int
        How many anomalies there are.
    """

    auc: float
    low: float
    high: float
    n_anomalies: int

    @classmethod
    def of(cls, normals: Floats, anomalies: Floats) -> "Ranking | None":
        """Compare scores; None without an anomaly.

        With far fewer anomalies than normals the AUC t is the mean of k places u in [0, 1]: the
        shares of normals below each anomaly. Its interval is that of a coin's bias after e throws,
        e = k v / s^2, with v = t (1 - t) the variance of a coin of this mean, the largest there is,
        and s^2 = (sum (u - t)^2 + 8 v) / (k + 8), because few places say little of how they vary.
        The interval for a coin is Clopper and Pearson's (1934).

        Parameters
        ----------
        normals : array (m,)
            Scores of held-out normals, ascending.
        anomalies : array (k,)
            Scores of labelled anomalies by what has not trained on them.
        """
        k = len(anomalies)
        if not k:
            return None
        below = sum(np.searchsorted(normals, anomalies, side=side) for side in ("left", "right"))
        places = np.asarray(below) / (2 * len(normals))
        auc = float(places.mean())
        mean = (k * auc + 0.5) / (k + 1)  # so that a coin that always fell alike may yet differ
        coin = mean * (1 - mean)
        spread = (((places - auc) ** 2).sum() + PRIOR_PLACES * coin) / (k + PRIOR_PLACES)
        hits, misses = (k * coin / spread * share for share in (auc, 1 - auc))
        low = special.betaincinv(hits, misses + 1, TAILS[0]) if hits else 0.0
        high = special.betaincinv(hits + 1, misses, TAILS[1]) if misses else 1.0
        return cls(auc, float(low), float(high), k)

    @property
    def meaning(self) -> str:
        """It in words."""
        few = "1 labelled anomaly that was" if self.n_anomalies == 1 else ""
        held_out = few or f"{self.n_anomalies} labelled anomalies that were"
        digits = 3 if self.low >= 0.985 else 2  # 1.00 to 1.00 would not hold 0.998
        interval = f"95 %: {self.low:.{digits}f} to {self.high:.{digits}f}"
        return f"AUC {self.auc:.3f} ({interval}), by {held_out} held out"

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "auc": self.auc,
            "auc_interval": [self.low, self.high],
            "n_anomalies": self.n_anomalies,
        }
