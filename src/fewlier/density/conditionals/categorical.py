"""Categorical, for columns of text, booleans and other names."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from fewlier.density.conditionals.base import LevelConditional, Traits
from fewlier.table.columns import Kind


@final
@dataclass(frozen=True, eq=False)
class Categorical(LevelConditional):
    r"""p(x = c | phi) = exp(phi_c) / sum_c' exp(phi_c') over the column's own levels.

    Columns with fewer levels than the widest leave the rest of phi unused.
    Domain: the codes 0, ..., n_levels - 1.
    """

    coding: ClassVar[Kind] = Kind.CATEGORY
    n_levels: Int[Tensor, " d"]
    width: int

    @classmethod
    def of(cls, traits: Traits) -> "Categorical":
        """Build the distribution of these columns."""
        return cls(traits.n_levels, max(int(traits.n_levels.max()), 1))

    @property
    def n_parameters(self) -> int:
        """One logit per level of the widest column."""
        return self.width

    @property
    def locates(self) -> Bool[Tensor, " p"]:
        """The logits do."""
        return torch.ones(self.n_parameters, dtype=torch.bool)

    def initial(self) -> Float[Tensor, "p d"]:
        """Start with all levels alike."""
        return torch.zeros(self.n_parameters, len(self.n_levels), device=self.n_levels.device)

    def log_prob(
        self, phi: Float[Tensor, "*n p d"], x: Float[Tensor, "*n d"]
    ) -> Float[Tensor, "*n d"]:
        """Return the log mass of the level coded by x."""
        logits = self._logits(phi)
        chosen = torch.take_along_dim(logits, x.long().unsqueeze(-2), -2).squeeze(-2)
        return chosen - torch.logsumexp(logits, -2)

    def take(self, columns: Int[Tensor, " m"]) -> "Categorical":
        """Return the distribution of some columns; the widest of all still counts the logits."""
        return Categorical(self.n_levels[columns], self.n_parameters)

    def probabilities(self, phi: Float[Tensor, "*n p d"]) -> Float[Tensor, "*n k d"]:
        """Return the softmax of the logits."""
        return torch.softmax(self._logits(phi.double()), -2)

    def _logits(self, phi: Float[Tensor, "*n p d"]) -> Float[Tensor, "*n p d"]:
        levels = torch.arange(self.n_parameters, device=phi.device)[:, None]
        unused = levels >= self.n_levels.to(phi.device).clamp_min(1)
        return phi.masked_fill(unused, torch.finfo(phi.dtype).min)
