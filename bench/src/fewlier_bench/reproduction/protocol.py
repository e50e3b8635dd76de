"""The paper's experiments as one object: what it says, and what it leaves open and is decided."""

from dataclasses import dataclass
from typing import Any, final

from fewlier import AnomalyDetector, Made, Vae
from fewlier_bench.data import PAPER, Protocol


@final
@dataclass(frozen=True)
class PaperProtocol:
    """How the paper's own methods are set, and the splits that all methods are measured on.

    From the paper: a mixture of three Gaussians per column, one hidden layer of 500 units, ten
    masks and ten orderings, lambda from a grid, the best of 100 epochs, Adam at 1e-3; for the VAE
    a Gaussian per column, a hidden layer of 100 units on each side and 20 latent dimensions. Left
    open by it and decided here or in the detector:

    - A step takes `batch_size` normal rows and all labelled anomalies; an epoch is a pass over the
      normal rows, of at most 100 steps.
    - Columns are scaled to [0, 1] over all rows before the split, see `scale_columns`; the detector
      scales them again, so that the training normals fill [0, 1].
    - p(x) is the mean of the densities of the ten pairs of an ordering and a mask.
    - Every epoch is judged by the validation AUC with three of the pairs, and the best epoch of
      each lambda with all ten. Ties go to the earliest epoch, then to the smallest lambda.
    - What is random in split i, orderings and masks among it, comes from the seed `seed_of(i)`.
    """

    splits: Protocol = PAPER
    lambdas: tuple[float, ...] = (0.0, 0.1, 1.0, 10.0, 100.0, 1e3, 1e4)
    n_components: int = 3
    hidden: tuple[int, ...] = (500,)
    n_orderings: int = 10
    max_epochs: int = 100
    batch_size: int = 100
    learning_rate: float = 1e-3
    vae_hidden: tuple[int, ...] = (100,)
    vae_latent: int = 20

    def seed_of(self, split: int) -> int:
        """Return the `random_state` of what is fitted on a split."""
        return self.splits.seed + split

    def proposed(self) -> dict[str, Any]:
        """Return the parameters of an `AnomalyDetector` that is the paper's Proposed."""
        density = Made(
            hidden=self.hidden, n_orderings=self.n_orderings, n_components=self.n_components
        )
        return self._published(density, self.lambdas)

    def vae(self) -> dict[str, Any]:
        """Return the parameters of an `AnomalyDetector` that is the paper's VAE."""
        density = Vae(latent=self.vae_latent, hidden=self.vae_hidden, n_components=1)
        return self._published(density, (0.0,))

    def single(self, lam: float) -> dict[str, Any]:
        """Return the parameters of Proposed with one lambda."""
        return self._published(self.proposed()["density"], (lam,))

    def _published(self, density: Made | Vae, lambdas: tuple[float, ...]) -> dict[str, Any]:
        """Return what the paper says of all its densities, with what is said of one."""
        published = AnomalyDetector.as_published().get_params(deep=False)
        del published["device"], published["random_state"]  # each run has its own
        training = published["training"].set_params(
            lambdas=lambdas,
            max_epochs=self.max_epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
        )
        return {**published, "density": density, "training": training}


PAPER_PROTOCOL = PaperProtocol()
