"""What a new worker gets to know. It answers its supervisor before it loads a model, or torch."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, final

from uvicorn.protocols.http.h11_impl import H11Protocol

from fewlier.service.told import Settings

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

HEAD_SECONDS = 10.0
"""Time for the head of a request: from the start of a connection, or from its own first byte."""
MAX_CONNECTIONS = 1_000
"""Connections that a worker holds; to requests on further ones it says 503."""


@final
class Alarm:
    """Calls something in some seconds, unless it is cleared before."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None

    def set(self, seconds: float, call: Callable[[], None]) -> None:
        """Set it, if it is not set already."""
        if self._timer is None:
            self._timer = self._loop.call_later(seconds, call)

    def clear(self) -> None:
        """Call nothing any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


@final
class Protocol(H11Protocol):
    """HTTP that holds no connection for a client that asks nothing or takes no answer.

    Parameters
    ----------
    seconds : float
        Time for a client to take an answer.
    head_seconds : float
        Time for the head of a request.
    most : int
        Connections among which this one is served.
    **uvicorn
        What uvicorn tells each protocol.
    """

    def __init__(
        self,
        *,
        seconds: float,
        head_seconds: float = HEAD_SECONDS,
        most: int = MAX_CONNECTIONS,
        **uvicorn: Any,  # noqa: ANN401 - as its base says
    ) -> None:
        super().__init__(**uvicorn)
        self._seconds, self._head_seconds, self._most = seconds, head_seconds, most
        self._service, self.app = self.app, self._answer
        self._silent, self._unread = Alarm(self.loop), Alarm(self.loop)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Give a new connection some seconds for the head of its first request."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=0)  # so that any unread byte pauses writing
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Give the next request some seconds for its head too."""
        super().data_received(data)
        self._watch()

    def pause_writing(self) -> None:
        """Give the client some seconds to take what is written."""
        super().pause_writing()
        self._unread.set(self._seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Write on: the client has taken all."""
        super().resume_writing()
        self._unread.clear()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing more."""
        super().connection_lost(exc)
        self._silent.clear()
        self._unread.clear()

    def _watch(self) -> None:
        """Close the connection in some seconds, unless a request has begun by then."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._silent.clear()
        else:
            self._silent.set(self._head_seconds, self.transport.close)

    async def _answer(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if len(self.connections) > self._most:
            scope["state"]["most_connections"] = self._most
        await self._service(scope, receive, send)


def make_app(settings: Settings) -> "ASGIApp":
    """Return the application; what it needs takes seconds to load."""
    from fewlier.service.app import make_app

    return make_app(settings)
