"""What a new worker gets to know. It answers its supervisor before it loads a model, or torch."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, final

from uvicorn.protocols.http.h11_impl import H11Protocol

from fewlier.service.limits import Limits

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


class Settings(NamedTuple):
    """What each worker is told. It travels to them in memory, with the token.

    Parameters
    ----------
    path : Path
        A model file, or a folder of them.
    counts : Path
        A folder for what workers count.
    limits : Limits
        What a request may ask for.
    hosts : tuple of str, or None
        Names that requests may give in `Host`; None: any.
    token : str or None
        What they must bring.
    threads : int
        Threads that a worker computes in.
    """

    path: Path
    counts: Path
    limits: Limits
    hosts: tuple[str, ...] | None
    token: str | None
    threads: int

    def make_app(self) -> "ASGIApp":
        """Return the application; what it needs takes seconds to load."""
        from fewlier.service.app import make_app

        return make_app(self)
