"""The access log, and the counts of requests."""

import logging
import time
from typing import final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fewlier.service.counts import ERRORS, REQUESTS, SECONDS

log = logging.getLogger(__name__)
_MAX_PATH = 200


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
