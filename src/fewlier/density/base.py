"""What a density is: log p of every cell of a row, in one or more passes.

p(x) is the mean over passes of exp(sum of the cells' terms + the rest of the row): MADE makes one
pass per ordering, a variational autoencoder one per importance sample.
A density is a plain module for one member of an ensemble. Its arithmetic broadcasts over leading
axes of its parameters, of what it has drawn at random and of rows, which is how `training.stack`
stacks members.
To add one: a file with a final class, and a line in `DENSITIES`. The contract tests pick it up.
"""

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from fewlier.density.joint import Cells, Joint, Outlook, Rows, Terms
from fewlier.table import Encoder

FLOWS = ("maf", "nsf")
"""Kinds of flow: masked autoregressive, of affine maps, and neural spline flow."""


@final
@dataclass(frozen=True)
class Architecture:
    """Sizes of a density; each density reads those it has.

    Parameters
    ----------
    hidden : tuple of int
        Units of each hidden layer.
    n_orderings, n_masks : int
        Orderings of the columns, and draws of the hidden masks.
    latent : int
        Dimensions of a latent code.
    n_samples : int
        Importance samples of the code, each a pass.
    flow, n_transforms : str, int
        Kind and number of the transformations of a flow.
    """

    hidden: tuple[int, ...] = (500,)
    n_orderings: int = 10
    n_masks: int = 10
    latent: int = 20
    n_samples: int = 10
    flow: str = "maf"
    n_transforms: int = 3


class Size(NamedTuple):
    """How many numbers a density holds at least: parameters, and what is drawn at random."""

    parameters: int
    structure: int


class Density(nn.Module, ABC):
    """log p(x) of encoded rows, cell by cell.

    Attributes
    ----------
    n_passes : int
        Passes that p(x) is the mean of.
    n_noise : int
        Standard normals that each row takes in training; a density that takes none has 0.
    default_hidden : tuple of int
        Units of the hidden layers unless the user says otherwise.
    max_components : int or None
        The most mixture components it has a use for.
    is_probabilistic : bool
        Whether its costs are -log p(x), or a bound of it, so that they are in nats.
    unit : str
        Unit of its costs.
    remainder : str
        Name of what the columns leave of a score.
    meaning : str
        What the contribution of a column, and the remainder, mean.
    """

    default_hidden: ClassVar[tuple[int, ...]]
    max_components: ClassVar[int | None]
    is_probabilistic: ClassVar[bool]
    unit: ClassVar[str]
    remainder: ClassVar[str]
    meaning: ClassVar[str]

    n_passes: int
    n_noise: int

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
        self.joint = joint
        self.architecture = architecture

    @classmethod
    @abstractmethod
    def least_size(cls, sizes: Architecture, encoder: Encoder, n_outputs: int) -> Size:
        """Return how many numbers such a density holds at least.

        Asked before one is built from a file, whose sizes may be wrong. `n_outputs` is the number
        of parameters that the conditionals have at least.
        """

    @abstractmethod
    def check_structure(self) -> None:
        """Raise `FormatError` where what should have been drawn at random cannot have been."""

    @abstractmethod
    def reset(self, generator: torch.Generator) -> None:
        """Draw the parameters anew."""

    @abstractmethod
    def phi(self, rows: Rows, index: int) -> Float[Tensor, "*n p"]:
        """Return the parameters of the columns' conditionals in pass `index`.

        Rows with `noise`, as in training, use it in place of the standard normals that the density
        keeps for scoring, which are the same for every row.
        """

    def drawn(self) -> dict[str, Tensor]:
        """Return what was drawn at random in the structure, such as orderings, by name."""
        parameters = dict(self.named_parameters())
        return {name: value for name, value in self.state_dict().items() if name not in parameters}

    def with_parameters(self, parameters: Mapping[str, Tensor]) -> "Density":
        """Return this density with other parameters, to score with.

        The copy shares its structure with this one and is never written to, so that any number of
        threads may call it at once. A functional call would put the parameters into this module
        for as long as it takes, where another thread would find them.
        """
        shared = {id(part): part for part in (self.joint, *self.buffers())}
        own = {
            id(old): nn.Parameter(parameters[name], requires_grad=False)
            for name, old in self.named_parameters()
        }
        return copy.deepcopy(self, {**shared, **own})

    def terms(self, rows: Rows, index: int) -> Terms:
        """Return the terms in pass `index`."""
        return self.joint.terms(self.phi(rows, index), rows)

    @property
    def informed(self) -> Bool[Tensor, "o d"]:
        """Which passes say what was expected of each column; all, unless some know more."""
        return torch.ones(self.n_passes, len(self.joint.log_scale), dtype=torch.bool)

    def outlook(self, rows: Rows, index: int, cells: Cells) -> Outlook:
        """Return what was expected of some cells of n rows in pass `index`."""
        return self.joint.outlook(self.phi(rows, index), cells)

    def forward(self, rows: Rows, index: int) -> Terms:
        """Call `terms`: the functional calls of training come here."""
        return self.terms(rows, index)


def mean_over_passes(log_p: Float[Tensor, "*n o"]) -> Float[Tensor, "*n"]:
    """Return log of the mean density over o passes, by log-sum-exp."""
    return torch.logsumexp(log_p, -1) - math.log(log_p.shape[-1])
