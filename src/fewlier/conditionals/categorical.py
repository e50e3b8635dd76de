"""Categorical, for columns of text, booleans and other names."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from fewlier.conditionals.base import Conditional, Traits
from fewlier.table.columns import Kind


@final
@dataclass(frozen=True, eq=False)
class Categorical(Conditional):
    r"""p(x = c | phi) = exp(phi_c) / sum_c' exp(phi_c') over the column's own levels.

    Columns with fewer levels than the widest leave the rest of phi unused.
    Domain: the codes 0, ..., n_levels - 1.
    """

    coding: ClassVar[Kind] = Kind.CATEGORY
    n_levels: Int[Tensor, " d"]

    @classmethod
    def of(cls, traits: Traits) -> "Categorical":
        """Build the distribution of these columns."""
        return cls(traits.n_levels)

    @property
    def n_parameters(self) -> int:
        """One logit per level of the widest column."""
        return max(int(self.n_levels.max()), 1)

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
        levels = torch.arange(self.n_parameters, device=phi.device)[:, None]
        unused = levels >= self.n_levels.to(phi.device).clamp_min(1)
        logits = phi.masked_fill(unused, torch.finfo(phi.dtype).min)
        chosen = torch.take_along_dim(logits, x.long().unsqueeze(-2), -2).squeeze(-2)
        return chosen - torch.logsumexp(logits, -2)
