"""The Open Inference Protocol, version 2: one named input for each column."""

from functools import partial
from typing import Any

from fewlier.errors import UserError
from fewlier.score.model import FittedModel
from fewlier.service.answers import Answer, to_json
from fewlier.service.cells import Json, read_columns
from fewlier.service.limits import MAX_REASONS, Limits
from fewlier.table import Kind, Table
from fewlier.table.columns import Column

PLATFORM = "fewlier"
_INTEGERS = {f"{sign}INT{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)}
_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(_INTEGERS, (int,)),
    **dict.fromkeys(("FP16", "FP32", "FP64"), (int, float)),
    "BOOL": (bool,),
    "BYTES": (str,),
}
_OUTPUTS = {"anomaly_score": "FP64", "is_anomaly": "BOOL", "p_value": "FP64"}
OUTPUTS = [*_OUTPUTS, "reasons"]
"""What a request may ask for."""


def model_metadata(name: str, version: str, model: FittedModel) -> dict[str, Any]:
    """Return what a model takes and gives, as the protocol says it."""
    inputs = {column.source: _datatype(column) for column in model.encoder.schema.columns}
    return {
        "name": name,
        "versions": [version],
        "platform": PLATFORM,
        "inputs": [_tensor(column, datatype, -1) for column, datatype in inputs.items()],
        "outputs": [_tensor(output, datatype, -1) for output, datatype in _OUTPUTS.items()],
    }


def read_inputs(document: Json, limits: Limits) -> Table:
    """Return the inputs of a request as a table, one column for each."""
    columns: dict[str, object] = {}
    for tensor in _list(document, "inputs"):
        name, cells = _read_tensor(tensor)
        if name in columns:
            raise UserError(f"Each input must be given once; got {name!r} again.")
        columns[name] = cells
    return read_columns(columns, limits)


def read_n_reasons(document: Json) -> int:
    """Return how many reasons the parameters of a request ask for."""
    parameters = document.get("parameters") or {}
    n_reasons = parameters.get("reasons", 0) if isinstance(parameters, dict) else None
    if type(n_reasons) is not int or not 0 <= n_reasons <= MAX_REASONS:
        raise UserError(
            "'parameters' must be an object, and 'reasons' in it how many columns to name for each "
            "row, such as 3."
        )
    return n_reasons


def read_outputs(document: Json) -> tuple[str, ...] | None:
    """Return the names of the outputs that a request asks for; None for all."""
    if "outputs" not in document:
        return None
    found = [str(tensor.get("name")) for tensor in _list(document, "outputs")]
    if unknown := [name for name in found if name not in OUTPUTS]:
        raise UserError(f"Outputs must be some of {', '.join(OUTPUTS)}; got {unknown[0][:100]!r}.")
    return tuple(found)


def writer(document: Json) -> partial[bytes]:
    """Return what makes the body of a response to a request."""
    id_ = document.get("id")
    if id_ is not None and not isinstance(id_, str):
        raise UserError("'id' must be text.")
    return partial(write_outputs, id_=id_, outputs=read_outputs(document))


def write_outputs(answer: Answer, *, id_: str | None, outputs: tuple[str, ...] | None) -> bytes:
    """Return the body of a response; reasons are text, JSON for each row."""
    columns = answer.columns()
    if "reasons" in columns:
        columns["reasons"] = [to_json(reasons).decode() for reasons in columns["reasons"]]
    tensors = [
        _tensor(name, _OUTPUTS.get(name, "BYTES"), len(cells)) | {"data": cells}
        for name, cells in columns.items()
        if outputs is None or name in outputs
    ]
    facts: dict[str, Any] = {
        "model_name": answer.facts["model"],
        "model_version": answer.facts["model_sha256"],
        "outputs": tensors,
    }
    facts |= {"id": id_} if id_ is not None else {}
    facts |= {"parameters": {"notes": list(answer.notes)}} if answer.notes else {}
    return to_json(facts)


def _datatype(column: Column) -> str:
    return "BYTES" if column.kind is Kind.CATEGORY or column.date is not None else "FP64"


def _tensor(name: str, datatype: str, n_rows: int) -> dict[str, Any]:
    return {"name": name, "datatype": datatype, "shape": [n_rows]}


def _list(document: Json, name: str) -> list[Json]:
    found = document.get(name)
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise UserError(f"{name!r} must be a list of objects.")
    return found


def _read_tensor(tensor: Json) -> tuple[str, list[Any]]:
    """Return the name and the cells of one input, of shape [n] or [n, 1]."""
    name, datatype, shape, cells = (tensor.get(k) for k in ("name", "datatype", "shape", "data"))
    if not isinstance(name, str):
        raise UserError("Every input must have a 'name', that of its column.")
    if not isinstance(datatype, str) or datatype not in _TYPES:
        raise UserError(f"The 'datatype' of input {name!r} must be one of {', '.join(_TYPES)}.")
    if not isinstance(cells, list):
        raise UserError(f"The 'data' of input {name!r} must be a list; binary data are not read.")
    if shape == [len(cells), 1] and all(isinstance(c, list) and len(c) == 1 for c in cells):
        cells = [cell for (cell,) in cells]
    elif shape not in ([len(cells)], [len(cells), 1]):
        raise UserError(
            f"The 'shape' of input {name!r} must be [n] or [n, 1], with n its {len(cells)} cells."
        )
    wanted = _TYPES[datatype]
    for row, cell in enumerate(cells):
        if cell is not None and type(cell) not in wanted:
            raise UserError(
                f"A cell of a {datatype} input must be {_words(wanted)} or null; got "
                f"{type(cell).__name__} in row {row}, column {name!r}."
            )
    return name, cells


def _words(types: tuple[type, ...]) -> str:
    names = {int: "an integer", float: "a number", bool: "true or false", str: "text"}
    return names[types[-1]]
