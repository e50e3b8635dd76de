"""A model written as an ONNX file."""

import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from fewlier import __version__
from fewlier.atomic import PathLike, replacing
from fewlier.graph.columns import inputs_of
from fewlier.graph.gamma import log_gamma
from fewlier.graph.whole import Outputs, Whole
from fewlier.modelfile.probes import extreme_rows, probe_rows, table_of
from fewlier.score.model import FittedModel

if TYPE_CHECKING:
    import onnx

TOLERANCE = 1e-4
"""By which scores of the graph may differ from the library's, in standard units."""
_N_TRACED = 3  # rows that the graph is traced with; it takes any number
_OPSET = 20


def export(model: FittedModel) -> "onnx.ModelProto":
    """Return a model as one ONNX graph."""
    table = table_of(model.encoder, probe_rows(model.encoder))
    columns = tuple(columns_of(model.encoder, table))
    rows = torch.export.Dim("rows", min=1)
    whole = Whole(model).eval()
    with torch.no_grad(), _quiet():
        program = torch.export.export(
            whole, columns, dynamic_shapes={"columns": tuple({0: rows} for _ in columns)}
        )
        table = torch.export.default_decompositions()
        table[torch.ops.aten.lgamma.default] = log_gamma
        onnx_program = torch.onnx.export(
            program.run_decompositions(table),
            dynamo=True,
            opset_version=_OPSET,
            output_names=list(Outputs._fields),
            verbose=False,
        )
    return onnx_program
