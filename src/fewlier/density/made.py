"""Deep masked autoencoder density estimator (MADE), Germain et al. (2015)."""

from typing import ClassVar, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from fewlier.density.base import Architecture, Density, Size
from fewlier.density.joint import Joint, Rows
from fewlier.density.networks import (
    MaskedMLP,
    autoregressive_masks,
    check_degrees,
    check_orderings,
    hidden_degrees,
)
from fewlier.table import Encoder


@final
class Made(Density):
    r"""p(x) = mean over orderings o of prod_d p(x_d | x_<d in o), Iwata & Yamanaka (2019), Eq. 2.

    One network serves every ordering; masks make the parameters of a column depend on the columns
    before it only.

    Orderings and masks cycle together: pass i takes ordering i mod `n_orderings` and draw
    i mod `n_masks` of the hidden units' degrees; there are as many passes as the larger of the two.
    """

    default_hidden: ClassVar[tuple[int, ...]] = (500,)
    max_components: ClassVar[int | None] = None
    is_probabilistic: ClassVar[bool] = True
    unit: ClassVar[str] = "nats"
    remainder: ClassVar[str] = "(orderings)"
    meaning: ClassVar[str] = (
        "A column contributes what its value costs, given the columns before it in an ordering, "
        "beyond what it costs normal rows; the remainder is what averaging over orderings leaves."
    )

    input_owner: Int[Tensor, " i"]
    positions: Int[Tensor, "*m o d"]

    def __init__(
        self,
        joint: Joint,
        input_owner: Int[Tensor, " i"],
        architecture: Architecture,
        generator: torch.Generator,
    ) -> None:
        super().__init__(joint, input_owner, architecture, generator)
        hidden, n_columns = architecture.hidden, len(joint.log_scale)
        self.n_noise = 0
        self.n_passes = max(architecture.n_orderings, architecture.n_masks)
        self.network = MaskedMLP([len(input_owner), *hidden, len(joint.owner)])
        self.register_buffer("input_owner", input_owner, persistent=False)
        positions = [
            torch.randperm(n_columns, generator=generator) for _ in range(architecture.n_orderings)
        ]
        self.register_buffer("positions", torch.stack(positions))
        for layer, width in enumerate(hidden):
            draws = [
                hidden_degrees(n_columns, width, generator) for _ in range(architecture.n_masks)
            ]
            self.register_buffer(f"degrees_{layer}", torch.stack(draws))

    @classmethod
    def least_size(cls, sizes: Architecture, encoder: Encoder, n_outputs: int) -> Size:
        """Count the weights, the orderings and the degrees."""
        n_weights = MaskedMLP.n_weights([encoder.n_inputs, *sizes.hidden, n_outputs])
        n_positions = sizes.n_orderings * encoder.n_columns
        return Size(n_weights, n_positions + sizes.n_masks * sum(sizes.hidden))

    def check_structure(self) -> None:
        """Refuse orderings and degrees that would let a column see itself, or beyond the last."""
        check_orderings(self.positions)
        check_degrees(self, self.positions.shape[-1])

    def masks(self, index: int) -> list[Bool[Tensor, "*_ _ _"]]:
        """Return the masks of pass `index`, one per layer.

        Made anew for every call, which is cheap: kept, those of a thousand columns would take more
        memory than the weights.
        """
        position = self.positions[..., index % self.positions.shape[-2], :]
        layers = range(len(self.network.weights) - 1)
        draws = [self.get_buffer(f"degrees_{layer}") for layer in layers]
        return autoregressive_masks(
            position[..., self.input_owner],
            [degrees[..., index % degrees.shape[-2], :] for degrees in draws],
            position[..., self.joint.owner],
        )

    def reset(self, generator: torch.Generator) -> None:
        """Draw the weights anew."""
        self.network.reset(self.joint.initial(), generator)

    def phi(self, rows: Rows, index: int) -> Float[Tensor, "*n p"]:
        """Return the parameters under ordering `index`."""
        phi: Tensor = self.network(rows.inputs, self.masks(index))
        return phi

    @property
    def informed(self) -> Bool[Tensor, "o d"]:
        """The passes in which most other columns come before a column: they know the most."""
        positions = self.positions.cpu()[torch.arange(self.n_passes) % len(self.positions)]
        return positions == positions.amax(0)
