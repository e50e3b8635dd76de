"""Poisson, for counts."""

from typing import ClassVar, final

import torch
from jaxtyping import Bool, Float
from scipy import stats
from torch import Tensor

from fewlier.density.conditionals.base import NumberConditional, soft_bound
from fewlier.table.columns import Kind

# Rates within e^15 of the column's mean: beyond any data, and exp stays far from overflow.
MAX_LOG_RATE = 15.0


@final
class Poisson(NumberConditional):
    r"""p(x | phi) = r^x e^(-r) / x! with log r = log(mean) + phi, phi softly bounded.

    Starting from the column's mean keeps phi of order one for any size of count.
    Domain: 0, 1, 2, ...
    """

    coding: ClassVar[Kind] = Kind.COUNT

    @property
    def n_parameters(self) -> int:
        """The log rate, relative to the column's mean."""
        return 1

    @property
    def locates(self) -> Bool[Tensor, " p"]:
        """The log rate does."""
        return torch.tensor([True])

    def initial(self) -> Float[Tensor, "p d"]:
        """Start at the column's mean."""
        return torch.zeros_like(self.traits.mean)[None]

    def log_prob(
        self, phi: Float[Tensor, "*n p d"], x: Float[Tensor, "*n d"]
    ) -> Float[Tensor, "*n d"]:
        """Return the log mass, in float64: for large counts its terms nearly cancel."""
        log_rate = self._log_rate(phi)
        x = x.double()
        return (x * log_rate - log_rate.exp() - torch.lgamma(x + 1)).to(phi.dtype)

    def quantile(self, phi: Float[Tensor, "*n p d"], share: float) -> Float[Tensor, "*n d"]:
        """Return the quantile, an integer."""
        return torch.from_numpy(stats.poisson.ppf(share, self._log_rate(phi).exp().numpy()))

    def likeliest(self, phi: Float[Tensor, "*n p d"]) -> Float[Tensor, "*n d"]:
        """Return the mode: the largest integer that is not above the rate."""
        return self._log_rate(phi).exp().floor().to(phi)

    def _log_rate(self, phi: Float[Tensor, "*n p d"]) -> Float[Tensor, "*n d"]:
        start = self.traits.mean.clamp_min(1e-3).log().to(phi)
        return (start + soft_bound(phi.squeeze(-2), MAX_LOG_RATE)).double()
