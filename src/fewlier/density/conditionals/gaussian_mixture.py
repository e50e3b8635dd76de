"""Mixture of Gaussians, for real columns."""

import math
from functools import reduce
from typing import Any, ClassVar, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from fewlier.density.conditionals.base import NumberConditional, soft_bound
from fewlier.table.columns import Kind

# In units of the column's range. Below it, columns of rounded or repeated values would reach any
# likelihood, and their noise would outweigh every other column.
MIN_SIGMA = 1e-3
INITIAL_SIGMA = 0.2
_LN2 = math.log(2)
_PRECISION = INITIAL_SIGMA**-2
_BOUND = math.log(INITIAL_SIGMA / MIN_SIGMA)
# Bisections after which an interval is no wider than the rounding errors of a double.
_HALVINGS = 60


@final
class GaussianMixture(NumberConditional):
    r"""p(x | phi) = sum_k pi_k N(x | mu_k, sigma_k^2), Iwata & Yamanaka (2019), Eq. 3.

    phi holds, for each of K components, the logit of pi_k, mu_k, and log sigma_k relative to
    `INITIAL_SIGMA`, softly bounded so that sigma_k > `MIN_SIGMA`. Domain: the real line,
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
        if x.ndim == 1:
            return self.log_prob(phi[None], x[None])[0]
        log_p: Tensor = _LogDensity.apply(phi.movedim(-3, -1), x.mT)  # type: ignore[no-untyped-call]
        return log_p.mT

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

    def likeliest(self, phi: Float[Tensor, "*n p d"]) -> Float[Tensor, "*n d"]:
        """Return the mean of the component that is highest at its own mean."""
        logit, mu, log_sigma = self._parts(phi)
        highest = (logit - log_sigma).argmax(-2, keepdim=True)
        return mu.gather(-2, highest).squeeze(-2)

    def _parts(
        self, phi: Float[Tensor, "*n p d"]
    ) -> tuple[Float[Tensor, "*n k d"], Float[Tensor, "*n k d"], Float[Tensor, "*n k d"]]:
        """Return the logits of the weights, the means and the log widths."""
        logit, mu, width = phi.unflatten(-2, (3, self.traits.n_components)).unbind(-3)
        return logit, mu, math.log(INITIAL_SIGMA) + soft_bound(width, _BOUND)


@final
class _LogDensity(torch.autograd.Function):
    r"""log sum_k softmax(logit)_k N(x | mu_k, sigma_k^2), in as few steps as possible.

    Most of a fit's time went here, so gradients are written out, and logarithms are to base 2 as
    long as they can be: exp2 is three times as fast as exp. With s_k = -log2(sigma_k / sigma),
    sigma the initial width, and z_k = (x - mu_k) 2^s_k,

        log2 p = log2 sum_k 2^(logit_k / ln 2 + s_k - z_k^2 / (2 sigma^2 ln 2))
                 - log2 sum_k 2^(logit_k / ln 2) - log2(sigma sqrt(2 pi)).

    Rows are the last axis, along which memory runs.
    """

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401 - of torch
        phi: Float[Tensor, "*m p d n"],
        x: Float[Tensor, "*m d n"],
    ) -> Float[Tensor, "*m d n"]:
        """Return the log density."""
        logit, mu, width = phi.unflatten(-3, (3, -1)).unbind(-4)
        divisor = width.abs().mul_(-_LN2 / _BOUND).sub_(_LN2)
        s = width / divisor
        factor = torch.exp2(s)
        z = (x.unsqueeze(-3) - mu).mul_(factor)
        joint = s.add_(logit, alpha=1 / _LN2).addcmul_(z, z, value=-_PRECISION / (2 * _LN2))
        top, joint, total = _shifted_powers(joint)
        top_weight, weight, total_weight = _shifted_powers(logit / _LN2)
        ctx.save_for_backward(divisor, factor, z, joint, total, weight, total_weight)
        log2_p = (top - top_weight).add_((total / total_weight).log2_())
        return log2_p.mul_(_LN2).sub_(math.log(INITIAL_SIGMA) + 0.5 * math.log(2 * math.pi))

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(
        ctx: Any,  # noqa: ANN401 - of torch
        upper: Float[Tensor, "*m d n"],
    ) -> tuple[Float[Tensor, "*m p d n"], None]:
        r"""Return the gradient by phi, from each component's responsibility r_k for x.

        d/d logit_k = r_k - softmax(logit)_k, d/d mu_k = r_k z_k 2^s_k / sigma^2, and
        d/d log sigma_k = r_k (z_k^2 / sigma^2 - 1). Targets x have no gradient.
        """
        divisor, factor, z, joint, total, weight, total_weight = ctx.saved_tensors
        shared = joint * (upper / total).unsqueeze(-3)
        by_logit = shared - weight * (upper / total_weight).unsqueeze(-3)
        by_width = (z * z).mul_(_PRECISION).sub_(1).mul_(shared).mul_((_LN2 / divisor).square_())
        by_mean = (shared * z).mul_(factor).mul_(_PRECISION)
        return torch.cat([by_logit, by_mean, by_width], -3), None


def _shifted_powers(
    exponent: Float[Tensor, "*m k d n"],
) -> tuple[Float[Tensor, "*m d n"], Float[Tensor, "*m k d n"], Float[Tensor, "*m d n"]]:
    """Return the largest exponent of k, 2^(exponent - largest), and their sum."""
    # A reduction over so few is slower than going through them.
    top = reduce(torch.maximum, exponent.unbind(-3))
    powers = (exponent - top.unsqueeze(-3)).exp2_()
    return top, powers, reduce(torch.add, powers.unbind(-3))
