"""Variational autoencoder, Kingma & Welling (2014), scored by importance samples."""

from typing import ClassVar, final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from fewlier.density.base import Architecture, Density, Size
from fewlier.density.conditionals.base import soft_bound
from fewlier.density.joint import Joint, Rows, Terms
from fewlier.density.networks import MaskedMLP
from fewlier.table import Encoder

# Codes between e^-7 and e^7 of the prior's width: sharper ones gain nothing measurable, and the
# bound keeps exp far from overflow.
LARGEST_LOG_SIGMA = 7.0


@final
class Vae(Density):
    r"""p(x) = integral of p(z) prod_d p(x_d | z) dz, with p(z) the standard normal.

    An encoder reads a row and gives q(z | x) = N(mu, diag sigma^2); a decoder reads a code z and
    gives the parameters of the columns' conditionals. Pass s takes z_s = mu + sigma eps_s and has
    the terms log p(x_d | z_s) and the rest log p(z_s) - log q(z_s | x). So the mean of their sum
    over passes is the evidence bound, and the log of their mean density is the importance-weighted
    bound (Burda et al. 2016), which is tighter; both lie below log p(x) on average over eps.

    In training every row draws its own eps; scoring uses `eps`, the same for all rows, so that a
    row scores the same in any company.
    """

    default_hidden: ClassVar[tuple[int, ...]] = (100,)
    max_components: ClassVar[int | None] = None
    is_probabilistic: ClassVar[bool] = True
    unit: ClassVar[str] = "nats"
    remainder: ClassVar[str] = "(latent code)"
    meaning: ClassVar[str] = (
        "A column contributes what its value costs, given the latent code of the whole row, "
        "beyond what it costs normal rows; the remainder is what the code itself costs beyond "
        "that. Columns are independent given the code: a row odd as a whole shows in the remainder."
    )

    eps: Float[Tensor, "s z"]

    def __init__(
        self,
        joint: Joint,
        input_owner: Int[Tensor, " i"],
        architecture: Architecture,
        generator: torch.Generator,
    ) -> None:
        super().__init__(joint, input_owner, architecture, generator)
        hidden, latent = architecture.hidden, architecture.latent
        self.n_passes, self.n_noise = architecture.n_samples, latent
        self.encoder = MaskedMLP([len(input_owner), *hidden, 2 * latent])
        self.decoder = MaskedMLP([latent, *reversed(hidden), len(joint.owner)])
        # Pairs of opposite sign, and Sobol points, gave no tighter bound.
        self.register_buffer("eps", torch.randn(self.n_passes, latent, generator=generator))

    @classmethod
    def least_size(cls, sizes: Architecture, encoder: Encoder, n_outputs: int) -> Size:
        """Count the weights and the samples."""
        n_weights = MaskedMLP.n_weights([encoder.n_inputs, *sizes.hidden, 2 * sizes.latent])
        n_weights += MaskedMLP.n_weights([sizes.latent, *reversed(sizes.hidden), n_outputs])
        return Size(n_weights, sizes.n_samples * sizes.latent)

    def check_structure(self) -> None:
        """Accept any samples."""

    def reset(self, generator: torch.Generator) -> None:
        """Draw the weights anew; codes start near the prior."""
        self.encoder.reset(torch.zeros_like(self.encoder.biases[-1]), generator)
        self.decoder.reset(self.joint.initial(), generator)

    def phi(self, rows: Rows, index: int) -> Float[Tensor, "*n p"]:
        """Return the parameters under sample `index` of the code, or the rows' own noise."""
        phi: Tensor = self.decoder(self._code(rows, index)[0])
        return phi

    def terms(self, rows: Rows, index: int) -> Terms:
        """Return the terms under sample `index` of the code, or the rows' own noise."""
        z, rest = self._code(rows, index)
        return self.joint.terms(self.decoder(z), rows)._replace(rest=rest)

    def _code(self, rows: Rows, index: int) -> tuple[Float[Tensor, "*n z"], Float[Tensor, "*n"]]:
        """Draw the code of each row, and say what it tells."""
        eps = self.eps[index] if rows.noise is None else rows.noise
        mu, log_sigma = self.encoder(rows.inputs).chunk(2, -1)
        log_sigma = soft_bound(log_sigma, LARGEST_LOG_SIGMA)
        z = mu + log_sigma.exp() * eps
        # log p(z) - log q(z | x): the constants of the two normals cancel.
        return z, (log_sigma + (eps * eps - z * z) / 2).sum(-1)
