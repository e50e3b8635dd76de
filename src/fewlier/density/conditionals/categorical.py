"""Categorical, for columns of text, booleans and other names."""

import math
from functools import cached_property
from typing import Any, ClassVar, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from fewlier.density.conditionals.base import LevelConditional
from fewlier.table.columns import Kind

_MIN_LOGIT = -1e30  # a logit of no probability, and finite


@final
class Categorical(LevelConditional):
    r"""p(x = c | phi) = exp(phi_c) / sum_c' exp(phi_c') over the column's own levels.

    Columns with fewer levels than the widest leave the rest of phi unused.
    Domain: the codes 0, ..., n_levels - 1.
    """

    coding: ClassVar[Kind] = Kind.CATEGORY

    @cached_property
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
        if x.ndim == 1:
            return self.log_prob(phi[None], x[None])[0]
        by_level = self._logits(phi).movedim(-3, -1)
        log_p: Tensor = _LogMass.apply(by_level, x.mT.long())  # type: ignore[no-untyped-call]
        return log_p.mT

    def probabilities(self, phi: Float[Tensor, "*n p d"]) -> Float[Tensor, "*n k d"]:
        """Return the softmax of the logits."""
        return torch.softmax(self._logits(phi.double()), -2)

    def _logits(self, phi: Float[Tensor, "*n p d"]) -> Float[Tensor, "*n p d"]:
        """Take away the levels that a column does not have."""
        levels = torch.arange(phi.shape[-2])[:, None]
        unused = levels >= self.n_codes
        return phi + torch.where(unused, _MIN_LOGIT, 0.0).to(phi)


@final
class _LogMass(torch.autograd.Function):
    """log softmax(logits)_x, with the gradient written out: 1 where x is, less the softmax.

    Rows are the last axis, along which memory runs: sums over levels are many times as fast so.
    """

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401 - of torch
        logits: Float[Tensor, "*m k d n"],
        x: Int[Tensor, "*m d n"],
    ) -> Float[Tensor, "*m d n"]:
        """Return the log mass, by log-sum-exp over the levels."""
        top: Tensor = logits.amax(-3)
        powers = (logits - top.unsqueeze(-3)).mul_(1 / math.log(2)).exp2_()  # faster than exp
        total = powers.sum(-3)
        code = x.unsqueeze(-3)
        ctx.save_for_backward(powers, total, code)
        return logits.gather(-3, code).squeeze(-3).sub_(total.log()).sub_(top)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(
        ctx: Any,  # noqa: ANN401 - of torch
        upper: Float[Tensor, "*m d n"],
    ) -> tuple[Float[Tensor, "*m k d n"], None]:
        """Return the gradient by the logits."""
        powers, total, code = ctx.saved_tensors
        by_logit = powers * (-upper / total).unsqueeze(-3)
        return by_logit.scatter_add_(-3, code, upper.unsqueeze(-3)), None
