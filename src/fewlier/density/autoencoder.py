"""Autoencoder: how badly each column of a row is reconstructed from a short code of the row."""

from typing import ClassVar, final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from fewlier.density.base import Architecture, Density, Size
from fewlier.density.joint import Joint, Rows
from fewlier.density.networks import MaskedMLP
from fewlier.table import Encoder


@final
class Autoencoder(Density):
    r"""Minus the terms are losses, -log p(x_d | phi_d(code(x))): errors, and no density.

    The code has at most half as many dimensions as the row has inputs. The decoder gives where a
    column's distribution lies; its other parameters (the width of a Gaussian, the shape of a
    Gamma) are learned per column and do not depend on the row, which otherwise would announce its
    own error. So a real column has the squared error in units of its noise, a binary or a category
    the cross-entropy, counts and amounts their log loss.
    """

    default_hidden: ClassVar[tuple[int, ...]] = (100,)
    max_components: ClassVar[int | None] = 1  # a reconstruction is one value, not several
    is_probabilistic: ClassVar[bool] = False
    unit: ClassVar[str] = "reconstruction error"
    remainder: ClassVar[str] = "(none)"
    meaning: ClassVar[str] = (
        "A column contributes how much worse it is reconstructed from the code of the whole row "
        "than in normal rows; the score is the sum, and there is no remainder."
    )

    def __init__(
        self,
        joint: Joint,
        input_owner: Int[Tensor, " i"],
        architecture: Architecture,
        generator: torch.Generator,
    ) -> None:
        super().__init__(joint, input_owner, architecture, generator)
        hidden, n_inputs = architecture.hidden, len(input_owner)
        latent = _code_size(architecture, n_inputs)
        self.n_passes, self.n_noise = 1, 0
        self.encoder = MaskedMLP([n_inputs, *hidden, latent])
        self.decoder = MaskedMLP([latent, *reversed(hidden), len(joint.owner)])

    @classmethod
    def least_size(cls, sizes: Architecture, encoder: Encoder, n_outputs: int) -> Size:
        """Count the weights."""
        latent = _code_size(sizes, encoder.n_inputs)
        n_weights = MaskedMLP.n_weights([encoder.n_inputs, *sizes.hidden, latent])
        n_weights += MaskedMLP.n_weights([latent, *reversed(sizes.hidden), n_outputs])
        return Size(n_weights, 0)

    def check_structure(self) -> None:
        """Accept: nothing is drawn."""

    def reset(self, generator: torch.Generator) -> None:
        """Draw the weights anew."""
        self.encoder.reset(torch.zeros_like(self.encoder.biases[-1]), generator)
        self.decoder.reset(self.joint.initial(), generator)

    def phi(self, rows: Rows, index: int) -> Float[Tensor, "*n p"]:  # noqa: ARG002 - one pass
        """Return the reconstruction, with the noise of each column."""
        *below, last = self.decoder.weights
        masks = [*[None] * len(below), self.joint.locates.expand(last.shape[-2], -1)]
        phi: Tensor = self.decoder(self.encoder(rows.inputs), masks)
        return phi


def _code_size(architecture: Architecture, n_inputs: int) -> int:
    return max(1, min(architecture.latent, n_inputs // 2))
