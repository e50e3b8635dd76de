"""log p(x): one file per density, one line each here."""

import torch

from fewlier.conditionals.joint import Joint
from fewlier.densities.base import Architecture, Density
from fewlier.densities.made import Made
from fewlier.table import Encoder

DENSITIES: dict[str, type[Density]] = {"made": Made}


def build_density(
    name: str,
    encoder: Encoder,
    n_components: int,
    architecture: Architecture,
    generator: torch.Generator,
) -> Density:
    """Build the density of this name for the columns of an encoder, on the CPU."""
    joint = Joint(encoder, n_components)
    input_owner = torch.from_numpy(encoder.input_owner)
    return DENSITIES[name](joint, input_owner, architecture, generator)
