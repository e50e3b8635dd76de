"""What can be asked, as OpenAPI describes it."""

from collections.abc import Sequence
from typing import Any

from fewlier import __version__
from fewlier.reasons.reason import Reason
from fewlier.service.arrow import MEDIA_TYPE
from fewlier.service.inference import OUTPUTS, model_metadata
from fewlier.service.limits import MAX_REASONS, Limits
from fewlier.service.shelf import Served

Json = dict[str, Any]
_JSON = "application/json"
_CELL: Json = {"type": ["number", "string", "boolean", "null"]}
_TEXT: Json = {"type": "string"}
_OBJECT: Json = {"type": "object"}
_N_REASONS: Json = {"type": "integer", "minimum": 0, "maximum": MAX_REASONS, "default": 0}
_ERRORS = {
    "400": "The request is malformed; the message says where.",
    "401": "The token is absent or wrong.",
    "404": "There is no such model.",
    "408": "The request took too long to arrive.",
    "413": "The request is larger than a limit allows.",
    "415": "The request has another media type.",
    "421": "The request is for another host.",
    "503": "Too many requests wait; ask again after Retry-After.",
}


def describe(served: Sequence[Served], limits: Limits, is_folder: bool) -> Json:
    """Return the description of a service with these models."""
    paths: Json = {
        "/models": {"get": _get("The models", _OBJECT)},
        "/metrics": {"get": _get("Counts in Prometheus' text format", _TEXT, "text/plain")},
        "/openapi.json": {"get": _get("This description", _OBJECT)},
        "/v2": {"get": _get("This server", _OBJECT)},
    }
    for path in ("/health/live", "/health/ready", "/v2/health/live", "/v2/health/ready"):
        paths[path] = {"get": _get("How the service is", _OBJECT) | {"security": []}}
    for one in served:
        paths |= _of_model(one, limits)
        if not is_folder:
            paths["/score"] = {"post": _score(one, limits)}
            paths["/model"] = {"get": _get("What the model file holds", _OBJECT)}
    return {
        "openapi": "3.1.0",
        "info": {"title": "fewlier", "version": __version__},
        "paths": paths,
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}, {}],
    }


def _of_model(served: Served, limits: Limits) -> Json:
    """Describe what is asked of a model by its name."""
    name = served.name
    paths: Json = {
        f"/models/{name}/score": {"post": _score(served, limits)},
        f"/models/{name}": {"get": _get("What the model file holds", _OBJECT)},
    }
    version = {
        "name": "version",
        "in": "path",
        "required": True,
        "description": "Hash of the model file.",
        "schema": {"enum": [served.sha256]},
    }
    whole = f"/v2/models/{name}"
    for path, parameters in ((whole, []), (f"{whole}/versions/{{version}}", [version])):
        more = {"parameters": parameters}
        paths |= {
            path: {"get": _get("What it takes and gives", _OBJECT) | more},
            f"{path}/ready": {"get": _get("That it is there", _OBJECT) | more},
            f"{path}/infer": {"post": _infer(served) | more},
        }
    return paths


def _get(summary: str, schema: Json, media_type: str = _JSON) -> Json:
    return {"summary": summary, "responses": _responses(schema, media_type)}


def _score(served: Served, limits: Limits) -> Json:
    names = served.model.encoder.schema.sources
    row = {
        "type": "object",
        "required": list(names),
        "properties": {name: _CELL for name in names},
    }
    rows = {"type": "array", "minItems": 1, "maxItems": limits.rows, "items": row}
    column = {"type": "array", "minItems": 1, "maxItems": limits.rows, "items": _CELL}
    columns = row | {"properties": {name: column for name in names}}
    answer = {
        "type": "object",
        "required": ["model", "model_sha256", "rows"],
        "properties": {
            "model": _TEXT,
            "model_sha256": _TEXT,
            "rows": {"type": "array", "items": _answer()},
            "notes": {"type": "array", "items": _TEXT},
        },
    }
    reasons = {
        "name": "reasons",
        "in": "query",
        "description": "Columns to name for each row.",
        "schema": _N_REASONS,
    }
    content = {
        _JSON: {"schema": {"oneOf": [_only("rows", rows), _only("columns", columns)]}},
        MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}},
    }
    return {
        "summary": f"Score rows by {served.name}",
        "parameters": [reasons],
        "requestBody": {"required": True, "content": content},
        "responses": _responses(answer, _JSON, MEDIA_TYPE),
    }


def _answer() -> Json:
    """Describe what is said of a row."""
    reason = {"type": "object", "required": [*Reason._fields, "text"]}
    return {
        "type": "object",
        "required": ["anomaly_score", "is_anomaly", "p_value"],
        "properties": {
            "anomaly_score": {"type": "number"},
            "is_anomaly": {"type": "boolean"},
            "p_value": {"type": "number", "minimum": 0, "maximum": 1},
            "reasons": {"type": "array", "items": reason},
        },
    }


def _infer(served: Served) -> Json:
    wanted = model_metadata(served.name, served.sha256, served.model)["inputs"]
    tensor = {
        "type": "object",
        "required": ["name", "datatype", "shape", "data"],
        "properties": {
            "name": {"enum": [one["name"] for one in wanted]},
            "datatype": _TEXT,
            "shape": {"type": "array", "items": {"type": "integer"}},
            "data": {"type": "array", "items": _CELL},
        },
    }
    output = {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"enum": OUTPUTS}},
    }
    request = {
        "type": "object",
        "required": ["inputs"],
        "properties": {
            "id": _TEXT,
            "inputs": {"type": "array", "items": tensor},
            "parameters": {"type": "object", "properties": {"reasons": _N_REASONS}},
            "outputs": {"type": "array", "items": output},
        },
    }
    return {
        "summary": f"Score rows by {served.name}, by the Open Inference Protocol",
        "requestBody": {"required": True, "content": {_JSON: {"schema": request}}},
        "responses": _responses({"type": "object", "required": ["model_name", "outputs"]}, _JSON),
    }


def _only(name: str, schema: Json) -> Json:
    return {
        "type": "object",
        "required": [name],
        "properties": {name: schema},
        "additionalProperties": False,
    }


def _responses(schema: Json, *media_types: str) -> Json:
    """Describe a good answer, and all the bad ones."""
    error = {"type": "object", "required": ["error"], "properties": {"error": _TEXT}}
    good = {kind: {"schema": schema if kind == _JSON else _TEXT} for kind in media_types}
    return {"200": {"description": "The answer.", "content": good}} | {
        status: {"description": why, "content": {_JSON: {"schema": error}}}
        for status, why in _ERRORS.items()
    }
