"""A fitted detector <-> file: the tree of what each of its parts stores."""

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any, final

import torch

from fewlier import __version__
from fewlier.density import settings_from, settings_record
from fewlier.density.base import DensitySettings
from fewlier.errors import FormatError, UserError
from fewlier.files.atomic import PathLike
from fewlier.fitting.kept_rows import KeptRows
from fewlier.fitting.recipe import DEVICES, available_device, read_recipe
from fewlier.fitting.summary import Summary
from fewlier.modelfile.container import brief, opened, write
from fewlier.modelfile.probes import check_probes, probe_state
from fewlier.modelfile.state import State, is_text
from fewlier.score.model import FittedModel
from fewlier.table.declarations import StandIns
from fewlier.training.settings import Training


@final
@dataclass(frozen=True)
class Saved:
    """A fitted detector as a file holds it.

    Parameters
    ----------
    parameters : dict
        Those of its constructor.
    has_column_names : bool
        Whether the columns had names that the user gave.
    model : FittedModel
        The model.
    kept_rows : KeptRows or None
        Rows for updates.
    summary : Summary
        What the fit did.
    """

    parameters: Mapping[str, Any]
    has_column_names: bool
    model: FittedModel
    kept_rows: KeptRows | None
    summary: Summary

    def state(self) -> State:
        """Return what a model file holds."""
        seed = self.parameters["random_state"]
        seed = int(seed) if isinstance(seed, Integral) else None
        own = {"random_state": seed, "missing": StandIns.read(self.parameters["missing"]).state()}
        return State(
            {
                "parameters": settings_as_records(self.parameters) | own,
                "has_column_names": self.has_column_names,
                "summary": self.summary.state(),
                "model": self.model.state(),
                "kept_rows": self.kept_rows and self.kept_rows.state(),
                "probes": probe_state(self.model),
                "versions": State({"fewlier": __version__, "torch": str(torch.__version__)}),
            }
        )

    @classmethod
    def from_state(cls, state: State, defaults: Mapping[str, Any]) -> "Saved":
        """Inverse of `state`, checked; `defaults` are the parameters of a constructor."""
        parameters = read_parameters(state.part("parameters"), defaults)
        model = FittedModel.from_state(state.part("model"), available_device(parameters["device"]))
        kept_rows = state.optional("kept_rows")
        saved = cls(
            parameters,
            state.flag("has_column_names"),
            model,
            None if kept_rows is None else KeptRows.from_state(kept_rows, model.encoder),
            Summary.from_state(state.part("summary"), model.calibration),
        )
        versions = state.part("versions")
        for name in ("fewlier", "torch"):
            versions.text(name)
        check_probes(model, state.part("probes"))
        state.check_all_read()
        return saved


def save(saved: Saved, path: PathLike) -> None:
    """Write a detector to a file, whole or not at all: what was written is read back and checked.

    Only then does it take the place of another file.
    """
    write(path, saved.state(), lambda written: load(written, saved.parameters))


def load(path: PathLike, defaults: Mapping[str, Any]) -> Saved:
    """Read a detector from a file.

    Raises
    ------
    FormatError
        If anything in the file is not as `save` writes it, or if its probe rows do not score as
        they did when it was saved.
    """
    with opened(path) as state:
        return Saved.from_state(state, defaults)


def settings_as_records(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a constructor with a record for each object of settings."""
    density, training = parameters["density"], parameters["training"]
    if isinstance(density, DensitySettings):
        density = settings_record(density)
    if isinstance(training, Training):
        training = training.get_params()
    return {**parameters, "density": density, "training": training}


def settings_from_records(state: State) -> dict[str, Any]:
    """Inverse of `settings_as_records`, of the parameters that have objects of settings."""
    density, training = state.value("density"), state.optional("training")
    if not is_text(density):
        density = settings_from(state.part("density"))
    if training is not None:
        numbers = {name: training.value(name) for name in Training().get_params()}
        training = Training(**numbers | {"lambdas": tuple(training.items("lambdas"))})
    return {"density": density, "training": training}


def read_parameters(state: State, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Read the parameters of a constructor, and refuse values that `fit` would refuse."""
    parameters = {name: state.value(name) for name in defaults} | settings_from_records(state)
    for name in ("selection", "unlabelled"):
        state.text(name)
    state.text("device", DEVICES)
    pairs = state.items("missing", _is_pair, "of pairs of texts")
    parameters["missing"] = StandIns.said(pairs)
    if state.has("random_state"):
        state.count("random_state", most=2**63)
    if state.has("columns") and not is_text(state.value("columns")):
        state.mapping("columns", is_text, "of texts")
    try:
        read_recipe(parameters | {"device": "cpu"})
    except UserError as error:
        raise FormatError(f"it does not describe a detector: {brief(error)}") from error
    return parameters


def _is_pair(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(is_text, value))
