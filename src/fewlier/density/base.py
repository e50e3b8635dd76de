"""What a density is: its settings, which a user gives, and its module, which computes log p(x).

p(x) is the mean over passes of exp(sum of the cells' terms + the rest of the row): MADE makes one
pass per ordering, a variational autoencoder one per importance sample.
A density is a plain module for one member of an ensemble. Its arithmetic broadcasts over leading
axes of its parameters, of its drawn structure and of rows, which is how `training.stack` stacks
members.
To add one: a file with two final classes, settings and module, and a line in `DENSITIES`. Python,
the command line, model files, searches and the contract tests pick it up.
"""

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from numbers import Integral
from types import MappingProxyType
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float
from sklearn.base import BaseEstimator
from torch import Tensor, nn

from fewlier.density.joint import CellPlaces, Expected, Joint
from fewlier.density.missing_cells import Terms
from fewlier.density.rows import Rows
from fewlier.errors import FormatError, check_parameter
from fewlier.modelfile.state import MAX_INT, require
from fewlier.table import Encoder

POSITIVE_INTEGER = f"an integer from 1 to {MAX_INT}"
MAX_LAYERS = 100
"""Hidden layers of a network, and transformations of a flow: bounds the work of laying one out."""


class Density(nn.Module, ABC):
    """log p(x) of encoded rows, cell by cell.

    The constructor takes settings and a `Joint` and only lays out arrays; `draw` and `reset` fill
    them. `DensitySettings.build` returns a density whose structure has been drawn.

    Attributes
    ----------
    settings : DensitySettings
        Its sizes.
    joint : Joint
        The conditionals of the columns.
    n_passes : int
        Passes that p(x) is the mean of.
    n_noise : int
        Standard normals that each row takes in training; 0 for a density that draws no samples.
    is_probabilistic : bool
        Whether its costs are -log p(x), or a bound of it, so that they are in nats.
    unit : str
        Unit of its costs.
    remainder : str
        Name of the part of a score that belongs to no column.
    meaning : str
        What the contribution of a column, and the remainder, mean.
    """

    is_probabilistic: ClassVar[bool]
    unit: ClassVar[str]
    remainder: ClassVar[str]
    meaning: ClassVar[str]

    n_passes: int = 1
    n_noise: int = 0

    @abstractmethod
    def __init__(self, settings: "DensitySettings", joint: Joint) -> None:
        super().__init__()
        self.settings = settings
        self.joint = joint

    @abstractmethod
    def draw(self, generator: torch.Generator) -> None:
        """Draw what is random in the structure, such as orderings."""

    @abstractmethod
    def check_structure(self) -> None:
        """Raise `FormatError` for a structure that `draw` cannot have drawn."""

    @abstractmethod
    def reset(self, generator: torch.Generator) -> None:
        """Draw the parameters where training starts."""

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

    @property
    def n_layers(self) -> int:
        """Layers that a row goes through in one pass."""
        return sum(parameter.ndim == 2 for parameter in self.parameters())

    def with_parameters(
        self, parameters: Mapping[str, Tensor], drawn: Mapping[str, Tensor] = MappingProxyType({})
    ) -> "Density":
        """Return this density with other parameters, and if given with another structure.

        A leading axis makes it a stack of members. The copy shares its structure with this one,
        which is never written to, so that any number of threads may call it at once. A functional
        call would put the parameters into this module for as long as it takes, where another
        thread would find them.
        """
        shared = {id(part): part for part in (self.joint, *self.buffers())}
        own: dict[int, Tensor] = {
            id(old): nn.Parameter(parameters[name], parameters[name].requires_grad)
            for name, old in self.named_parameters()
        }
        own |= {id(old): drawn[name] for name, old in self.named_buffers() if name in drawn}
        return copy.deepcopy(self, {**shared, **own})

    def terms(self, rows: Rows, index: int) -> Terms:
        """Return the terms in pass `index`."""
        return self.joint.terms(self.phi(rows, index), rows)

    @property
    def informed(self) -> Bool[Tensor, "o d"]:
        """Which passes say what was expected of each column; all, unless some know more."""
        return torch.ones(self.n_passes, len(self.joint.log_scale), dtype=torch.bool)

    def expect(self, rows: Rows, index: int, cells: CellPlaces) -> Expected:
        """Return what was expected of some cells of n rows in pass `index`."""
        return self.joint.expect(self.phi(rows, index), cells)


class DensitySettings(BaseEstimator, ABC):
    """Sizes of a density, as a small scikit-learn estimator with keyword-only parameters.

    Attributes
    ----------
    n_components : int
        Gaussians in the mixture of a real column; 1 for a density that has no mixtures.
    """

    n_components: int = 1

    @abstractmethod
    def lay_out(self, joint: Joint) -> Density:
        """Return the density for the columns of a joint, with nothing drawn yet."""

    def build(self, encoder: Encoder, generator: torch.Generator) -> Density:
        """Return the density for the columns of an encoder, with its structure drawn, on the CPU.

        `reset` draws its parameters.
        """
        density = self.lay_out(Joint(encoder, self.n_components))
        density.draw(generator)
        return density

    def checked(self) -> "DensitySettings":
        """Return the same settings in plain numbers.

        Raises
        ------
        UserError
            For a value that no such density can have.
        """
        parameters = self.get_params(deep=False)
        return type(self)(**{name: self.read(name, value) for name, value in parameters.items()})

    def read(self, name: str, value: object) -> Any:  # noqa: ANN401 - each parameter has its type
        """Return a parameter as plain numbers: `hidden` as widths, any other as a count.

        A density with a parameter of another type reads it itself.
        """
        if name != "hidden":
            self.require(name, value, is_positive_integer(value), POSITIVE_INTEGER)
            return int(value)  # type: ignore[call-overload] # it is an integer
        widths = list(value) if isinstance(value, Iterable) and not isinstance(value, str) else [0]
        expected = f"a sequence of integers from 1 to {MAX_INT}, such as (100,)"
        self.require(name, value, all(map(is_positive_integer, widths)), expected)
        self.require(name, value, len(widths) <= MAX_LAYERS, f"at most {MAX_LAYERS} layers")
        return tuple(map(int, widths))

    def require(self, name: str, value: object, is_right: bool, expected: str) -> None:
        """Raise `UserError` for a value that is not as expected."""
        check_parameter(name, value, is_right, expected)


def is_positive_integer(value: object) -> bool:
    """Whether a parameter is an integer, of Python or numpy, that a model file can hold."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        return False
    return 0 < int(value) <= MAX_INT


def skeleton(
    settings: DensitySettings,
    encoder: Encoder,
    n_numbers: int,
    device: torch.device | str = "cpu",
) -> Density:
    """Return the density of a file by shapes alone, before anything of its sizes is allocated.

    A damaged file may ask for any sizes. Parameters and drawn arrays are on torch's meta device,
    to be replaced by the file's; constants of the columns are on `device`, and no more than the
    file holds.

    Parameters
    ----------
    settings : DensitySettings
        Sizes that the file asks for, checked.
    encoder : Encoder
        Its columns.
    n_numbers : int
        Numbers that the file holds; the last layer alone has one for each parameter of a column.
    device : torch.device
        Where the constants go.
    """
    n_parameters = Joint.count(encoder, settings.n_components)
    require(
        n_parameters <= n_numbers, "its arrays are smaller than the sizes of its density imply."
    )
    joint = Joint(encoder, settings.n_components)
    try:
        with torch.device("meta"):
            density = settings.lay_out(joint)
    except RuntimeError as error:  # a product of sizes that is beyond all memory
        raise FormatError(f"the sizes of its density are too large ({error}).") from error
    for module in density.modules():
        for name, array in module.named_buffers(recurse=False):
            if not array.is_meta:  # `Module.to` would stumble over those that are
                module.register_buffer(name, array.to(device), persistent=False)
    return density


def mean_over_passes(log_p: Float[Tensor, "*n o"]) -> Float[Tensor, "*n"]:
    """Return log of the mean density over o passes, by log-sum-exp."""
    return torch.logsumexp(log_p, -1) - math.log(log_p.shape[-1])
