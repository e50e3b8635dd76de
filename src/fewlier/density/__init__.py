"""log p(x): one file per density, one line each here.

Read in this order: networks, conditionals, rows, missing_cells, joint, base, made, alternatives.
"""

from fewlier.density.alternatives.autoencoder import Autoencoder
from fewlier.density.alternatives.flow import Flow
from fewlier.density.alternatives.vae import Vae
from fewlier.density.base import DensitySettings
from fewlier.density.made import Made
from fewlier.errors import FormatError, UserError
from fewlier.modelfile.state import Json, State

DENSITIES: dict[str, type[DensitySettings]] = {
    "made": Made,
    "vae": Vae,
    "flow": Flow,
    "autoencoder": Autoencoder,
}


def read_density(density: object) -> DensitySettings:
    """Return the settings that a detector's parameter `density` asks for, checked.

    Raises
    ------
    UserError
        For what is neither the name of a density nor an object such as ``Made(hidden=(100,))``.
    """
    if isinstance(density, str) and density in DENSITIES:
        return DENSITIES[density]()
    if isinstance(density, DensitySettings) and type(density) in DENSITIES.values():
        return density.checked()
    names = ", ".join(sorted(DENSITIES))
    expected = f"one of {names}, or in Python an object such as Made(hidden=(100,))"
    raise UserError(parameter="density", expected=expected, got=density)


def settings_record(settings: DensitySettings) -> Json:
    """Return settings as JSON values."""
    (name,) = (name for name, cls in DENSITIES.items() if type(settings) is cls)
    return {"name": name, **settings.checked().get_params(deep=False)}


def settings_from(state: State) -> DensitySettings:
    """Inverse of `settings_record`, checked."""
    settings = DENSITIES[state.text("name", DENSITIES)]()
    settings.set_params(**{name: state.value(name) for name in settings.get_params(deep=False)})
    try:
        return settings.checked()
    except UserError as error:
        raise FormatError(f"the sizes of its density are wrong. {error}") from error
