"""The passes of one member: their terms, and what they cost rows together."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from fewlier.density.base import Density, mean_over_passes
from fewlier.density.networks import denormals_as_zero
from fewlier.density.rows import Rows
from fewlier.density.terms import Substitutes, row_terms, substitutes_from
from fewlier.table.arrays import Floats
from fewlier.training.settings import Selection


def total_cost(terms: Float[Tensor, "o n _"], selection: Selection) -> Floats:
    r"""Combine the passes of one member into what each row costs it, shape (n,).

    `best`: -log p(x) with p the mean of the passes' densities. `average`: the mean of the passes'
    -log p_o(x), which is not a density, but ranks better (docs/METHOD.md).
    """
    log_p = terms.double().sum(-1)  # (o, n)
    total = log_p.mean(0) if selection == "average" else mean_over_passes(log_p.T)
    cost: Floats = -total.cpu().numpy()
    return cost


def split_cost(terms: Float[Tensor, "o n _"], selection: Selection) -> Float[Tensor, "n _"]:
    r"""Split the total cost of rows into d columns and last a remainder, shape (n, d + 1).

    `best`: the parts are the passes' terms weighted by their responsibilities r_o = p_o / sum p;
    what averaging the passes leaves, log O - H(r), lies between 0 and log O and joins the
    remainder. `average`: the parts are the passes' mean terms.
    """
    terms = terms.double()
    if selection == "average":
        return terms.mean(0).neg_()
    share = torch.softmax(terms.sum(-1), 0)  # (o, n)
    parts = (share.unsqueeze(-1) * terms).sum(0).neg_()
    parts[:, -1] += np.log(len(terms)) + torch.special.xlogy(share, share).sum(0)
    return parts


def pass_substitutes(density: Density, rows: Rows, passes: Sequence[int]) -> Substitutes:
    """Take the substitutes of some passes from normal rows, shape (o, d)."""
    with torch.no_grad(), denormals_as_zero():
        found = [substitutes_from(density.terms(rows, index), rows.has_value) for index in passes]
    return Substitutes(*(torch.stack(part) for part in zip(*found, strict=True)))


def pass_terms(
    density: Density, substitutes: Substitutes, rows: Rows, passes: Sequence[int]
) -> Float[Tensor, "o n _"]:
    """Return log p of every cell and, last, the rest of every row, in some passes.

    The substitutes belong to the same passes.
    """
    with torch.no_grad(), denormals_as_zero():
        found = [
            row_terms(density.terms(rows, index), rows, Substitutes(*own))
            for index, *own in zip(passes, *substitutes, strict=True)
        ]
        return torch.stack([terms.mT for terms in found]).mT
