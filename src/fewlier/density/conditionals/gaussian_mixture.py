"""Mixture of Gaussians, for real columns."""

import math
from typing import ClassVar, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from fewlier.density.conditionals.base import NumberConditional, soft_bound
from fewlier.table.columns import Kind

# In units of the column's range. Below it, columns of rounded or repeated values would reach any
# likelihood, and their noise would outweigh every other column.
SMALLEST_SIGMA = 1e-3
INITIAL_SIGMA = 0.2
# Bisections after which an interval is no wider than the rounding errors of a double.
_HALVINGS = 60


@final
class GaussianMixture(NumberConditional):
    r"""p(x | phi) = sum_k pi_k N(x | mu_k, sigma_k^2), Iwata & Yamanaka (2019), Eq. 3.

    phi holds, for each of K components, the logit of pi_k, mu_k, and log sigma_k relative to
    `INITIAL_SIGMA`, softly bounded so that sigma_k > `SMALLEST_SIGMA`. Domain: the real line,
    with the training values in [0, 1].
    """

    coding: ClassVar[Kind] = Kind.REAL

    @property
    def n_parameters(self) -> int:
        """Weight, mean and width of each component."""
        return 3 * self.traits.n_components

    @property
    def locates(self) -> Bool[Tensor, " p"]:
        """The means do."""
        return torch.tensor([False, True, False]).repeat_interleave(self.traits.n_components)

    def initial(self) -> Float[Tensor, "p d"]:
        """Spread the means over the range, so that no two components start as one."""
        k = self.traits.n_components
        means = (torch.arange(k) + 0.5) / k
        start = torch.cat([torch.zeros(k), means, torch.zeros(k)])
        return start[:, None].expand(-1, len(self.traits.mean))

    def log_prob(
        self, phi: Float[Tensor, "*n p d"], x: Float[Tensor, "*n d"]
    ) -> Float[Tensor, "*n d"]:
        """Return the log density, by log-sum-exp over the components."""
        logit, mu, log_sigma = self._parts(phi)
        z = (x.unsqueeze(-2) - mu) * torch.exp(-log_sigma)
        log_normal = -0.5 * (z * z) - log_sigma
        joint = torch.logsumexp(logit + log_normal, -2) - torch.logsumexp(logit, -2)
        return joint - 0.5 * math.log(2 * math.pi)

    def quantile(self, phi: Float[Tensor, "*n p d"], share: float) -> Float[Tensor, "*n d"]:
        """Return the quantile, by bisection: it lies between those of the components."""
        logit, mu, log_sigma = self._parts(phi.double())
        weight, sigma = torch.softmax(logit, -2), log_sigma.exp()
        own = mu + sigma * torch.special.ndtri(sigma.new_tensor(share))
        low: Tensor = own.amin(-2)
        high: Tensor = own.amax(-2)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            below = torch.special.ndtr((middle.unsqueeze(-2) - mu) / sigma)
            is_low = (weight * below).sum(-2) < share
            low, high = torch.where(is_low, middle, low), torch.where(is_low, high, middle)
        return (low + high) / 2

    def _parts(
        self, phi: Float[Tensor, "*n p d"]
    ) -> tuple[Float[Tensor, "*n k d"], Float[Tensor, "*n k d"], Float[Tensor, "*n k d"]]:
        """Return the logits of the weights, the means and the log widths."""
        logit, mu, width = phi.unflatten(-2, (3, self.traits.n_components)).unbind(-3)
        bound = math.log(INITIAL_SIGMA / SMALLEST_SIGMA)
        return logit, mu, math.log(INITIAL_SIGMA) + soft_bound(width, bound)
