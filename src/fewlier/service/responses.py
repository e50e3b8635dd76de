"""Responses: JSON, and what is wrong in a sentence."""

from collections.abc import Mapping

from starlette.responses import Response

from fewlier.service.answers import to_json

RETRY = {"Retry-After": "1"}
"""Of an overloaded service: when to ask again, in seconds."""


def json_response(
    value: object, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return a value as JSON."""
    return Response(to_json(value), status, headers, "application/json")


def failure(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """Say why there is no answer."""
    return json_response({"error": message}, status, headers)
