"""log p of cells, and what stands in for it where a cell is missing or impossible.

===========  ======================================================================
cell         its term
===========  ======================================================================
a value      log p(x_d | x_<d) of the density
missing      the typical term of its column on normal rows
impossible   a floor below every term that normal rows have in its column
===========  ======================================================================

Whether a cell is there or missing adds a term of its own, and only where it is surprising.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from fewlier.density.rows import Rows


class Terms(NamedTuple):
    """log p of each row in one pass: two parts for each cell, and what belongs to no cell.

    `value` is log p(x_d | x_<d), meaningful where the cell holds a possible value;
    `presence` is log p of the cell being there, or missing, relative to the column's own rate:
    above 0 where that was expected; `rest` belongs to the row as a whole, such as the cost of its
    latent code.
    """

    value: Float[Tensor, "*n d"]
    presence: Float[Tensor, "*n d"]
    rest: Float[Tensor, "*n"]

    def first(self, n: int) -> "Terms":
        """Return the terms of each member's first n rows."""
        return Terms(self.value[:, :n], self.presence[:, :n], self.rest[:, :n])


class Substitutes(NamedTuple):
    """What stands in for the value term of a cell that has none, by column.

    `typical` is for a missing cell, `floor` for an impossible value.
    """

    typical: Float[Tensor, "*o d"]
    floor: Float[Tensor, "*o d"]


def substitutes_from(terms: Terms, has_value: Bool[Tensor, "*m n d"]) -> Substitutes:
    """Take the substitutes from the terms of n normal rows.

    `typical` is the mean term of a column, lowered where needed: with their share of the usual
    rest, the typical terms add up to at most the median row's log p, so that a row without any
    cell is never more normal than the median row. `floor` lies log(n + 2) below the lowest term: a
    value never met in n rows is at least as rare as the rule of succession says. No gradient flows
    through them.
    """
    value, rest = terms.value.detach(), terms.rest.detach()  # (m, n, d) and (m, n)
    n_values, is_counted = has_value.sum(-2), has_value.any(-1)  # (m, d) and (m, n)
    mean = torch.where(has_value, value, 0).sum(-2) / n_values.clamp_min(1)  # (m, d)
    usual_rest = torch.where(is_counted, rest, 0).sum(-1) / is_counted.sum(-1).clamp_min(1)  # (m,)
    rows = torch.where(has_value, value, mean.unsqueeze(-2)).sum(-1) + rest  # (m, n)
    median = torch.where(is_counted, rows, torch.nan).nanmedian(-1).values  # (m,)
    excess = (mean.sum(-1) + usual_rest - median).nan_to_num().clamp_min(0)  # (m,)
    typical = mean + ((usual_rest - excess) / value.shape[-1]).unsqueeze(-1)  # (m, d)
    lowest = torch.where(has_value, value, torch.inf).amin(-2)  # (m, d)
    lowest = torch.where(n_values > 0, lowest, 0)
    return Substitutes(typical, lowest - torch.log(n_values + 2.0))


def row_terms(terms: Terms, rows: Rows, substitutes: Substitutes) -> Float[Tensor, "*n _"]:
    """Return log p of every cell, shape (n, d), and last the rest of each row: (n, d + 1) in all.

    Presence counts only where it is surprising, so that it never makes a row look more normal.
    """
    cells = _values(terms, rows, substitutes) + terms.presence.clamp_max(0)
    return torch.cat([cells.mT, terms.rest.unsqueeze(-2)], -2).mT


def row_log_p(terms: Terms, rows: Rows, substitutes: Substitutes) -> Float[Tensor, "*n"]:
    """Return log p of each row as training sees it: expected presence counts too.

    By surprises alone, knowing when cells are missing would gain nothing over the column's own
    rate, and would not be learned. It is the same as the sum of `row_terms` and of what they leave
    out, but not two halves that are cut off at 0: there both would have a gradient, and 0 is where
    training starts.
    """
    return (_values(terms, rows, substitutes) + terms.presence).sum(-1) + terms.rest


def _values(terms: Terms, rows: Rows, substitutes: Substitutes) -> Float[Tensor, "*n d"]:
    value = torch.where(rows.observed, terms.value, substitutes.typical.unsqueeze(-2))
    return torch.where(rows.impossible, substitutes.floor.unsqueeze(-2), value)
