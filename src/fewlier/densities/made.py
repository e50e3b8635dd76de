"""Deep masked autoencoder density estimator (MADE), Germain et al. (2015)."""

from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from fewlier.conditionals.joint import Joint, Rows, Terms
from fewlier.densities.base import Architecture, Density
from fewlier.nn import MaskedMLP, autoregressive_masks, hidden_degrees


@final
class Made(Density):
    r"""p(x) = mean over orderings o of prod_d p(x_d | x_<d in o), Iwata & Yamanaka (2019), Eq. 2.

    One network serves every ordering; masks make the parameters of a column depend on the columns
    before it only.

    Orderings and masks cycle together: pass i takes ordering i mod `n_orderings` and draw
    i mod `n_masks` of the hidden units' degrees; there are as many passes as the larger of the two.
    """

    def __init__(
        self,
        joint: Joint,
        input_owner: Int[Tensor, " i"],
        architecture: Architecture,
        generator: torch.Generator,
    ) -> None:
        super().__init__(joint, input_owner, architecture, generator)
        hidden = architecture.hidden
        n_orderings, n_masks = architecture.n_orderings, architecture.n_masks
        self.joint = joint
        self.n_passes = max(n_orderings, n_masks)
        self.n_layers = len(hidden) + 1
        self.network = MaskedMLP([len(input_owner), *hidden, len(joint.owner)])
        n_columns = len(joint.log_scale)
        positions = [torch.randperm(n_columns, generator=generator) for _ in range(n_orderings)]
        degrees = [
            [hidden_degrees(n_columns, width, generator) for width in hidden]
            for _ in range(n_masks)
        ]
        for index in range(self.n_passes):
            position = positions[index % n_orderings]
            masks = autoregressive_masks(
                position[input_owner], degrees[index % n_masks], position[joint.owner]
            )
            for layer, mask in enumerate(masks):
                self.register_buffer(f"mask_{index}_{layer}", mask.float())

    def masks(self, index: int) -> list[Float[Tensor, "_ _"]]:
        """Return the masks of pass `index`, one per layer."""
        return [self.get_buffer(f"mask_{index}_{layer}") for layer in range(self.n_layers)]

    def reset(self, generator: torch.Generator) -> None:
        """Draw the weights anew."""
        self.network.reset(self.joint.initial(), generator)

    def terms(self, rows: Rows, index: int) -> Terms:
        """Return the cells' terms under ordering `index`."""
        return self.joint.terms(self.network(rows.inputs, self.masks(index)), rows)
