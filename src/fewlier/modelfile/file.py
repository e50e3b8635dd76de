"""A fitted detector <-> file: the tree of what each of its parts stores."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from fewlier import __version__
from fewlier.atomic import PathLike
from fewlier.decision.calibration import Calibration
from fewlier.decision.drift import Reference
from fewlier.density import settings_from, settings_record
from fewlier.density.base import Density, DensitySettings, skeleton
from fewlier.density.conditionals import CONDITIONALS
from fewlier.density.joint import Anchors
from fewlier.errors import FormatError, UserError
from fewlier.memory import Memory
from fewlier.modelfile.container import brief, opened, write
from fewlier.modelfile.probes import check_probes, probe_state
from fewlier.score.limits import MAX_NEIGHBOURS, MAX_NODES
from fewlier.score.model import FittedMember, FittedModel, feature_owner
from fewlier.score.neighbours import Neighbours
from fewlier.score.trees import NODE_FIELDS, Forest
from fewlier.settings import DEVICES, available_device, read_recipe
from fewlier.state import State, is_text, require
from fewlier.summary import Summary
from fewlier.table import Encoder
from fewlier.training.folds import MAX_FOLDS

MAX_LAYERS = 20_000  # on a row's way; a fit by default has some hundred


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
    kept_rows : Memory or None
        Rows for updates.
    summary : Summary
        What the fit did.
    """

    parameters: Mapping[str, Any]
    has_column_names: bool
    model: FittedModel
    kept_rows: Memory | None
    summary: Summary

    def state(self) -> State:
        """Return what a model file holds."""
        seed = self.parameters["random_state"]
        seed = int(seed) if isinstance(seed, Integral) else None
        density = self.parameters["density"]
        if isinstance(density, DensitySettings):
            density = settings_record(density)
        return State(
            {
                "parameters": {**self.parameters, "density": density, "random_state": seed},
                "has_column_names": self.has_column_names,
                "summary": self.summary.state(),
                "model": _model_state(self.model),
                "kept_rows": self.kept_rows and self.kept_rows.state(),
                "probes": probe_state(self.model),
                "versions": State({"fewlier": __version__, "torch": str(torch.__version__)}),
            }
        )

    @classmethod
    def from_state(cls, state: State, defaults: Mapping[str, Any]) -> "Saved":
        """Inverse of `state`, checked; `defaults` are the parameters of a constructor."""
        parameters = read_parameters(state.part("parameters"), defaults)
        model = _read_model(state.part("model"), available_device(parameters["device"]))
        kept_rows = state.optional("kept_rows")
        saved = cls(
            parameters,
            state.flag("has_column_names"),
            model,
            None if kept_rows is None else Memory.from_state(kept_rows, model.encoder),
            Summary.from_state(state.part("summary"), model.calibration.at),
        )
        versions = state.part("versions")
        for name in ("fewlier", "torch"):
            versions.text(name)
        check_probes(model, state.part("probes"))
        state.check_all_read()
        return saved


def save(saved: Saved, path: PathLike, check: Callable[[Path], object]) -> None:
    """Write a detector to a file, whole or not at all.

    `check` reads the file back before it takes the place of another.
    """
    model = saved.model
    n_layers = _n_layers(model.members)
    if n_layers > MAX_LAYERS:
        raise UserError(
            f"A saved model can take a row through at most {MAX_LAYERS} layers, counting members, "
            f"their passes and the layers of networks; this one has {n_layers}. Fit with fewer."
        )
    write(path, saved.state(), check)


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


def read_parameters(state: State, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Read the parameters of a constructor, and refuse values that `fit` would refuse."""
    parameters = {name: state.value(name) for name in defaults}
    if not is_text(parameters["density"]):
        parameters["density"] = settings_from(state.part("density"))
    for name in ("selection", "unlabelled"):
        state.text(name)
    state.text("device", DEVICES)
    parameters["lambdas"] = tuple(state.items("lambdas"))
    if state.has("random_state"):
        state.count("random_state", most=2**63)
    if state.has("columns") and not is_text(state.value("columns")):
        state.mapping("columns", is_text, "of texts")
    if type(parameters["learning_rate"]) is int:
        parameters["learning_rate"] = float(parameters["learning_rate"])
    try:
        read_recipe(parameters | {"device": "cpu"})
    except UserError as error:
        raise FormatError(f"it does not describe a detector: {brief(error)}") from error
    return parameters


def _n_layers(members: Sequence[FittedMember]) -> int:
    """Count the layers that scoring a row evaluates; each takes time, however small the file."""
    return sum(len(member.passes) * member.density.n_layers for member in members)


def _model_state(model: FittedModel) -> State:
    members = [
        State(
            {
                "weight": float(m.weight),
                "lam": float(m.lam),
                "fold": int(m.fold),
                "scale": float(m.scale),
                "passes": list(m.passes),
            },
            {f"parameters.{n}": _array(p) for n, p in m.density.named_parameters()}
            | {f"anchors.{n}": _array(a) for n, a in m.anchors._asdict().items()}
            | {"centre": m.centre},
        )
        for m in model.members
    ]
    density = model.density
    neighbours, forest = model.neighbours, model.forest
    return State(
        {
            "encoder": model.encoder.state(),
            "density": State(
                settings_record(density.settings),
                {n: _array(v) for n, v in density.drawn().items()},
            ),
            "selection": model.selection,
            "members": members,
            "neighbours": neighbours
            and State(
                {n: getattr(neighbours, n) for n in ("share", "alone", "lean", "spread")},
                {n.removeprefix("neighbours."): _array(v) for n, v in neighbours.tensors.items()},
            ),
            "forest": forest
            and State(
                {"share": forest.share, "spread": forest.spread},
                {n.removeprefix("forest."): _array(v) for n, v in forest.tensors.items()},
            ),
            "calibration": model.calibration.state(),
            "reference": model.reference.state(),
        }
    )


def _array(tensor: Tensor) -> Any:  # noqa: ANN401 - an array of any type
    return tensor.detach().cpu().numpy()


def _tensor(state: State, name: str, like: Tensor, device: torch.device) -> Tensor:
    dtype = str(like.dtype).removeprefix("torch.")
    return torch.from_numpy(state.array(name, dtype, tuple(like.shape))).to(device)


def _read_model(state: State, device: torch.device) -> FittedModel:
    encoder = Encoder.from_state(state.part("encoder"))
    selection = state.text("selection", ("average", "best"))
    parts = list(state.parts("members"))
    require(len(parts) > 0, "it has no members.")
    n_numbers = sum(array.size for array in state.arrays.values())
    density = _read_density(state.part("density"), encoder, n_numbers, device)
    members = tuple(_read_member(part, density, device) for part in parts)
    is_short = _n_layers(members) <= MAX_LAYERS
    require(is_short, f"a row passes more than {MAX_LAYERS} layers.")
    total = sum(member.weight for member in members)
    require(abs(total - 1) <= 1e-6, "the weights of its members do not sum to 1.")
    for member in members:
        is_scale = member.scale == 1 or selection == "average"
        require(is_scale, "the scale of its best member is not 1.")
    neighbours = _read_neighbours(state.optional("neighbours"), encoder, device)
    forest = _read_forest(state.optional("forest"), encoder, device)
    require(neighbours is None or selection == "average", "its best member has neighbours.")
    require(forest is None or neighbours is not None, "it has a forest but no neighbours.")
    shares = sum(part.share for part in (neighbours, forest) if part is not None)
    require(shares < 1, "the shares of its neighbours and its forest are 1 or more.")
    return FittedModel(
        encoder,
        members,
        "average" if selection == "average" else "best",
        Calibration.from_state(state.part("calibration")),
        Reference.from_state(state.part("reference"), encoder),
        neighbours,
        forest,
    )


def _read_density(state: State, encoder: Encoder, n_numbers: int, device: torch.device) -> Density:
    """Read what members share: sizes and structure. Its parameters take no memory."""
    for column in encoder.schema.columns:
        conditional = CONDITIONALS.get(column.scored_by)
        is_known = conditional is not None and conditional.coding is column.coding
        require(is_known, f"column {column.name!r} is scored by an unknown {column.scored_by!r}.")
    density = skeleton(settings_from(state), encoder, n_numbers, device)
    drawn = {n: _tensor(state, n, like, device) for n, like in density.drawn().items()}
    density.load_state_dict(drawn, strict=False, assign=True)
    density.check_structure()
    return density


def _read_member(state: State, density: Density, device: torch.device) -> FittedMember:
    passes = state.counts("passes", density.n_passes - 1)
    is_ascending = len(passes) > 0 and passes == sorted(set(passes))
    require(is_ascending, f"'{state.name}.passes' must be ascending numbers.")
    n_columns = len(density.joint.log_scale)
    anchor = torch.empty(len(passes), n_columns)
    return FittedMember(
        state.positive("weight"),
        state.number("lam", least=0),
        state.count("fold", most=MAX_FOLDS - 1),
        density.with_parameters(
            {
                n: _tensor(state, f"parameters.{n}", like, device)
                for n, like in density.named_parameters()
            }
        ),
        tuple(passes),
        Anchors(*(_tensor(state, f"anchors.{n}", anchor, device) for n in Anchors._fields)),
        state.array("centre", np.float64, (n_columns + 1,)),
        state.positive("scale"),
    )


def _read_neighbours(
    state: State | None, encoder: Encoder, device: torch.device
) -> Neighbours | None:
    if state is None:
        return None
    record: dict[str, Any] = {
        "share": state.positive("share", below=1),
        "alone": state.number("alone", least=0, most=1),
        "lean": state.number("lean", least=1),
        "spread": state.positive("spread"),
    }
    n_inputs, n_columns = encoder.n_inputs, encoder.n_columns
    arrays = {name: state.array(name, "f4", (n_inputs,)) for name in ("mean", "scale")}
    arrays["weight"] = state.array("weight", "f4", (n_columns,))
    for side in ("normals", "anomalies"):
        record[f"n_{side}"] = 0
        if side == "normals" or "anomalies.rows" in state.arrays:
            rows = arrays[f"{side}.rows"] = state.array(f"{side}.rows", "f4", (None, n_inputs))
            is_count = 0 < len(rows) <= MAX_NEIGHBOURS
            require(is_count, f"its neighbours are not 1 to {MAX_NEIGHBOURS} rows of a label.")
            record[f"n_{side}"] = len(rows)
            for name in ("typical", "outside"):
                arrays[f"{side}.{name}"] = state.array(f"{side}.{name}", "f8", (n_columns,))
    tensors = {f"neighbours.{n}": torch.from_numpy(a).to(device) for n, a in arrays.items()}
    return Neighbours.read(record, tensors, encoder)


def _read_forest(state: State | None, encoder: Encoder, device: torch.device) -> Forest | None:
    if state is None:
        return None
    owner = feature_owner(encoder, device)
    dtypes = dict(zip(NODE_FIELDS, ("i4", "f4", "i4", "f8"), strict=True))
    n_nodes = math.prod(state.arrays.get("feature", np.empty(0)).shape)
    require(0 < n_nodes <= MAX_NODES, f"its forest has not 1 to {MAX_NODES} nodes.")
    arrays = {name: state.array(name, dtype, (n_nodes,)) for name, dtype in dtypes.items()}
    arrays["scale"] = state.array("scale", "f4", (len(owner),))
    arrays["centre"] = state.array("centre", "f8", (encoder.n_columns,))
    tensors = {f"forest.{n}": torch.from_numpy(a).to(device) for n, a in arrays.items()}
    record = {"share": state.positive("share", below=1), "spread": state.positive("spread")}
    return Forest.read(record, tensors, owner)
