"""How far an unlabelled row is trusted to be normal: its weight in the likelihood."""

import math
from typing import Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from scipy import special
from torch import Tensor

from fewlier.table.arrays import Bools, Floats

Unlabelled = Literal["robust", "normal"]

# A doubtful row counts half where its log p is this many spreads below the median. The fence starts
# at 2, while the density is still broad: a cluster of anomalies that it learned then would look
# normal ever after. Over the first half of the epochs it widens to 4, to let the normals' tail in.
FIRST_FENCE, FENCE, WIDENING = 2.0, 4.0, 0.5
# The weight falls from 1 to 0 within about this many spreads.
STEP = 0.3
# Log p is in nats, whatever the columns' units: rows whose log p differs by less than 1 count as
# equally likely, however alike the others are.
MIN_SPREAD = 1.0
# From the median to the lower quartile of a Gaussian, in standard deviations.
QUARTILE = 0.6745
# Share of the unlabelled validation rows, the least likely, that do not judge epochs.
TRIMMED = 0.1
# Of rows beyond the last fence, as many stand behind thresholds as the tail of the others has there
# at most in this share of tables.
TAIL_SHARE, MIN_EXPECTED = 0.95, 1e-9


class DoubtfulRows(NamedTuple):
    """Counts doubtful rows that train: those that were looked at, and those not trusted."""

    n_rows: int
    n_untrusted: int


def fence_at(epoch: int, max_epochs: int) -> float:
    """Return the fence of an epoch, the first of which is 1."""
    done = min(1.0, (epoch - 1) / (WIDENING * max_epochs))
    return FIRST_FENCE + done * (FENCE - FIRST_FENCE)


def trust(
    log_p: Float[Tensor, "*m n"],
    weight: Float[Tensor, "*m n"],
    doubtful: Bool[Tensor, "*m n"],
    fence: float = FENCE,
) -> Float[Tensor, "*m n"]:
    r"""Return what each row of a batch counts in the likelihood, between 0 and its weight.

    w = sigmoid((z + fence) / STEP) where a row is doubtful, else 1, with
    z = (log p - median) / spread and spread = (median - lower quartile) / 0.6745, at least
    MIN_SPREAD: robust location and scale over all rows of the batch. The scale is measured on
    the lower half, because log p of a clean table has a long lower tail. w has no gradient.

    Parameters
    ----------
    log_p : tensor (m, n)
        log p of the rows of each member.
    weight : tensor (m, n)
        1 for a row that counts, 0 for padding.
    doubtful : tensor (m, n)
        Whether a row may be a hidden anomaly.
    fence : float
        How many spreads below the median a row counts half.
    """
    log_p = log_p.detach()
    lower, median = _quantiles(log_p, weight > 0, (0.25, 0.5))
    spread = ((median - lower) / QUARTILE).clamp_min(MIN_SPREAD)
    trusted = torch.sigmoid(((log_p - median) / spread + fence) / STEP)
    return weight * torch.where(doubtful, trusted, 1)


def is_trusted(
    log_p: Float[Tensor, "*m n"], doubtful: Bool[Tensor, "*m n"]
) -> Bool[Tensor, "*m n"]:
    """Mark rows that count at least half when training ends."""
    return trust(log_p, torch.ones_like(log_p), doubtful) >= 0.5


def may_be_tail(score: Floats, doubtful: Bools) -> Bools:
    r"""Mark rows that stand behind thresholds: all but doubtful ones that are too odd to be normal.

    On a table without anomalies the rows beyond the fence are the tail of the normals, and without
    them thresholds would be too low. So as many stay, the least odd, as the tail of all rows may
    have beyond the lowest score s of a row that is not trusted. From the 50 to the 75 % quantile
    the rows above a score halve, and from the 80 to the 90 % quantile; if they go on like that,
    e = n (1 - b) 2^{-(s - q_b) / (q_b - q_a)} rows are expected beyond s, the larger of the two e.
    In 19 of 20 tables there are no more than the 95 % quantile of a Poisson distribution around it.

    Rows are trusted by `is_trusted`, in units of their spread: that of `trust`, or the standard
    deviation of the lower nine tenths, if that is larger.

    Parameters
    ----------
    score : array (n,)
        Scores of normals, higher is odder, in any unit.
    doubtful : array of bool (n,)
        Whether a row may be a hidden anomaly.
    """
    middle, upper, start, end = np.quantile(score, (0.5, 0.75, 0.8, 0.9))
    # Where many rows score the same, the quartile alone says too little.
    spread = max((upper - middle) / QUARTILE, score[score <= end].std())
    if not spread:
        return np.ones(len(score), dtype=np.bool_)
    units = torch.from_numpy((middle - score) / spread)[None]
    kept: Bools = is_trusted(units, torch.from_numpy(doubtful)[None])[0].numpy()
    untrusted = np.flatnonzero(~kept)
    if len(untrusted):
        untrusted = untrusted[np.argsort(score[untrusted], kind="stable")]
        least = float(score[untrusted[0]])
        halvings = (least - upper) / (QUARTILE * spread), (least - end) / max(end - start, 1e-300)
        expected = len(score) * max(0.25 * 0.5 ** halvings[0], 0.1 * 0.5 ** halvings[1])
        most = special.pdtrik(TAIL_SHARE, max(expected, MIN_EXPECTED))
        kept[untrusted[: math.ceil(most)]] = True
    return kept


def trim(
    log_p: Float[Tensor, "*m n"],
    weight: Float[Tensor, "*m n"],
    doubtful: Bool[Tensor, "*m n"],
) -> Float[Tensor, "*m n"]:
    """Leave out the doubtful rows of the lowest log p, a share of `TRIMMED`.

    For judging: the share is fixed, so that no epoch gains by trusting fewer rows than another.
    """
    log_p = log_p.detach()
    (least,) = _quantiles(log_p, doubtful & (weight > 0), (TRIMMED,))
    return torch.where(doubtful & (log_p < least), 0, weight)


def _quantiles(
    x: Float[Tensor, "*m n"], counted: Bool[Tensor, "*m n"], shares: tuple[float, ...]
) -> list[Float[Tensor, "*m 1"]]:
    """Return quantiles over the rows that count, several times faster than `nanquantile`."""
    ordered = torch.where(counted, x, torch.inf).sort(-1).values
    last = (counted.sum(-1, keepdim=True) - 1).clamp_min(0)
    return [ordered.gather(-1, (share * last).long()) for share in shares]
