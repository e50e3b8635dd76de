"""The access log, one JSON object a line, and the counts of requests."""

import json
import logging
import time
from typing import Any, final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fewlier.service.counts import ERRORS, REQUESTS, SECONDS

log = logging.getLogger(__name__)
_PLAIN = logging.makeLogRecord({}).__dict__.keys() | {"message", "taskName", "color_message"}
_MAX_PATH = 200


@final
class JsonLines(logging.Formatter):
    """Writes a record as one line of JSON, with what it was given as `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        more = {name: value for name, value in vars(record).items() if name not in _PLAIN}
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        facts: dict[str, Any] = {
            "time": f"{moment}.{record.msecs:03.0f}Z",
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        if record.exc_info:
            facts["traceback"] = self.formatException(record.exc_info)
        return json.dumps(facts | more | {"process": record.process}, default=str)


LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"json": {"()": "fewlier.service.journal.JsonLines"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
    "loggers": {
        "fewlier.service": {"handlers": ["stderr"], "level": "INFO", "propagate": False},
        "uvicorn": {"handlers": ["stderr"], "level": "WARNING", "propagate": False},
    },
}
"""The configuration of logging in every process of a service."""


@final
class Journal:
    """Notes each request and its answer; no query, header or body, which may hold secrets."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

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
            self._note(scope, status, time.perf_counter() - started)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        endpoint = getattr(scope.get("endpoint"), "__name__", "none")
        REQUESTS.labels(endpoint, str(status)).inc()
        SECONDS.labels(endpoint).observe(seconds)
        if status >= 400:
            ERRORS.labels(endpoint).inc()
        client = scope.get("client")
        facts = {
            "client": client and client[0],
            "method": scope["method"],
            "path": scope["path"][:_MAX_PATH],
            "status": status,
            "seconds": round(seconds, 6),
        }
        log.info("request", extra=facts | scope.get("state", {}).get("facts", {}))
