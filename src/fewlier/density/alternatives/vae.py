"""Variational autoencoder, Kingma & Welling (2014), scored by importance samples."""

from collections.abc import Sequence
from typing import ClassVar, final

import torch
from jaxtyping import Float
from torch import Tensor

from fewlier.density.base import Density, DensitySettings
from fewlier.density.conditionals.base import soft_bound
from fewlier.density.joint import Joint
from fewlier.density.missing_cells import Terms
from fewlier.density.networks import MaskedMLP
from fewlier.density.rows import Rows

# Codes between e^-7 and e^7 of the prior's width: sharper ones gain nothing measurable, and the
# bound keeps exp far from overflow.
MAX_LOG_SIGMA = 7.0


@final
class Vae(DensitySettings):
    """Variational autoencoder: a row is seen through a latent code; a bound of log p(x).

    Parameters
    ----------
    latent : int
        Dimensions of the latent code.
    n_samples : int
        Importance samples of the code that a row is scored with. More make the bound tighter, and
        cost more.
    hidden : sequence of int
        Units of each hidden layer of the encoder; the decoder has them in reverse.
    n_components : int
        Gaussians in the mixture that scores a real column.

    Examples
    --------
    >>> from fewlier import AnomalyDetector, Vae
    >>> AnomalyDetector(density=Vae(latent=5, n_samples=20))
    AnomalyDetector(density=Vae(latent=5, n_samples=20))
    """

    def __init__(
        self,
        *,
        latent: int = 20,
        n_samples: int = 10,
        hidden: Sequence[int] = (100,),
        n_components: int = 3,
    ) -> None:
        self.latent = latent
        self.n_samples = n_samples
        self.hidden = hidden
        self.n_components = n_components

    def lay_out(self, joint: Joint) -> Density:
        """Return encoder and decoder, with nothing drawn yet."""
        return VaeDensity(self, joint)


@final
class VaeDensity(Density):
    r"""p(x) = integral of p(z) prod_d p(x_d | z) dz, with p(z) the standard normal.

    An encoder reads a row and gives q(z | x) = N(mu, diag sigma^2); a decoder reads a code z and
    gives the parameters of the columns' conditionals. Pass s takes z_s = mu + sigma eps_s and has
    the terms log p(x_d | z_s) and the rest log p(z_s) - log q(z_s | x). So the mean of their sum
    over passes is the evidence bound, and the log of their mean density is the importance-weighted
    bound (Burda et al. 2016), which is tighter; both lie below log p(x) on average over eps.

    In training every row draws its own eps; scoring uses `eps`, the same for all rows, so that a
    row scores the same in any company.
    """

    is_probabilistic: ClassVar[bool] = True
    unit: ClassVar[str] = "nats"
    remainder: ClassVar[str] = "(latent code)"
    meaning: ClassVar[str] = (
        "A column contributes what its value costs, given the latent code of the whole row, "
        "beyond what it costs normal rows; the remainder is what the code itself costs beyond "
        "that. Columns are independent given the code: a row odd as a whole shows in the remainder."
    )

    eps: Float[Tensor, "s z"]

    def __init__(self, settings: Vae, joint: Joint) -> None:
        super().__init__(settings, joint)
        hidden, latent = settings.hidden, settings.latent
        self.n_passes, self.n_noise = settings.n_samples, latent
        self.encoder = MaskedMLP([len(joint.input_owner), *hidden, 2 * latent])
        self.decoder = MaskedMLP([latent, *reversed(hidden), len(joint.owner)])
        self.register_buffer("eps", torch.empty(self.n_passes, latent))

    def draw(self, generator: torch.Generator) -> None:
        """Draw the samples that score; pairs of opposite sign, and Sobol points, were no better."""
        self.eps.normal_(generator=generator)

    def check_structure(self) -> None:
        """Accept any samples."""

    def reset(self, generator: torch.Generator) -> None:
        """Draw the weights; codes start near the prior."""
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
        """Return a code of each row, and its log p(z) - log q(z | x)."""
        eps = self.eps[index] if rows.noise is None else rows.noise
        mu, log_sigma = self.encoder(rows.inputs).chunk(2, -1)
        log_sigma = soft_bound(log_sigma, MAX_LOG_SIGMA)
        z = mu + log_sigma.exp() * eps
        # The constants of the two normals cancel.
        return z, (log_sigma + (eps * eps - z * z) / 2).sum(-1)
