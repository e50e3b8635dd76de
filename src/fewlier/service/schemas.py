"""What OpenAPI says of requests and answers. Rows are read by `rows`, which is stricter."""

from http import HTTPStatus
from typing import Any, get_type_hints

from pydantic import Field, create_model

from fewlier.reasons.reason import Reason
from fewlier.service.arrow import MEDIA_TYPE

JSON = "application/json"
REASONS = "Columns to name for each row: those that add most to its score."
IDS = "Columns that come back with the answer, read by the model or not; 'id' always does."

_CELL = float | str | bool | None
_ROWS = Field(examples=[[{"id": 7, "amount": 12.5, "city": "Bern"}]])
_COLUMNS = Field(examples=[{"amount": [12.5], "city": ["Bern"]}])
_FORMS = (
    create_model("ByRow", rows=(list[dict[str, _CELL]], _ROWS)),
    create_model("ByColumn", columns=(dict[str, list[_CELL]], _COLUMNS)),
)
_MODEL: Any = {"model": str, "model_sha256": (str, Field(description="Hash of the model file."))}
_REASON: Any = create_model("Reason", text=str, **get_type_hints(Reason))
_ROW: Any = create_model(
    "ScoredRow",
    anomaly_score=float,
    is_anomaly=bool,
    p_value=(float, Field(ge=0, le=1)),
    reasons=(list[_REASON] | None, None),
)
_SCORES = create_model("Scores", rows=list[_ROW], notes=(list[str] | None, None), **_MODEL)
MODEL = create_model("Model", inspection=dict[str, Any], **_MODEL)
_HEALTH = create_model("Health", ready=bool, model_sha256=str | None)
HEALTH: Any = {"response_model": _HEALTH, "responses": {503: {"model": _HEALTH}}}
_PROBLEM = create_model("Problem", detail=str)
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"description": HTTPStatus(status).phrase, "model": _PROBLEM}
    for status in (400, 401, 408, 413, 415, 422, 503)
}
_BINARY = {"schema": {"type": "string", "format": "binary"}}
ANSWERS = PROBLEMS | {200: {"model": _SCORES, "content": {MEDIA_TYPE: _BINARY}}}
_ASKED = {"schema": {"oneOf": [form.model_json_schema() for form in _FORMS]}}
REQUEST = {"requestBody": {"required": True, "content": {JSON: _ASKED, MEDIA_TYPE: _BINARY}}}
