"""A second conditional for counts, as a contributor would write it; fewlier itself has none."""

import math
from typing import ClassVar, final

import torch
from scipy import stats

from fewlier.density.conditionals.base import NumberConditional, soft_bound
from fewlier.table.columns import Kind

USUAL_SIZE, LARGEST_LOG_RATIO = 5.0, 1.0


@final
class NegativeBinomial(NumberConditional):
    r"""p(x | phi) = Gamma(x + r) / (Gamma(r) x!) (r / (r + m))^r (m / (r + m))^x, of mean m."""

    coding: ClassVar[Kind] = Kind.COUNT

    @property
    def n_parameters(self):
        return 2

    @property
    def locates(self):
        return torch.tensor([True, False])

    def initial(self):
        return torch.zeros_like(self.traits.mean).expand(2, -1)

    def log_prob(self, phi, x):
        log_m, log_r = self._parts(phi)
        r, x = log_r.exp(), x.double()
        log_total = torch.logaddexp(log_m, log_r)
        ways = torch.lgamma(x + r) - torch.lgamma(r) - torch.lgamma(x + 1)
        return (ways + r * (log_r - log_total) + x * (log_m - log_total)).to(phi.dtype)

    def quantile(self, phi, share):
        m, r = (part.exp().numpy() for part in self._parts(phi))
        return torch.from_numpy(stats.nbinom.ppf(share, r, r / (r + m)))

    def likeliest(self, phi):
        m, r = (part.exp() for part in self._parts(phi))
        return (m * (1 - 1 / r)).floor().clamp_min(0).to(phi.dtype)

    def _parts(self, phi):
        log_m, log_r = phi.double().unbind(-2)
        start = self.traits.mean.clamp_min(1e-3).log().double()
        log_r = math.log(USUAL_SIZE) + soft_bound(log_r, LARGEST_LOG_RATIO)
        return start + soft_bound(log_m, 15.0), log_r
