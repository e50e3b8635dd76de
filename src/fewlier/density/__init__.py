"""log p(x): one file per density, one line each here.

Read in this order: networks, conditionals, joint, base, made, vae, flow, autoencoder.
"""

import torch

from fewlier.density.autoencoder import Autoencoder
from fewlier.density.base import Architecture, Density
from fewlier.density.flow import Flow
from fewlier.density.joint import Joint
from fewlier.density.made import Made
from fewlier.density.vae import Vae
from fewlier.table import Encoder

DENSITIES: dict[str, type[Density]] = {
    "made": Made,
    "vae": Vae,
    "flow": Flow,
    "autoencoder": Autoencoder,
}


def build_density(
    name: str,
    encoder: Encoder,
    n_components: int,
    architecture: Architecture,
    generator: torch.Generator,
) -> Density:
    """Build the density of this name for the columns of an encoder, on the CPU."""
    density = DENSITIES[name]
    joint = Joint(encoder, min(n_components, density.max_components or n_components))
    input_owner = torch.from_numpy(encoder.input_owner)
    return density(joint, input_owner, architecture, generator)
