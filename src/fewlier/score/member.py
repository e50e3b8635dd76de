"""`FittedMember`: one trained density, ready to score."""

import math
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from fewlier.density.base import Density, mean_over_passes
from fewlier.density.missing_cells import Substitutes, row_terms, substitutes_from
from fewlier.density.rows import Rows
from fewlier.modelfile.state import Array, State, require
from fewlier.score.part import exact
from fewlier.table.arrays import Floats
from fewlier.training.folds import MAX_FOLDS
from fewlier.training.settings import Selection

_MIN_SPREAD = 1e-6


@final
@dataclass(frozen=True, eq=False)
class FittedMember:
    """One trained density.

    Parameters
    ----------
    lam : float
        Weight of the ranking term it was trained with.
    fold : int
        The fold it was trained on.
    density : Density
        The density, with parameters of its own.
    passes : tuple of o ints
        The density's passes that it scores with.
    substitutes : Substitutes
        Terms of cells without a value, shape (o, d): per pass and column.
    centre : array (d + 1,)
        What each column, and last the rest of a row, costs on average on normal rows.
    scale : float
        Standard deviation over normal rows of the member's cost.
    """

    lam: float
    fold: int
    density: Density
    passes: tuple[int, ...]
    substitutes: Substitutes
    centre: Floats
    scale: float

    @classmethod
    def fit(
        cls,
        lam_and_fold: tuple[float, int],
        density: Density,
        passes: tuple[int, ...],
        normals: Rows,
        selection: Selection,
    ) -> "FittedMember":
        """Measure what is usual on normals that did not train: on those that did, cells cost less.

        One row, or rows all alike, have no spread: then costs keep their own unit.
        """
        found = [substitutes_from(density.terms(normals, i), normals.has_value) for i in passes]
        substitutes = Substitutes(*(torch.stack(part) for part in zip(*found, strict=True)))
        cost = _split(_terms(density, substitutes, normals, passes), selection)
        spread = float(cost.sum(1).std(correction=0))
        scale = 1.0 if selection == "best" or spread < _MIN_SPREAD else spread
        return cls(*lam_and_fold, density, passes, substitutes, cost.mean(0).cpu().numpy(), scale)

    def cost(self, rows: Rows, selection: Selection) -> Float[Tensor, "n _"]:
        """Return what d columns and last a remainder cost, shape (n, d + 1)."""
        terms = _terms(self.density, self.substitutes, rows, self.passes)
        return _split(terms, selection)

    def log_p(self, rows: Rows) -> Float[Tensor, " n"]:
        """Return log p(x), p the mean of the passes' densities."""
        terms = _terms(self.density, self.substitutes, rows, self.passes)
        return mean_over_passes(terms.double().sum(-1).T)

    def state(self) -> State:
        """Return what a model file holds of it, but for what all members share."""
        record = {"lam": self.lam, "fold": self.fold, "scale": self.scale}
        arrays = {f"parameters.{n}": array_of(p) for n, p in self.density.named_parameters()}
        arrays |= {f"substitutes.{n}": array_of(a) for n, a in self.substitutes._asdict().items()}
        return State(record | {"passes": list(self.passes)}, arrays | {"centre": self.centre})

    @classmethod
    def from_state(cls, state: State, template: Density, device: torch.device) -> "FittedMember":
        """Inverse of `state`, checked; the template has what all members share."""
        passes = state.counts("passes", template.n_passes - 1)
        is_ascending = len(passes) > 0 and passes == sorted(set(passes))
        require(is_ascending, f"'{state.name}.passes' must be ascending numbers.")
        n_columns = len(template.joint.log_scale)
        by_pass = torch.empty(len(passes), n_columns)
        parameters = {
            name: read_tensor(state, f"parameters.{name}", like, device)
            for name, like in template.named_parameters()
        }
        found = (
            read_tensor(state, f"substitutes.{n}", by_pass, device) for n in Substitutes._fields
        )
        return cls(
            state.number("lam", least=0),
            state.count("fold", most=MAX_FOLDS - 1),
            template.with_parameters(parameters),
            tuple(passes),
            Substitutes(*found),
            state.array("centre", np.float64, (n_columns + 1,)),
            state.positive("scale"),
        )


def _terms(
    density: Density, substitutes: Substitutes, rows: Rows, passes: tuple[int, ...]
) -> Float[Tensor, "o n _"]:
    """Return log p of every cell and, last, the rest of every row, in some passes.

    The substitutes belong to the same passes.
    """
    found = [
        row_terms(density.terms(rows, index), rows, Substitutes(*own))
        for index, *own in zip(passes, *substitutes, strict=True)
    ]
    return torch.stack([terms.mT for terms in found]).mT


def _split(terms: Float[Tensor, "o n _"], selection: Selection) -> Float[Tensor, "n _"]:
    r"""Split what rows cost a member into d columns and last a remainder, shape (n, d + 1).

    `best`: the parts of -log p(x), with p the mean of the passes' densities, are the passes' terms
    weighted by their responsibilities r_o = p_o / sum p; what averaging the passes leaves,
    log O - H(r), lies between 0 and log O and joins the remainder. `average`: the parts are the
    passes' mean terms. Their sum is not a density's, but ranks better (docs/METHOD.md).
    """
    terms = terms.double()
    if selection == "average":
        return terms.mean(0).neg_()
    share = torch.softmax(terms.sum(-1), 0)  # (o, n)
    parts = (share.unsqueeze(-1) * terms).sum(0).neg_()
    left = exact(math.log(len(terms))) + torch.special.xlogy(share, share).sum(0)
    return torch.cat([parts[:, :-1], parts[:, -1:] + left.unsqueeze(-1)], 1)


def array_of(tensor: Tensor) -> Array:
    """Return a tensor as an array."""
    array: Array = tensor.detach().cpu().numpy()
    return array


def read_tensor(state: State, name: str, like: Tensor, device: torch.device) -> Tensor:
    """Read a tensor of the type and shape of another."""
    dtype = str(like.dtype).removeprefix("torch.")
    return torch.from_numpy(state.array(name, dtype, tuple(like.shape))).to(device)
