"""p(x_d | x_<d): one small file per distribution, one line each here."""

from fewlier.conditionals.base import Conditional
from fewlier.conditionals.bernoulli import Bernoulli
from fewlier.conditionals.categorical import Categorical
from fewlier.conditionals.gamma import Gamma
from fewlier.conditionals.gaussian_mixture import GaussianMixture
from fewlier.conditionals.poisson import Poisson

CONDITIONALS: dict[str, type[Conditional]] = {
    "bernoulli": Bernoulli,
    "categorical": Categorical,
    "gamma": Gamma,
    "gaussian_mixture": GaussianMixture,
    "poisson": Poisson,
}
