"""What a model file says of its detector, as JSON values: parameters, column names, summary."""

from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from os import PathLike
from typing import Any

from fewlier.decision.calibration import Threshold
from fewlier.errors import FormatError, UserError
from fewlier.modelfile.container import brief
from fewlier.settings import DEVICES, read_recipe
from fewlier.state import Json, fields_of, require
from fewlier.summary import Summary, is_texts


def to_record(parameters: Mapping[str, Any], has_names: bool, summary: Summary) -> Json:
    """Write down the constructor's parameters, whether columns had names, and the summary."""
    seed = parameters["random_state"]
    seed = int(seed) if isinstance(seed, Integral) else None
    return {
        "parameters": _plain(dict(parameters) | {"random_state": seed}),
        "has_column_names": has_names,
        "summary": _plain(summary.record()),
    }


def from_record(
    manifest: Json, path: str | PathLike[str], defaults: Mapping[str, Any]
) -> tuple[dict[str, Any], bool, Summary]:
    """Inverse of `to_record`; raises `FormatError` for what it cannot have written.

    `defaults` are those of the constructor; they stand in for parameters younger than the file.
    """
    try:
        names = ("parameters", "has_column_names", "summary")
        parameters, has_names, summary = fields_of(manifest["extra"], "it", names)
        require(isinstance(has_names, bool), "'has_column_names' is no truth value.")
        read = Summary.from_record(summary, Threshold.from_record(manifest["calibration"]))
        return _read_parameters(parameters, defaults), has_names, read
    except UserError as error:
        raise FormatError(
            f"Model file {str(path)!r} must describe a detector; in what it says of one, "
            f"{brief(error)}"
        ) from error


def _read_parameters(record: object, defaults: Mapping[str, Any]) -> dict[str, Any]:
    names = list(defaults)
    parameters = dict(zip(names, fields_of(record, "its parameters", names), strict=True))
    for name in ("lambdas", "hidden"):
        value = parameters[name]
        if name == "hidden" and value is None:
            continue
        require(isinstance(value, list), f"{name!r} is no list.")
        parameters[name] = tuple(value)
    for name in ("density", "selection", "flow", "unlabelled"):
        require(isinstance(parameters[name], str), f"{name!r} is no text.")
    require(parameters["device"] in list(DEVICES), "'device' is unknown.")
    seed = parameters["random_state"]
    require(seed is None or type(seed) is int, "'random_state' is no integer.")
    for name in ("columns", "conditionals"):
        value = parameters[name]
        is_text = name == "columns" and isinstance(value, str)
        require(value is None or is_text or is_texts(value), f"{name!r} is no record of texts.")
    if type(parameters["learning_rate"]) is int:
        parameters["learning_rate"] = float(parameters["learning_rate"])
    read_recipe(parameters | {"device": "cpu"})  # refuses values that `fit` would refuse
    return parameters


def _plain(value: object) -> Any:  # noqa: ANN401 - JSON values
    """Return containers and numbers of any type, such as numpy's, as those of JSON."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(cell) for key, cell in value.items()}
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    if isinstance(value, Iterable):
        return [_plain(cell) for cell in value]
    raise UserError(f"A saved parameter must be text, numbers or lists; got {value!r}.")
