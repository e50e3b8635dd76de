"""Autoencoder: how badly each column of a row is reconstructed from a short code of the row."""

from collections.abc import Sequence
from typing import ClassVar, final

import torch
from jaxtyping import Float
from torch import Tensor

from fewlier.density.base import Density, DensitySettings
from fewlier.density.joint import Joint
from fewlier.density.networks import MaskedMLP
from fewlier.density.rows import Rows


@final
class Autoencoder(DensitySettings):
    """Autoencoder: rows score by reconstruction error, which is not a density.

    Parameters
    ----------
    latent : int
        Dimensions of the code; at most half as many as a row has network inputs are used.
    hidden : sequence of int
        Units of each hidden layer of the encoder; the decoder has them in reverse.

    Examples
    --------
    >>> from fewlier import AnomalyDetector, Autoencoder
    >>> AnomalyDetector(density=Autoencoder(latent=3))
    AnomalyDetector(density=Autoencoder(latent=3))
    """

    def __init__(self, *, latent: int = 20, hidden: Sequence[int] = (100,)) -> None:
        self.latent = latent
        self.hidden = hidden

    def lay_out(self, joint: Joint) -> Density:
        """Return encoder and decoder."""
        return AutoencoderDensity(self, joint)


@final
class AutoencoderDensity(Density):
    r"""Its terms are minus losses, log p(x_d | phi_d(code(x))): errors, not a density.

    The code has at most half as many dimensions as the row has inputs. The decoder gives where a
    column's distribution lies; its other parameters (the width of a Gaussian, the shape of a
    Gamma) are learned per column and do not depend on the row, which otherwise would announce its
    own error. So a real column has the squared error in units of its noise, a binary or a category
    the cross-entropy, counts and amounts their log loss.
    """

    is_probabilistic: ClassVar[bool] = False
    unit: ClassVar[str] = "reconstruction error"
    remainder: ClassVar[str] = "(none)"
    meaning: ClassVar[str] = (
        "A column contributes how much worse it is reconstructed from the code of the whole row "
        "than in normal rows; the score is the sum, and there is no remainder."
    )

    def __init__(self, settings: Autoencoder, joint: Joint) -> None:
        super().__init__(settings, joint)
        hidden, n_inputs = settings.hidden, len(joint.input_owner)
        latent = max(1, min(settings.latent, n_inputs // 2))
        self.encoder = MaskedMLP([n_inputs, *hidden, latent])
        self.decoder = MaskedMLP([latent, *reversed(hidden), len(joint.owner)])

    def draw(self, generator: torch.Generator) -> None:
        """Do nothing: the structure has nothing random."""

    def check_structure(self) -> None:
        """Accept: nothing is drawn."""

    def reset(self, generator: torch.Generator) -> None:
        """Draw the weights."""
        self.encoder.reset(torch.zeros_like(self.encoder.biases[-1]), generator)
        self.decoder.reset(self.joint.initial(), generator)

    def phi(self, rows: Rows, index: int) -> Float[Tensor, "*n p"]:  # noqa: ARG002 - one pass
        """Return the reconstruction, with the noise of each column."""
        *below, last = self.decoder.weights
        masks = [*[None] * len(below), self.joint.locates.expand(last.shape[-2], -1)]
        phi: Tensor = self.decoder(self.encoder(rows.inputs), masks)
        return phi
