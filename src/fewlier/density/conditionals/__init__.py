"""p(x_d | x_<d): one small file per distribution, one line each here.

Read in this order: base, gaussian_mixture, bernoulli, poisson, gamma, categorical.
"""

from fewlier.density.conditionals.base import Conditional
from fewlier.density.conditionals.bernoulli import Bernoulli
from fewlier.density.conditionals.categorical import Categorical
from fewlier.density.conditionals.gamma import Gamma
from fewlier.density.conditionals.gaussian_mixture import GaussianMixture
from fewlier.density.conditionals.poisson import Poisson

CONDITIONALS: dict[str, type[Conditional]] = {
    "bernoulli": Bernoulli,
    "categorical": Categorical,
    "gamma": Gamma,
    "gaussian_mixture": GaussianMixture,
    "poisson": Poisson,
}
