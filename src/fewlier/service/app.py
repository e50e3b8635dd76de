"""The application: what is asked where."""

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import final

import torch
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from fewlier import __version__
from fewlier.errors import UserError
from fewlier.service import inference
from fewlier.service.answers import Answer
from fewlier.service.arrow import MEDIA_TYPE, read_arrow
from fewlier.service.cells import read_json, read_rows
from fewlier.service.counts import exposition
from fewlier.service.guard import Guard
from fewlier.service.journal import Journal
from fewlier.service.limits import MAX_REASONS, Refusal
from fewlier.service.openapi import describe
from fewlier.service.queue import Order, Queue
from fewlier.service.responses import RETRY, failure, json_response
from fewlier.service.shelf import Served, Shelf
from fewlier.service.told import COULD_NOT_START, Settings

log = logging.getLogger(__name__)

JSON = "application/json"
REFRESH_SECONDS = 1.0
"""How long after a file is replaced its model may still be the old one."""


@final
class Service:
    """Answers requests in one worker."""

    def __init__(self, settings: Settings) -> None:
        self._limits = settings.limits
        self._shelf = Shelf(settings.path, settings.counts)
        self._queue = Queue()
        self._n_waiting = 0

    @asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """Read the models before the first request, and again when their files are replaced."""
        try:
            self._shelf.open()
        except (UserError, OSError) as error:
            log.error("worker could not start", extra={"reason": str(error)})
            os._exit(COULD_NOT_START)  # at once: its supervisor would wait for an answer
        refreshing = asyncio.create_task(self._refresh())
        yield
        refreshing.cancel()

    async def _refresh(self) -> None:
        parent = os.getppid()
        while os.getppid() == parent:
            await asyncio.sleep(REFRESH_SECONDS)
            try:
                await asyncio.to_thread(self._shelf.refresh)
            except Exception:  # the next round may go better
                log.exception("model files not looked at")
        os.kill(os.getpid(), signal.SIGTERM)  # nobody is left to say when to end

    # What is asked of the service

    async def live(self, _: Request) -> Response:
        """Say that this worker runs."""
        return json_response({"live": True})

    async def ready(self, _: Request) -> Response:
        """Say whether there is a model to score by."""
        is_ready = any(True for _ in self._shelf)
        return json_response({"ready": is_ready}, 200 if is_ready else 503)

    async def metrics(self, _: Request) -> Response:
        """Return what all workers have counted."""
        counts = [(served.name, served.counts) for served in self._shelf]
        body = await asyncio.to_thread(exposition, counts)
        return Response(body, media_type="text/plain; version=1.0.0; charset=utf-8")

    async def openapi(self, _: Request) -> Response:
        """Return what can be asked, and in which form."""
        return json_response(describe([*self._shelf], self._limits, self._shelf.is_folder))

    async def models(self, _: Request) -> Response:
        """List the models."""
        return json_response({"models": [served.facts for served in self._shelf]})

    async def model(self, request: Request) -> Response:
        """Return what the file of a model holds."""
        served = self._served(request)
        return json_response(served.facts | {"inspection": served.inspection})

    # Scores

    async def score(self, request: Request) -> Response:
        """Score rows."""
        served = self._served(request)
        n_reasons = _read_n_reasons(request.query_params.get("reasons", "0"))
        kind = _media_type(request, JSON, MEDIA_TYPE)
        with self._place():
            body = await self._body(request)
            if kind == MEDIA_TYPE:
                schema = served.model.encoder.schema
                read = partial(read_arrow, body, self._limits, schema)
                order = Order(served, self._limits, read, Answer.to_arrow, n_reasons)
            else:
                order = Order(
                    served,
                    self._limits,
                    lambda: read_rows(read_json(body), self._limits),
                    Answer.to_json,
                    n_reasons,
                )
            return await self._reply(request, order, kind)

    async def infer(self, request: Request) -> Response:
        """Score rows by the Open Inference Protocol."""
        served = self._served(request)
        _media_type(request, JSON)
        with self._place():
            document = await asyncio.to_thread(read_json, await self._body(request))
            order = Order(
                served,
                self._limits,
                partial(inference.read_inputs, document, self._limits),
                inference.writer(document),
                inference.read_n_reasons(document),
            )
            return await self._reply(request, order, JSON)

    async def server_metadata(self, _: Request) -> Response:
        """Say what this server is."""
        return json_response({"name": "fewlier", "version": __version__, "extensions": []})

    async def model_metadata(self, request: Request) -> Response:
        """Say what a model takes and gives."""
        served = self._served(request)
        return json_response(inference.model_metadata(served.name, served.sha256, served.model))

    async def model_ready(self, request: Request) -> Response:
        """Say that a model is there."""
        return json_response({"name": self._served(request).name, "ready": True})

    # How

    def _served(self, request: Request) -> Served:
        served = self._shelf.get(request.path_params.get("name"))
        version = request.path_params.get("version", served.sha256)
        if version != served.sha256:
            raise Refusal(404, "The model is not served in that version.")
        return served

    @contextmanager
    def _place(self) -> Iterator[None]:
        """Take one of the places for requests that wait."""
        if self._n_waiting >= self._limits.waiting:
            raise Refusal(
                503,
                f"This worker may have {self._limits.waiting} requests waiting; ask again soon.",
            )
        self._n_waiting += 1
        try:
            yield
        finally:
            self._n_waiting -= 1

    async def _body(self, request: Request) -> bytes:
        """Read the body of a request as far as the limits allow."""
        limits, body = self._limits, bytearray()
        too_long = Refusal(413, f"A request may have at most {limits.body} bytes.")
        length = request.headers.get("content-length", "")
        if length.isdecimal() and int(length[:20]) > limits.body:
            raise too_long
        try:
            async with asyncio.timeout(limits.seconds):
                async for chunk in request.stream():
                    body += chunk
                    if len(body) > limits.body:
                        raise too_long
        except TimeoutError as error:
            raise Refusal(
                408, f"A request must arrive within {limits.seconds:g} seconds."
            ) from error
        return bytes(body)

    async def _reply(self, request: Request, order: Order, kind: str) -> Response:
        try:
            async with asyncio.timeout(self._limits.seconds):
                reply = await self._queue.reply(order)
        except TimeoutError as error:
            raise Refusal(
                503,
                f"An answer must take at most {self._limits.seconds:g} seconds; ask again soon.",
            ) from error
        request.scope["state"]["facts"] = order.served.facts | {"rows": reply.n_rows}
        headers = {"X-Fewlier-Model-SHA256": order.served.sha256}
        return Response(reply.body, 200, headers, kind)


def make_app(settings: Settings) -> ASGIApp:
    """Return the application of one worker."""
    torch.set_num_threads(settings.threads)
    service = Service(settings)
    app = Starlette(
        routes=routes_of(service),
        lifespan=service.lifespan,
        exception_handlers={
            UserError: _refused,
            HTTPException: _not_found,
            ClientDisconnect: _gone,
            Exception: _failed,
        },
    )
    app.router.redirect_slashes = False  # another path is another thing
    return Journal(Guard(app, settings.hosts, settings.token))


def routes_of(service: Service) -> list[Route]:
    """Return what is answered where."""
    return [
        Route("/score", service.score, methods=["POST"]),
        Route("/models/{name}/score", service.score, methods=["POST"]),
        Route("/model", service.model),
        Route("/models", service.models),
        Route("/models/{name}", service.model),
        Route("/health/live", service.live),
        Route("/health/ready", service.ready),
        Route("/metrics", service.metrics),
        Route("/openapi.json", service.openapi),
        Route("/v2", service.server_metadata),
        Route("/v2/health/live", service.live),
        Route("/v2/health/ready", service.ready),
        Route("/v2/models/{name}", service.model_metadata),
        Route("/v2/models/{name}/ready", service.model_ready),
        Route("/v2/models/{name}/infer", service.infer, methods=["POST"]),
        Route("/v2/models/{name}/versions/{version}", service.model_metadata),
        Route("/v2/models/{name}/versions/{version}/ready", service.model_ready),
        Route("/v2/models/{name}/versions/{version}/infer", service.infer, methods=["POST"]),
    ]


def _media_type(request: Request, *known: str) -> str:
    found = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if found not in known:
        raise Refusal(415, f"The Content-Type of a request must be {' or '.join(known)}.")
    return found


def _read_n_reasons(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(MAX_REASONS))):
        raise UserError("'reasons' must be how many columns to name for each row, such as 3.")
    return int(text)


async def _refused(_: Request, error: Exception) -> Response:
    status = error.status if isinstance(error, Refusal) else 400
    return failure(status, str(error), RETRY if status == 503 else None)


async def _not_found(_: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    return failure(error.status_code, f"{error.detail}.", error.headers)


async def _gone(_: Request, error: Exception) -> Response:  # noqa: ARG001 - of the interface
    return failure(499, "The client has gone away.")


async def _failed(_: Request, error: Exception) -> Response:  # noqa: ARG001 - it is logged
    return failure(500, "This is a bug in fewlier, not in the request; the log has more.")
