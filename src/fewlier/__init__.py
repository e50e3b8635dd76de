"""Find anomalies in tables when only a handful of them are labelled."""

import gc
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fewlier.decision.evaluation import evaluate
    from fewlier.density.alternatives.autoencoder import Autoencoder
    from fewlier.density.alternatives.flow import Flow
    from fewlier.density.alternatives.vae import Vae
    from fewlier.density.made import Made
    from fewlier.detector import AnomalyDetector
    from fewlier.errors import FewlierError, FewlierWarning, FormatError, UserError
    from fewlier.labelling.session import Session
    from fewlier.table.label_column import LabelColumn
    from fewlier.training.settings import Training

__all__ = [
    "AnomalyDetector",
    "Autoencoder",
    "FewlierError",
    "FewlierWarning",
    "Flow",
    "FormatError",
    "LabelColumn",
    "Made",
    "Session",
    "Training",
    "UserError",
    "Vae",
    "evaluate",
]

_HOMES = {
    "AnomalyDetector": "fewlier.detector",
    "Autoencoder": "fewlier.density.alternatives.autoencoder",
    "FewlierError": "fewlier.errors",
    "FewlierWarning": "fewlier.errors",
    "Flow": "fewlier.density.alternatives.flow",
    "FormatError": "fewlier.errors",
    "LabelColumn": "fewlier.table.label_column",
    "Made": "fewlier.density.made",
    "Session": "fewlier.labelling.session",
    "Training": "fewlier.training.settings",
    "UserError": "fewlier.errors",
    "Vae": "fewlier.density.alternatives.vae",
    "evaluate": "fewlier.decision.evaluation",
}


def __getattr__(name: str) -> object:
    """Import public names when they are first used: torch takes a second to load."""
    if name == "__version__":
        return _version()
    if name == "plot":
        return _load("fewlier.report.plots")
    if name in _HOMES:
        return getattr(_load(_HOMES[name]), name)
    raise AttributeError(f"module 'fewlier' has no attribute {name!r}")


def _load(module: str) -> ModuleType:
    """Import a module, and collect garbage afterwards: the search takes a fifth of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return import_module(module)
    finally:
        if was_enabled:
            gc.enable()


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("fewlier")
    except PackageNotFoundError:  # run from a source tree that is not installed
        return "0+unknown"


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
