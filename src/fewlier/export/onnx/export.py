"""A model written as an ONNX file."""

import json
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from fewlier import __version__
from fewlier.errors import UserError
from fewlier.export.onnx.check import Difference, check, made_up
from fewlier.export.onnx.columns import inputs_of
from fewlier.export.onnx.whole import Outputs, Whole
from fewlier.files.atomic import PathLike, replacing
from fewlier.score.model import FittedModel
from fewlier.table.cells import MISSING

if TYPE_CHECKING:
    from torch.onnx import ONNXProgram

METADATA = "fewlier"
"""Where a graph says, as JSON, what its inputs are and what its model was."""
_N_TRACED = 3  # rows that the graph is traced with; it takes any number
_OPSET = 20


def export(
    model: FittedModel,
    path: PathLike,
    *,
    is_checked: bool,
    tell: Callable[[str], None] = lambda _: None,
) -> Difference | None:
    """Write a model as one ONNX graph, whole or not at all.

    With `is_checked` it is run in onnxruntime first, on made-up rows, and refused where it says
    anything but what the model says. `tell` hears of it when that begins.
    """
    if model.scorer.device.type != "cpu":
        raise UserError(
            f"A graph can be written of a model on the CPU; this one is on {model.scorer.device}. "
            "Run it where no GPU is seen: CUDA_VISIBLE_DEVICES= fewlier export ..."
        )
    program = trace(model)
    found: list[Difference] = []

    def check_file(written: Path) -> None:
        if is_checked:
            tell("scoring made-up rows with the graph, to compare.")
            found.append(check(model, written))

    with replacing(path, check_file) as file:
        file.write(program.model_proto.SerializeToString())
    return found[0] if found else None


def trace(model: FittedModel) -> "ONNXProgram":
    """Return a model as a graph, its inputs named as the columns are."""
    names = [one.name for one in inputs_of(model.encoder)]
    _check_names(names)
    with _quiet():
        program = torch.onnx.export(
            operations_of(model),
            dynamo=True,
            opset_version=_OPSET,
            output_names=list(Outputs._fields),
            verbose=False,
            optimize=False,
        )
    if program is None:
        raise AssertionError("torch.onnx.export returned nothing")
    _simplify(program)
    _rename(program, names)
    program.model.metadata_props[METADATA] = json.dumps(facts_of(model))
    return program


def _simplify(program: "ONNXProgram") -> None:
    """Fold constants, share what is computed twice, and forget where in the source nodes are from.

    Torch's own `optimize` also rewrites, which takes as long as all the rest; onnxruntime does it.
    """
    from onnx_ir.passes.common import (
        ClearMetadataAndDocStringPass,
        CommonSubexpressionEliminationPass,
        RemoveUnusedNodesPass,
    )
    from onnxscript.optimizer import fold_constants

    with _quiet():
        fold_constants(program.model)
        CommonSubexpressionEliminationPass()(program.model)
        RemoveUnusedNodesPass()(program.model)
        ClearMetadataAndDocStringPass()(program.model)


def operations_of(model: FittedModel) -> torch.export.ExportedProgram:
    """Return what a model computes, as operations of torch that ONNX has too."""
    _, columns = made_up(model.encoder)
    some = tuple(
        torch.from_numpy(columns[one.name][:_N_TRACED].copy()) for one in inputs_of(model.encoder)
    )
    whole, n = Whole(model).eval(), torch.export.Dim("rows", min=1)
    with torch.no_grad(), _quiet():
        whole(*some)  # what is computed once from the model is computed now, not in the graph
        shapes = {"columns": tuple({0: n} for _ in some)}
        return torch.export.export(whole, some, dynamic_shapes=shapes)


def _check_names(names: list[str]) -> None:
    """Refuse columns that have the name of an output: a graph has each name once."""
    taken = sorted(set(names) & set(Outputs._fields))
    if taken:
        raise UserError(
            f"The columns of a graph must not be called {', '.join(Outputs._fields)}, as what it "
            f"says of rows is; found {', '.join(taken)}. Rename it in the table and fit again."
        )


def _rename(program: "ONNXProgram", names: list[str]) -> None:
    """Name the inputs as the columns are; values inside the graph make room for these names."""
    graph = program.model.graph
    taken = {*names, *Outputs._fields}
    for number, value in enumerate(value for node in graph.all_nodes() for value in node.outputs):
        if value.name in taken and not value.is_graph_output():
            value.name = f"{value.name}/{number}"
    for value, name in zip(graph.inputs, names, strict=True):
        value.name = name


def facts_of(model: FittedModel) -> dict[str, object]:
    """Return what a user of the graph should know."""
    calibration = model.calibration
    return {
        "fewlier": __version__,
        "inputs": [one.record() for one in inputs_of(model.encoder)],
        "missing": sorted(MISSING),  # of categories the caller reads the text
        "threshold": calibration.threshold,
        "unit": model.ensemble.unit,
        "guarantee": calibration.guarantee,
    }


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep what torch and onnxscript say of their own insides to themselves."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
