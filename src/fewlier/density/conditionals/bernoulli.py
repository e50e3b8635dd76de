"""Bernoulli, for binary columns."""

from typing import ClassVar, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from fewlier.density.conditionals.base import LevelConditional, log_odds
from fewlier.table.columns import Kind


@final
class Bernoulli(LevelConditional):
    r"""p(x | phi) = q^x (1 - q)^(1 - x) with q = sigmoid(phi), Iwata & Yamanaka (2019), Eq. 4.

    Domain: 0 and 1.
    """

    coding: ClassVar[Kind] = Kind.BINARY

    @property
    def n_parameters(self) -> int:
        """The log odds."""
        return 1

    @property
    def locates(self) -> Bool[Tensor, " p"]:
        """The log odds do."""
        return torch.tensor([True])

    def initial(self) -> Float[Tensor, "p d"]:
        """Start at the observed shares."""
        return log_odds(self.traits.mean)[None]

    def log_prob(
        self, phi: Float[Tensor, "*n p d"], x: Float[Tensor, "*n d"]
    ) -> Float[Tensor, "*n d"]:
        """Return the log mass: log sigmoid of the log odds, signed by x."""
        return functional.logsigmoid((2 * x - 1) * phi.squeeze(-2))

    @property
    def n_codes(self) -> Int[Tensor, " d"]:
        """Two."""
        return torch.full_like(self.traits.n_levels, 2)

    def probabilities(self, phi: Float[Tensor, "*n p d"]) -> Float[Tensor, "*n k d"]:
        """Return the probabilities of 0 and 1."""
        return torch.sigmoid(torch.cat([-phi, phi], -2).double())
