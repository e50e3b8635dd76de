"""What a new worker gets to know. It answers its supervisor before it loads a model, or torch."""

import asyncio
from typing import TYPE_CHECKING, final

from uvicorn.protocols.http.h11_impl import H11Protocol

from fewlier.service.told import Settings

if TYPE_CHECKING:
    from starlette.types import ASGIApp

HEADER_SECONDS = 10.0
"""Time for a new connection to send the head of a request."""


@final
class Protocol(H11Protocol):
    """HTTP that closes connections on which no request begins."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Give a new connection some seconds for the head of its first request."""
        super().connection_made(transport)
        self.loop.call_later(HEADER_SECONDS, self._close_if_silent)

    def _close_if_silent(self) -> None:
        if self.cycle is None and not self.transport.is_closing():
            self.transport.close()


def make_app(settings: Settings) -> "ASGIApp":
    """Return the application; what it needs takes seconds to load."""
    from fewlier.service.app import make_app

    return make_app(settings)
