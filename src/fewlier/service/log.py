"""The log of a service: one JSON object a line, about each request and whatever goes wrong."""

import json
import logging
import time
import traceback
from datetime import UTC, datetime
from typing import Any, final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fewlier.service.metrics import Counts

log = logging.getLogger(__name__)
_PLAIN = logging.makeLogRecord({}).__dict__.keys() | {"message", "taskName", "color_message"}
_MAX_PLACES, _MAX_PATH = 200, 200

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"json": {"()": "fewlier.service.log.JsonLines"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
    "root": {"handlers": ["stderr"], "level": "WARNING"},  # asyncio has something to say, too
    "loggers": {"fewlier.service": {"level": "INFO"}},
}
"""The configuration of logging in every process of a service."""


@final
class JsonLines(logging.Formatter):
    """Writes a record as one line of JSON, with what it was given as `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        more = {name: value for name, value in vars(record).items() if name not in _PLAIN}
        facts: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        if record.exc_info and record.exc_info[1]:
            facts["traceback"] = _places(record.exc_info[1])
        return json.dumps(facts | more | {"process": record.process}, default=str)


def _places(error: BaseException | None) -> list[str]:
    """Return the type of an error and where it was raised, and its causes; messages quote cells."""
    found: list[str] = []
    while error is not None and len(found) < _MAX_PLACES:
        walked = traceback.walk_tb(error.__traceback__)
        frames = traceback.StackSummary.extract(walked, lookup_lines=False)
        found += [type(error).__name__, *(f"{f.filename}:{f.lineno} {f.name}" for f in frames)]
        error = error.__cause__ or error.__context__
    return found


@final
class Journal:
    """Notes each request and its answer; no query, header or body, which may hold secrets."""

    def __init__(self, app: ASGIApp, counts: Counts) -> None:
        self._app, self._counts = app, counts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and note how it ended."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.perf_counter(), 500

        async def send_noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, send_noted)
        finally:
            seconds = time.perf_counter() - started
            # Only paths that there are: what else is asked for must not make counts grow.
            self._counts.request(getattr(scope.get("route"), "path", "none"), status, seconds)
            facts = {
                "client": (scope.get("client") or [None])[0],
                "method": scope["method"],
                "path": scope["path"][:_MAX_PATH],
                "status": status,
                "seconds": round(seconds, 6),
            }
            log.info("request", extra=facts | scope.get("state", {}).get("facts", {}))
