"""Deep masked autoencoder density estimator (MADE), Germain et al. (2015)."""

from collections.abc import Sequence
from typing import ClassVar, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from fewlier.density.base import Density, DensitySettings
from fewlier.density.joint import Joint
from fewlier.density.networks import (
    MaskedMLP,
    autoregressive_masks,
    check_degrees,
    check_orderings,
    degrees_of,
    draw_degrees,
    empty_integers,
    lay_out_degrees,
)
from fewlier.density.rows import Rows


@final
class Made(DensitySettings):
    """Masked autoregressive network: log p(x) is exact, a product over columns.

    p(x) is the product of each column's distribution given the columns before it, averaged over
    several orderings of the columns. The default density, and the paper's.

    Parameters
    ----------
    hidden : sequence of int
        Units of each hidden layer. Fewer are faster.
    n_orderings : int
        Orderings of the columns, each with its own masks; p(x) is the mean over them.
    n_components : int
        Gaussians in the mixture that scores a real column.

    Examples
    --------
    >>> from fewlier import AnomalyDetector, Made
    >>> detector = AnomalyDetector(density=Made(hidden=(128,)))
    >>> detector.set_params(density__n_orderings=5).density
    Made(hidden=(128,), n_orderings=5)
    """

    def __init__(
        self, *, hidden: Sequence[int] = (64,), n_orderings: int = 2, n_components: int = 3
    ) -> None:
        self.hidden = hidden
        self.n_orderings = n_orderings
        self.n_components = n_components

    def lay_out(self, joint: Joint) -> Density:
        """Return the network, with nothing drawn yet."""
        return MadeDensity(self, joint)


@final
class MadeDensity(Density):
    r"""p(x) = mean over orderings o of prod_d p(x_d | x_<d in o), Iwata & Yamanaka (2019), Eq. 2.

    One network serves every ordering; masks make the parameters of a column depend on the columns
    before it only. Pass i takes ordering i and the i-th draw of the hidden units' degrees.
    """

    is_probabilistic: ClassVar[bool] = True
    unit: ClassVar[str] = "nats"
    remainder: ClassVar[str] = "(orderings)"
    meaning: ClassVar[str] = (
        "A column contributes what its value costs, given the columns before it in an ordering, "
        "beyond what it costs normal rows; the remainder is what averaging over orderings leaves."
    )

    positions: Int[Tensor, "*m o d"]

    def __init__(self, settings: Made, joint: Joint) -> None:
        super().__init__(settings, joint)
        self.n_passes = settings.n_orderings
        self.network = MaskedMLP([len(joint.input_owner), *settings.hidden, len(joint.owner)])
        self.register_buffer("positions", empty_integers(self.n_passes, len(joint.log_scale)))
        lay_out_degrees(self, self.n_passes, hidden=settings.hidden)

    def draw(self, generator: torch.Generator) -> None:
        """Draw the orderings and the degrees."""
        n_columns = self.positions.shape[-1]
        for position in self.positions:
            position.copy_(torch.randperm(n_columns, generator=generator))
        draw_degrees(self, n_columns, generator)

    def check_structure(self) -> None:
        """Refuse orderings and degrees that would let a column see itself, or beyond the last."""
        check_orderings(self.positions)
        check_degrees(self, self.positions.shape[-1])

    def masks(self, index: int) -> list[Bool[Tensor, "*_ _ _"]]:
        """Return the masks of pass `index`, one per layer.

        They are computed in every call, which is cheap. Stored, the masks of a thousand columns
        would take more memory than the weights.
        """
        position = self.positions[..., index, :]
        return autoregressive_masks(
            position[..., self.joint.input_owner],
            [degrees[..., index, :] for degrees in degrees_of(self)],
            position[..., self.joint.owner],
        )

    def reset(self, generator: torch.Generator) -> None:
        """Draw the weights."""
        self.network.reset(self.joint.initial(), generator)

    def phi(self, rows: Rows, index: int) -> Float[Tensor, "*n p"]:
        """Return the parameters under ordering `index`."""
        phi: Tensor = self.network(rows.inputs, self.masks(index))
        return phi

    @property
    def informed(self) -> Bool[Tensor, "o d"]:
        """The passes in which most other columns come before a column: they know the most."""
        positions = self.positions.cpu()
        return positions == positions.amax(0)
