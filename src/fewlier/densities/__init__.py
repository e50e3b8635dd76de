"""log p(x): one file per density, one line each here."""

from fewlier.densities.base import Density
from fewlier.densities.made import Made

DENSITIES: dict[str, type[Density]] = {"made": Made}
