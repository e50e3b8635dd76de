"""What a conditional distribution p(x_d | x_<d) is.

A network reads x_<d and returns the parameters phi; a conditional turns phi and x_d into log p.
One object serves all columns that it scores at once, so that the arithmetic runs over columns:

- phi has shape (..., p, d): p parameters of d columns, columns last, because reductions over a
  short last axis are slow;
- x has shape (..., d): the targets in the coding of `fewlier.table.encode`.

To add one: a file with a final class, and a line in `CONDITIONALS`. The contract tests pick it up.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from fewlier.table.columns import Kind


@dataclass(frozen=True)
class Traits:
    """What a conditional may need to know of its d columns before training.

    Parameters
    ----------
    mean : tensor (d,)
        Mean target of each column over the training normals.
    n_levels : tensor (d,)
        Number of category codes of each column, 0 where it has none.
    n_components : int
        Mixture components, for conditionals that are mixtures.
    """

    mean: Float[Tensor, " d"]
    n_levels: Int[Tensor, " d"]
    n_components: int

    def take(self, columns: Int[Tensor, " m"]) -> "Traits":
        """Return the traits of some of the columns."""
        return Traits(self.mean[columns], self.n_levels[columns], self.n_components)


@dataclass(frozen=True, eq=False)
class Conditional(ABC):
    """The distribution of d columns of one coding, given their parameters."""

    coding: ClassVar[Kind]
    traits: Traits

    @property
    @abstractmethod
    def n_parameters(self) -> int:
        """p, the parameters per column."""

    @property
    @abstractmethod
    def locates(self) -> Bool[Tensor, " p"]:
        """Which parameters say where the distribution lies, rather than how wide it is.

        A model that reconstructs x lets these alone depend on the row.
        """

    @abstractmethod
    def initial(self) -> Float[Tensor, "p d"]:
        """Return phi where training starts: broad, and centred on the data."""

    @abstractmethod
    def log_prob(
        self, phi: Float[Tensor, "*n p d"], x: Float[Tensor, "*n d"]
    ) -> Float[Tensor, "*n d"]:
        """Return log p(x | phi), finite with finite gradients wherever phi and x are finite."""

    @abstractmethod
    def likeliest(self, phi: Float[Tensor, "*n p d"]) -> Float[Tensor, "*n d"]:
        """Return a value that is as likely as any, or about so."""

    def take(self, columns: Int[Tensor, " m"]) -> "Conditional":
        """Return the conditional of some of its columns; a column may be named repeatedly."""
        return replace(self, traits=self.traits.take(columns))


class NumberConditional(Conditional):
    """The distribution of columns of numbers."""

    @abstractmethod
    def quantile(self, phi: Float[Tensor, "*n p d"], share: float) -> Float[Tensor, "*n d"]:
        """Return the smallest x with P(X <= x | phi) >= share, in float64."""


class LevelConditional(Conditional):
    """The distribution of columns with finitely many values, the codes 0, ..., k - 1."""

    @abstractmethod
    def probabilities(self, phi: Float[Tensor, "*n p d"]) -> Float[Tensor, "*n k d"]:
        """Return P(X = code | phi) in float64; 0 for codes that a column does not have."""

    def likeliest(self, phi: Float[Tensor, "*n p d"]) -> Float[Tensor, "*n d"]:
        """Return the likeliest code."""
        return self.probabilities(phi).argmax(-2).to(phi)

    def unlikeliest(self, phi: Float[Tensor, "*n p d"]) -> Float[Tensor, "*n d"]:
        """Return the least likely code that a column has."""
        found = self.probabilities(phi)
        codes = torch.arange(found.shape[-2], device=found.device)[:, None]
        is_level = codes < self.n_codes
        return torch.where(is_level, found, 2.0).argmin(-2).to(phi)

    @property
    def n_codes(self) -> Int[Tensor, " d"]:
        """How many codes each column has."""
        return self.traits.n_levels.clamp_min(1)


def soft_bound(s: Float[Tensor, "*n"], bound: float) -> Float[Tensor, "*n"]:
    """Squeeze a log-parameter into (-bound, bound), identity near 0, gradient never quite 0."""
    return s / (1 + s.abs() / bound)


def log_odds(p: Float[Tensor, "*n"], margin: float = 0.01) -> Float[Tensor, "*n"]:
    """Return log p/(1-p) with p kept `margin` away from 0 and 1."""
    return torch.logit(p, eps=margin)
