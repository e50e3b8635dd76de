"""What a density is: log p of every cell of a row, in one or more passes.

p(x) is the mean over passes of exp(sum of the cells' terms): MADE makes one pass per ordering.
A density is a plain module for one member of an ensemble. Its arithmetic broadcasts over leading
axes of its parameters and rows, which is how `fewlier.training` stacks members.
To add one: a file with a final class, and a line in `DENSITIES`. The contract tests pick it up.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from fewlier.conditionals.joint import Joint, Rows, Terms


@final
@dataclass(frozen=True)
class Architecture:
    """Sizes of a density.

    Parameters
    ----------
    hidden : tuple of int
        Units of each hidden layer.
    n_orderings, n_masks : int
        Orderings of the columns, and draws of the hidden masks.
    """

    hidden: tuple[int, ...] = (500,)
    n_orderings: int = 10
    n_masks: int = 10


class Density(nn.Module, ABC):
    """log p(x) of encoded rows, cell by cell."""

    n_passes: int
    joint: Joint

    @abstractmethod
    def __init__(
        self,
        joint: Joint,
        input_owner: Int[Tensor, " i"],
        architecture: Architecture,
        generator: torch.Generator,
    ) -> None:
        """Build the density.

        Parameters
        ----------
        joint : Joint
            The conditionals of the columns.
        input_owner : tensor (i,)
            The column each network input belongs to.
        architecture : Architecture
            Sizes.
        generator : torch.Generator
            Draws what is random in the structure, such as orderings.
        """
        super().__init__()
        self.architecture = architecture

    @abstractmethod
    def reset(self, generator: torch.Generator) -> None:
        """Draw the parameters anew."""

    @abstractmethod
    def terms(self, rows: Rows, index: int) -> Terms:
        """Return the cells' terms in pass `index`."""

    def forward(self, rows: Rows, index: int) -> Terms:
        """Call `terms`; functional calls of a module go through its forward."""
        return self.terms(rows, index)


def mean_over_passes(log_p: Float[Tensor, "*n o"]) -> Float[Tensor, "*n"]:
    """Return log of the mean density over o passes, by log-sum-exp."""
    return torch.logsumexp(log_p, -1) - math.log(log_p.shape[-1])
