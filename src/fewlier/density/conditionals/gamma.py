"""Gamma with a point mass at zero, for non-negative, skewed columns."""

import math
from typing import ClassVar, final

import torch
from jaxtyping import Bool, Float
from scipy import special
from torch import Tensor
from torch.nn import functional

from fewlier.density.conditionals.base import NumberConditional, soft_bound
from fewlier.table.columns import Kind

# Shapes between 1/50 and 50 and means within e^15 of the column's own: as narrow and as broad as
# training data ever ask for, and far from where lgamma or exp lose their digits.
MAX_LOG_SHAPE = math.log(50.0)
MAX_LOG_MEAN = 15.0
# A mass of a twentieth, so that a column without zeros soon learns that a zero is rare.
INITIAL_ZERO_LOG_ODDS = -3.0
# A value many orders of magnitude above its column would leave float32, which ends near 3e38.
MIN_LOG_DENSITY = -1e30


@final
class Gamma(NumberConditional):
    r"""p(0 | phi) = q, and p(x | phi) = (1 - q) Gamma(x | shape a, mean m) for x > 0.

    phi holds the log odds of q, log a, and log m relative to the column's mean; all softly
    bounded. Domain: x >= 0; the measure is Lebesgue's plus an atom at zero.
    """

    coding: ClassVar[Kind] = Kind.POSITIVE

    @property
    def n_parameters(self) -> int:
        """Mass at zero, shape and mean."""
        return 3

    @property
    def locates(self) -> Bool[Tensor, " p"]:
        """The mass at zero and the mean do, the shape does not."""
        return torch.tensor([True, False, True])

    def initial(self) -> Float[Tensor, "p d"]:
        """Start as an exponential distribution with the column's mean, and few zeros."""
        start = torch.tensor([INITIAL_ZERO_LOG_ODDS, 0.0, 0.0])
        return start[:, None].expand(-1, len(self.traits.mean))

    def log_prob(
        self, phi: Float[Tensor, "*n p d"], x: Float[Tensor, "*n d"]
    ) -> Float[Tensor, "*n d"]:
        """Return the log density, or at zero the log mass."""
        zero, log_shape, log_mean = self._parts(phi)
        is_zero = x == 0
        # A harmless stand-in at the atom: log 0 would poison the gradient of the other branch.
        x = torch.where(is_zero, torch.ones_like(x), x).double()
        shape, log_rate = log_shape.exp(), log_shape - log_mean
        log_gamma = (
            shape * log_rate + (shape - 1) * x.log() - x * log_rate.exp() - torch.lgamma(shape)
        )
        log_gamma = log_gamma.clamp_min(MIN_LOG_DENSITY).to(phi.dtype)
        return torch.where(
            is_zero, functional.logsigmoid(zero), functional.logsigmoid(-zero) + log_gamma
        )

    def quantile(self, phi: Float[Tensor, "*n p d"], share: float) -> Float[Tensor, "*n d"]:
        """Return 0 up to the mass there, and above it the quantile of the Gamma."""
        zero, log_shape, log_mean = self._parts(phi)
        at_zero = torch.sigmoid(zero.double())
        above = ((share - at_zero) / (1 - at_zero)).clamp_min(0)
        standard = special.gammaincinv(log_shape.exp().numpy(), above.numpy())
        return torch.from_numpy(standard) * (log_mean - log_shape).exp()

    def likeliest(self, phi: Float[Tensor, "*n p d"]) -> Float[Tensor, "*n d"]:
        """Return 0 if it has most of the mass, and else the mean of the Gamma."""
        zero, _, log_mean = self._parts(phi)
        return torch.where(zero > 0, 0.0, log_mean.exp()).to(phi)

    def _parts(
        self, phi: Float[Tensor, "*n p d"]
    ) -> tuple[Float[Tensor, "*n d"], Float[Tensor, "*n d"], Float[Tensor, "*n d"]]:
        """Return the log odds of zero, log a and log m."""
        zero, log_shape, log_mean = phi.unbind(-2)
        mean = self.traits.mean
        mean = torch.where(mean > 0, mean, 1.0)  # a column of zeros has no scale of its own
        log_mean = mean.log().to(phi) + soft_bound(log_mean, MAX_LOG_MEAN)
        return zero, soft_bound(log_shape, MAX_LOG_SHAPE).double(), log_mean.double()
