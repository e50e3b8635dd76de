"""What the network is told of a cell: where it lies among the normal rows of its column."""

import math
from typing import NamedTuple, final

import torch
from torch import Tensor

N_FACTS = 8
"""Number of facts about a cell."""

N_LEVELS = 64
"""Levels of a category that the network can tell apart; further ones share their number."""

_MIN_SPREAD = 1e-6


@final
class Cells(NamedTuple):
    """Facts about cells, and which level each holds.

    Attributes
    ----------
    facts : tensor of shape (batch, rows, columns, N_FACTS)
        Normal score, deviation, gap, share of equal cells, whether there is an equal one, whether
        the cell is missing, the share of missing cells of its column, whether it is a category.
    levels : tensor of shape (batch, rows, columns)
        1 and above for the levels of a category that normal rows have, else 0.
    """

    facts: Tensor
    levels: Tensor


def describe(values: Tensor, is_category: Tensor, n_normals: int) -> Cells:
    """Describe cells by the normal rows of their column, without the row itself.

    Parameters
    ----------
    values : tensor of shape (batch, rows, columns)
        Numbers or codes of levels; NaN where a cell is missing. The first `n_normals` rows are the
        normal ones.
    is_category : tensor of shape (batch, columns)
        Whether the column holds codes of levels, whose order means nothing.
    """
    cells = values.transpose(1, 2).contiguous()  # (b, c, r)
    missing = cells.isnan()
    cells = cells.masked_fill(missing, math.inf)
    known = cells[..., :n_normals].sort(-1).values
    n_known = (~missing[..., :n_normals]).sum(-1, keepdim=True)
    low = torch.searchsorted(known, cells)
    high = torch.searchsorted(known, cells, right=True)
    itself = torch.zeros_like(cells)
    itself[..., :n_normals] = 1.0
    itself = itself.masked_fill(missing, 0.0)
    others = (n_known - itself).clamp_min(1.0)
    equal = (high - low - itself).clamp_min(0.0)
    u = (low + equal / 2 + 0.5) / (others + 1)
    score = torch.erfinv((2 * u - 1).clamp(-0.9998, 0.9998)) * math.sqrt(2)
    middle, spread = _scale(known, n_known)
    deviation = torch.asinh((cells - middle) / spread)
    above = known.gather(-1, high.clamp_max(n_normals - 1))
    below = known.gather(-1, (low - 1).clamp_min(0))
    gap = torch.minimum((above - cells).abs(), (cells - below).abs())
    gap = torch.log1p(10 * gap / spread).masked_fill(equal > 0, 0.0).clamp_max(12.0)
    share = (equal / others).sqrt()
    category = is_category[..., None].expand_as(cells)
    number = ~(category | missing)
    share_missing = (1 - n_known / n_normals).expand_as(cells)
    facts = [
        torch.where(number, score, 0.0),
        torch.where(number, deviation.clamp(-14.0, 14.0), 0.0),
        torch.where(number, gap / 3, 0.0),
        share.masked_fill(missing, 0.0),
        (equal == 0).float().masked_fill(missing, 0.0),
        missing.float(),
        share_missing,
        category.float(),
    ]
    levels = _levels(known, low).masked_fill(~category | missing | (equal == 0), 0)
    return Cells(torch.stack(facts, -1).transpose(1, 2), levels.transpose(1, 2))


def _scale(known: Tensor, n_known: Tensor) -> tuple[Tensor, Tensor]:
    """Return the median and half the distance of the 16 and 84 % quantiles, (b, c, 1) each."""
    last = (n_known - 1).clamp_min(0)

    def quantile(q: float) -> Tensor:
        return known.gather(-1, (last * q).round().long())

    middle = quantile(0.5).nan_to_num(posinf=0.0)
    spread = (quantile(0.84) - quantile(0.16)) / 2
    whole = (quantile(1.0) - quantile(0.0)) / 6
    spread = torch.where(spread > _MIN_SPREAD, spread, whole)
    return middle, torch.where(spread > _MIN_SPREAD, spread, 1.0).nan_to_num(1.0)


def _levels(known: Tensor, low: Tensor) -> Tensor:
    """Return the number of each distinct value of normal rows, from 1 in their order."""
    is_new = torch.ones_like(known, dtype=torch.long)
    is_new[..., 1:] = (known[..., 1:] != known[..., :-1]).long()
    number = is_new.cumsum(-1).gather(-1, low.clamp_max(known.shape[-1] - 1))
    return (number - 1) % N_LEVELS + 1
