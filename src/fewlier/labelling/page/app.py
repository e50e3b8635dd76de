"""The page of a session: a server on loopback, for the browser that was given its address."""

import json
import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from fewlier.errors import UserError, missing_package
from fewlier.labelling.page.api import PageApi
from fewlier.process.markup import with_palette

if TYPE_CHECKING:
    from starlette.types import ASGIApp

MAX_BODY = 1 << 18
"""Most bytes of a request; the longest answers some thousand rows at once."""

_TYPES = {"css": "text/css", "html": "text/html", "js": "text/javascript"}


def require_extra() -> None:
    """Raise an error unless the packages that serve the page are installed."""
    try:
        import starlette  # noqa: F401 - only whether it is there
        import uvicorn  # noqa: F401
    except ImportError as error:
        found = missing_package("The page needs starlette and uvicorn", error, "label")
        raise UserError(f"{found}, or ask in the terminal with --terminal.") from error


def make_app(api: PageApi, token: str, port: int) -> "ASGIApp":
    """Return the page as an ASGI application that answers only who has the token."""
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import Request
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route

    from fewlier.labelling.page.guard import Guard

    def asset(name: str) -> Response:
        return Response(read_static(name), media_type=_TYPES[name.rpartition(".")[2]])

    async def ask(request: Request) -> Response:
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_BODY:
                return JSONResponse({"error": f"A request may have {MAX_BODY} bytes."}, 413)
        reply = await run_in_threadpool(api.reply, request.path_params["action"], _read(body))
        return JSONResponse(reply)

    routes = [
        Route("/", lambda _: asset("labelling.html")),
        Route("/static/labelling.css", lambda _: asset("labelling.css")),
        Route("/static/labelling.js", lambda _: asset("labelling.js")),
        Route("/favicon.ico", lambda _: Response(status_code=204)),
        Route("/ask/{action}", ask, methods=["POST"]),
    ]
    return Guard(Starlette(routes=routes), token, port)


def read_static(name: str) -> str:
    """Return one of the page's files."""
    return with_palette((files("fewlier.labelling.page") / "static" / name).read_text("utf-8"))


@contextmanager
def serving(api: PageApi, port: int = 0) -> Iterator[str]:
    """Serve the page while the block runs; yields its address. Port 0 is any that is free."""
    require_extra()
    import uvicorn

    token = secrets.token_urlsafe(24)
    with _listen(port) as listening:
        port = listening.getsockname()[1]
        config = uvicorn.Config(
            make_app(api, token, port),
            log_level="warning",
            lifespan="off",
            ws="none",
            timeout_graceful_shutdown=2,
        )
        server = uvicorn.Server(config)
        # In a thread of its own it leaves signals alone: `stopping` answers them.
        thread = threading.Thread(target=server.run, args=([listening],), name="page", daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{port}/?token={token}"
        finally:
            server.should_exit = True
            thread.join()


def _listen(port: int) -> socket.socket:
    try:
        return socket.create_server(("127.0.0.1", port))
    except (OSError, OverflowError) as error:
        raise UserError(
            f"The port must be free; got {port}: {error}. Choose another one with --port, or "
            "leave it out."
        ) from error


def _read(body: bytes | bytearray) -> Any:  # noqa: ANN401 - any JSON; the api checks it
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None
