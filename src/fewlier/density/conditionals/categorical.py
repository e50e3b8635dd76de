"""Categorical, for columns of text, booleans and other names."""

from typing import ClassVar, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from fewlier.density.conditionals.base import LevelConditional
from fewlier.table.columns import Kind


@final
class Categorical(LevelConditional):
    r"""p(x = c | phi) = exp(phi_c) / sum_c' exp(phi_c') over the column's own levels.

    Columns with fewer levels than the widest leave the rest of phi unused.
    Domain: the codes 0, ..., n_levels - 1.
    """

    coding: ClassVar[Kind] = Kind.CATEGORY

    @property
    def n_parameters(self) -> int:
        """One logit per level of the widest column."""
        return max(int(self.traits.n_levels.max()), 1)

    @property
    def locates(self) -> Bool[Tensor, " p"]:
        """The logits do."""
        return torch.ones(self.n_parameters, dtype=torch.bool)

    def initial(self) -> Float[Tensor, "p d"]:
        """Start with all levels alike."""
        return torch.zeros(self.n_parameters, len(self.traits.n_levels))

    def log_prob(
        self, phi: Float[Tensor, "*n p d"], x: Float[Tensor, "*n d"]
    ) -> Float[Tensor, "*n d"]:
        """Return the log mass of the level coded by x."""
        logits = self._logits(phi)
        chosen = torch.take_along_dim(logits, x.long().unsqueeze(-2), -2).squeeze(-2)
        return chosen - torch.logsumexp(logits, -2)

    def probabilities(self, phi: Float[Tensor, "*n p d"]) -> Float[Tensor, "*n k d"]:
        """Return the softmax of the logits."""
        return torch.softmax(self._logits(phi.double()), -2)

    def _logits(self, phi: Float[Tensor, "*n p d"]) -> Float[Tensor, "*n p d"]:
        levels = torch.arange(phi.shape[-2], device=phi.device)[:, None]
        unused = levels >= self.traits.n_levels.to(phi.device).clamp_min(1)
        return phi.masked_fill(unused, torch.finfo(phi.dtype).min)
