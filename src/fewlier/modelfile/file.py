"""FittedModel <-> file: one zip of a manifest (JSON) and weights (safetensors), and no pickle."""

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import safetensors.numpy
import torch
from safetensors import SafetensorError
from torch import Tensor

from fewlier import __version__
from fewlier.atomic import PathLike
from fewlier.decision.calibration import Calibration
from fewlier.decision.drift import Reference
from fewlier.density import DENSITIES, build_density
from fewlier.density.base import Architecture, Density
from fewlier.density.conditionals import CONDITIONALS
from fewlier.density.joint import Anchors, n_value_parameters
from fewlier.errors import FormatError, UserError
from fewlier.memory import Memory
from fewlier.modelfile.container import WEIGHTS, Archive, opened, parse_json, write_archive
from fewlier.modelfile.manifest import (
    FORMAT,
    MAX_LAYERS,
    N_PROBES,
    VERSION,
    Layout,
    bytes_of,
    extreme_rows,
    forest_layout,
    manifest_of,
    memory_layout,
    n_layers,
    neighbours_layout,
    probe_rows,
    reference_layout,
)
from fewlier.score.model import FittedMember, FittedModel, feature_owner
from fewlier.score.neighbours import Neighbours
from fewlier.score.trees import Forest
from fewlier.state import Json, require
from fewlier.table import Encoded, Encoder, Kind, Table
from fewlier.table.labels import ANOMALY, NORMAL, UNLABELLED

PROBE_TOLERANCE = 1e-4

Arrays: TypeAlias = dict[str, npt.NDArray[Any]]

_FLAGS = ("observed", "impossible", "counted", "novel")  # of the rows in a memory
_SCORES = ("normal_scores", "training_scores", "anomaly_scores")
_DTYPES = {torch.float32: "F32", torch.float64: "F64", torch.int64: "I64"}
# safetensors names each tensor once, with its type, shape and place.
_HEADER_BYTES_PER_TENSOR = 1024


def save_model(
    model: FittedModel,
    path: PathLike,
    *,
    memory: Memory | None = None,
    extra: Json,
    check: Callable[[Path], object] | None = None,
) -> None:
    """Write a model to a file, whole or not at all.

    Parameters
    ----------
    model : FittedModel
        The model.
    path : path
        Where to; a file there is replaced.
    memory : Memory or None
        Rows to keep with it, for updates.
    extra : dict
        JSON values to keep with it, such as the parameters of its detector.
    check : callable, or None
        Reads the file back before it takes the place of another; else `load_model` does.
    """
    rows = probe_rows(model.encoder)
    manifest: Json = {
        "format": FORMAT,
        "version": VERSION,
        "versions": {"fewlier": __version__, "torch": str(torch.__version__)},
        "encoder": model.encoder.to_json(),
        "density": {
            "name": next(n for n, cls in DENSITIES.items() if type(model.density) is cls),
            "n_components": int(model.density.joint.n_components),
            **_sizes_record(model.density.architecture),
        },
        "selection": model.selection,
        "members": [
            {
                "weight": float(m.weight),
                "lam": float(m.lam),
                "fold": int(m.fold),
                "scale": float(m.scale),
                "passes": list(m.passes),
            }
            for m in model.members
        ],
        "calibration": {
            "threshold": float(model.calibration.threshold),
            "rule": model.calibration.rule,
            "n_above": model.calibration.at.n_above,
            "guarantee": model.calibration.guarantee,
            "n_normal_scores": len(model.calibration.normal_scores),
            "n_training_scores": len(model.calibration.training_scores),
            "n_anomaly_scores": len(model.calibration.anomaly_scores),
            "prior": model.calibration.prior and float(model.calibration.prior),
        },
        "memory": memory and {"n_rows": len(memory), "n_folds": len(memory.roles)},
        "reference": model.reference.sizes,
        "neighbours": model.neighbours and model.neighbours.record,
        "forest": model.forest and model.forest.record,
        "probes": {"rows": rows, "scores": _probe_scores(model, rows).tolist()},
        "extra": extra,
    }
    if n_layers(manifest) > MAX_LAYERS:
        raise UserError(
            f"A saved model must take a row through at most {MAX_LAYERS} layers, counting members, "
            f"orderings or masks, and hidden layers; got {n_layers(manifest)}. Fit with fewer."
        )
    arrays = _arrays(model) | model.reference.arrays | (_memory_arrays(memory) if memory else {})
    write_archive(path, manifest, safetensors.numpy.save(arrays), check or load_model)


def load_model(
    path: PathLike, *, device: torch.device | str = "cpu"
) -> tuple[FittedModel, Memory | None, Json]:
    """Return the model in a file, and the memory and the `extra` it was saved with.

    Raises
    ------
    FormatError
        If anything in the file is not as `save_model` writes it, or if its probe rows do not
        score as they did when it was saved.
    """
    with opened(path) as archive:
        manifest = manifest_of(archive)
        encoder = Encoder.from_json(manifest["encoder"])
        require(manifest["density"]["name"] in DENSITIES, "its density is unknown.")
        _check_conditionals(encoder)
        require(
            _least_bytes(manifest, encoder) <= archive.size(WEIGHTS),
            "its weights are smaller than its manifest implies.",
        )
        density = _template(manifest["density"], encoder)
        layout = _layout(manifest, density, encoder.n_columns) | memory_layout(manifest, encoder)
        layout |= reference_layout(manifest) | neighbours_layout(manifest, encoder)
        layout |= forest_layout(manifest, encoder)
        arrays = _read_arrays(archive, layout)
        _check_values(arrays)
        model = _built(manifest, encoder, density, arrays, torch.device(device))
        _check_probes(model, manifest["probes"])
        extra: Json = manifest["extra"]
        return model, _built_memory(arrays, encoder) if manifest["memory"] else None, extra


def _probe_scores(
    model: FittedModel, rows: list[list[float | str | None]]
) -> npt.NDArray[np.float64]:
    columns = zip(model.encoder.schema.columns, zip(*rows, strict=True), strict=True)
    cells = {
        column.name: np.array(values, dtype=object if column.kind is Kind.CATEGORY else np.float64)
        for column, values in columns
    }
    with np.errstate(all="ignore"):  # what is wrong with a damaged file shows in the score
        # Not padded to a whole chunk: of many passes that would take far more memory than the file.
        return model.score(model.encoder.encode(Table(cells)), chunk=N_PROBES)


def _check_probes(model: FittedModel, probes: Json) -> None:
    found = _probe_scores(model, probes["rows"])
    is_close = np.allclose(found, probes["scores"], rtol=PROBE_TOLERANCE, atol=PROBE_TOLERANCE)
    require(
        is_close,
        f"its probe rows must score {probes['scores']}; they score {found.tolist()}.",
    )
    is_finite = np.isfinite(_probe_scores(model, extreme_rows(model.encoder))).all()
    require(bool(is_finite), "its weights give rows a score that is not finite.")


def _arrays(model: FittedModel) -> Arrays:
    """Name every tensor of a model."""
    tensors = {f"density.{name}": value for name, value in _buffers(model.density).items()}
    if model.neighbours is not None:
        tensors |= model.neighbours.tensors
    if model.forest is not None:
        tensors |= model.forest.tensors
    arrays: Arrays = {
        f"calibration.{name}": getattr(model.calibration, name)
        for name in _SCORES
        if len(getattr(model.calibration, name))
    }
    for index, member in enumerate(model.members):
        prefix = f"member.{index}"
        parameters = member.density.named_parameters()
        tensors |= {f"{prefix}.parameters.{n}": value for n, value in parameters}
        tensors |= {f"{prefix}.anchors.{n}": v for n, v in member.anchors._asdict().items()}
        arrays[f"{prefix}.centre"] = member.centre
    arrays |= {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}
    return {name: np.ascontiguousarray(array) for name, array in arrays.items()}


def _buffers(density: Density) -> dict[str, Tensor]:
    """Return what is random in the structure of a density: its state but for the parameters."""
    parameters = {name for name, _ in density.named_parameters()}
    return {name: v for name, v in density.state_dict().items() if name not in parameters}


def _check_conditionals(encoder: Encoder) -> None:
    for column in encoder.schema.columns:
        conditional = CONDITIONALS.get(column.scored_by)
        is_known = conditional is not None and conditional.coding is column.coding
        require(is_known, f"column {column.name!r} is scored by an unknown {column.scored_by!r}.")


def _least_bytes(manifest: Json, encoder: Encoder) -> int:
    """Return bytes that the weights take at least: sizes are checked before they are allocated."""
    record = manifest["density"]
    density = DENSITIES[record["name"]]
    n_outputs = n_value_parameters(encoder, record["n_components"])
    size = density.least_size(_sizes(record), encoder, n_outputs)
    return int(4 * (len(manifest["members"]) * size.parameters + size.structure))


def _sizes_record(sizes: Architecture) -> Json:
    """Return the sizes as JSON values, whatever types of number the user gave."""
    record = {
        name: v if isinstance(v, str) else int(v)
        for name, v in vars(sizes).items()
        if name != "hidden"
    }
    return {"hidden": [int(width) for width in sizes.hidden], **record}


def _sizes(record: Json) -> Architecture:
    values = {name: v for name, v in record.items() if name not in ("name", "n_components")}
    return Architecture(**values | {"hidden": tuple(record["hidden"])})


def _template(record: Json, encoder: Encoder) -> Density:
    name, n_components = record["name"], record["n_components"]
    return build_density(name, encoder, n_components, _sizes(record), torch.Generator())


def _layout(manifest: Json, density: Density, n_columns: int) -> Layout:
    """Return the type and shape that every tensor of the file must have."""
    calibration = manifest["calibration"]
    layout = {f"density.{name}": _spec(tensor) for name, tensor in _buffers(density).items()}
    for name in _SCORES:
        if calibration[f"n_{name}"]:
            layout[f"calibration.{name}"] = ("F64", [calibration[f"n_{name}"]])
    for index, record in enumerate(manifest["members"]):
        prefix, passes = f"member.{index}", record["passes"]
        require(max(passes) < density.n_passes, "a member scores with a pass that is not there.")
        for name, parameter in density.named_parameters():
            layout[f"{prefix}.parameters.{name}"] = _spec(parameter)
        for name in Anchors._fields:
            layout[f"{prefix}.anchors.{name}"] = ("F32", [len(passes), n_columns])
        layout[f"{prefix}.centre"] = ("F64", [n_columns + 1])
    return layout


def _spec(tensor: Tensor) -> tuple[str, list[int]]:
    return _DTYPES[tensor.dtype], list(tensor.shape)


def _read_arrays(archive: Archive, layout: Layout) -> Arrays:
    """Read the weights, after their size and then their header proved to be those of the layout."""
    size, start = archive.size(WEIGHTS), archive.read(WEIGHTS, 8)
    require(len(start) == 8, "its weights have no header.")
    (header_bytes,) = struct.unpack("<Q", start)
    n_bytes = bytes_of(layout)
    is_short = header_bytes <= _HEADER_BYTES_PER_TENSOR * len(layout)
    require(
        is_short and size == 8 + header_bytes + n_bytes,
        f"its weights are {size} bytes, which is not what its manifest implies.",
    )
    header = parse_json(archive.read(WEIGHTS, 8 + header_bytes)[8:], "the header of its weights")
    different = sorted(set(header) ^ set(layout))
    require(not different, f"tensors are missing or unexpected: {different[:5]}.")
    for name, (dtype, shape) in layout.items():
        record = header[name] if isinstance(header[name], dict) else {}
        found = record.get("dtype"), record.get("shape")
        require(found == (dtype, shape), f"tensor {name!r} is {found}, not {(dtype, shape)}.")
    try:
        arrays: Arrays = safetensors.numpy.load(archive.read(WEIGHTS))
    except (SafetensorError, ValueError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"its weights are no safetensors ({error}).") from error
    return arrays


def _check_values(arrays: Arrays) -> None:
    for name, array in arrays.items():
        require(bool(np.isfinite(array).all()), f"tensor {name!r} holds NaN or infinity.")
        is_sorted = not name.startswith("calibration.") or bool((array[1:] >= array[:-1]).all())
        require(is_sorted, f"tensor {name!r} is not sorted.")
    for name in (f"memory.{flag}" for flag in _FLAGS):
        require(bool((arrays.get(name, np.zeros(1)) <= 1).all()), f"{name!r} is no truth value.")


def _built(
    manifest: Json, encoder: Encoder, density: Density, arrays: Arrays, device: torch.device
) -> FittedModel:
    """Put a model together from parts that were all checked."""
    # Copies, because a slice of the file's bytes is not aligned as tensors are.
    tensors = {
        name: torch.tensor(array, device=device)
        for name, array in arrays.items()
        if name.startswith(("density.", "neighbours.", "forest."))
        or ".parameters." in name
        or ".anchors." in name
    }
    # The layout was checked: only parameters are missing, and each member has its own.
    density.load_state_dict(_under("density.", tensors), strict=False)
    density.check_structure()
    density.to(device)
    members = tuple(
        FittedMember(
            record["weight"],
            record["lam"],
            record["fold"],
            density.with_parameters(_under(f"member.{index}.parameters.", tensors)),
            tuple(record["passes"]),
            Anchors(**_under(f"member.{index}.anchors.", tensors)),
            arrays[f"member.{index}.centre"].copy(),
            record["scale"],
        )
        for index, record in enumerate(manifest["members"])
    )
    normal, training, anomaly = (
        arrays.get(f"calibration.{name}", np.empty(0)).astype(np.float64) for name in _SCORES
    )
    calibration = Calibration(
        normal,
        training,
        manifest["calibration"]["threshold"],
        manifest["calibration"]["guarantee"],
        manifest["calibration"]["rule"],
        anomaly_scores=anomaly,
        prior=manifest["calibration"]["prior"],
    )
    is_above = calibration.at.n_above == manifest["calibration"]["n_above"]
    require(is_above, "its threshold lies elsewhere among the held-back rows than it says.")
    reference = Reference.read(manifest["reference"], arrays, encoder)
    return FittedModel(
        encoder,
        members,
        manifest["selection"],
        calibration,
        reference,
        Neighbours.read(manifest["neighbours"], tensors, encoder),
        Forest.read(manifest["forest"], tensors, feature_owner(encoder, device)),
    )


def _memory_arrays(memory: Memory) -> Arrays:
    """Name the arrays of a memory; truth values are bytes."""
    arrays = {
        "inputs": memory.encoded.inputs,
        "targets": memory.encoded.targets,
        "observed": memory.encoded.observed.view(np.uint8),
        "impossible": memory.encoded.impossible.view(np.uint8),
        "labels": memory.labels,
        "counted": memory.counted.view(np.uint8),
        "novel": memory.novel.view(np.uint8),
        "roles": memory.roles,
    }
    return {f"memory.{name}": np.ascontiguousarray(array) for name, array in arrays.items()}


def _built_memory(arrays: Arrays, encoder: Encoder) -> Memory:
    # Copies, as above.
    part = {n.removeprefix("memory."): v.copy() for n, v in arrays.items() if n[:7] == "memory."}
    flags = {name: part[name].astype(np.bool_) for name in _FLAGS}
    encoded = Encoded(part["inputs"], part["targets"], flags["observed"], flags["impossible"])
    _check_rows(encoded, encoder)
    has_levels = flags["observed"] & ~flags["impossible"] & (encoder.n_levels > 0)
    require(not (flags["novel"] & ~has_levels).any(), "its memory has levels where none can be.")
    is_label = np.isin(part["labels"], (ANOMALY, NORMAL, UNLABELLED))
    require(bool(is_label.all()), "'memory.labels' is no label.")
    memory = Memory(encoded, part["labels"], flags["counted"], flags["novel"], part["roles"])
    require(not memory.lacks_a_role, "its memory lacks rows that every fold must have.")
    require(memory.agrees, "its memory has anomalies that are not labelled so.")
    return memory


def _check_rows(rows: Encoded, encoder: Encoder) -> None:
    """Refuse rows that no table can have been encoded as."""
    codings = np.array([column.coding for column in encoder.schema.columns])
    most = np.where(codings == Kind.BINARY, 1, encoder.n_levels - 1).astype(np.float64)
    is_code = (codings == Kind.BINARY) | (codings == Kind.CATEGORY)
    values = np.where(rows.observed & ~rows.impossible, rows.targets, 0)
    codes = values[:, is_code]
    is_right = (codes >= 0) & (codes <= most[is_code]) & (codes == np.floor(codes))
    require(bool(is_right.all()), "its memory has codes beyond the levels of a column.")
    amounts = values[:, (codings == Kind.COUNT) | (codings == Kind.POSITIVE)]
    require(bool((amounts >= 0).all()), "its memory has counts or amounts below 0.")


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {n.removeprefix(prefix): v for n, v in tensors.items() if n.startswith(prefix)}
