"""The application: what is asked where."""

import asyncio
import os
import secrets
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, final, get_type_hints

from fastapi import APIRouter, Depends, FastAPI, HTTPException, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from fastapi.security import HTTPAuthorizationCredentials as Token
from fastapi.security import HTTPBearer
from fastapi.telemetry import TelemetryConfig
from pydantic import Field, create_model
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect

from fewlier.errors import UserError
from fewlier.reasons.reason import Reason
from fewlier.service.answers import Order, Queue, fulfil
from fewlier.service.arrow import MEDIA_TYPE
from fewlier.service.limits import MAX_BODIES, MAX_REASONS, Limits, Refusal
from fewlier.service.log import Journal
from fewlier.service.metrics import Counts
from fewlier.service.model import ModelFile

REFRESH_SECONDS = 1.0
"""Seconds for which the old model may still answer after its file was replaced."""
_NO_TELEMETRY = TelemetryConfig(auto_configure=False, tracing=False, metrics=False, logs=False)
_ERRORS = (UserError, RequestValidationError, ClientDisconnect, Exception)
_BEARER = HTTPBearer(auto_error=False, description="The token of this service.")

# What OpenAPI says of requests and answers. Rows are read by `rows`, which is stricter.
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


@final
class Service:
    """Answers requests in one worker."""

    def __init__(self, path: Path, counts: Counts, limits: Limits, token: str | None) -> None:
        self._limits, self._token, self._counts = limits, token, counts
        file = self._file = ModelFile(path, counts)
        self._queue = Queue(lambda some: fulfil(some, file.served, limits, counts), limits.waiting)
        self._n_bytes = 0  # of requests that arrive, wait or are answered

    @asynccontextmanager
    async def lifespan(self, _: FastAPI) -> AsyncIterator[None]:
        """Read the model before the first request, and again when its file is replaced."""
        self._file.refresh()
        tasks = [asyncio.create_task(work()) for work in (self._queue.work, self._refresh)]
        yield
        for task in tasks:
            task.cancel()

    async def _refresh(self) -> None:
        parent = os.getppid()
        while os.getppid() == parent:
            await asyncio.sleep(REFRESH_SECONDS)
            await asyncio.to_thread(self._file.refresh)
        os.kill(os.getpid(), signal.SIGTERM)  # nobody is left to say when to end

    async def check_token(self, given: Annotated[Token | None, Depends(_BEARER)]) -> None:
        """Refuse a request without the token, where there is one."""
        # Compared in constant time: how long it takes must not tell how much is right.
        token, found = self._token or "", given.credentials if given else ""
        if not secrets.compare_digest(found.encode(), token.encode()):
            must = "A request must bring the token of this service: 'Authorization: Bearer TOKEN'."
            raise HTTPException(401, must, {"WWW-Authenticate": "Bearer"})

    # What is asked of the service

    async def live(self) -> dict[str, Any]:
        """Say that this worker runs, and by which model."""
        newest = self._file.newest
        return {"ready": newest is not None, "model_sha256": newest and newest.sha256}

    async def ready(self, response: Response) -> dict[str, Any]:
        """Say whether there is a model to score by."""
        response.status_code = 200 if self._file.newest else 503
        return await self.live()

    async def metrics(self) -> Response:
        """Return what all workers have counted, as Prometheus reads it."""
        body = await asyncio.to_thread(self._counts.exposition)
        return Response(body, media_type="text/plain; version=1.0.0; charset=utf-8")

    async def model(self) -> dict[str, Any]:
        """Return what the model file holds."""
        served = self._file.served
        return served.facts | {"inspection": served.inspection}

    async def score(
        self,
        request: Request,
        reasons: Annotated[int, Query(ge=0, le=MAX_REASONS, description=REASONS)] = 0,
        id: Annotated[Sequence[str], Query(description=IDS)] = (),
    ) -> Response:
        """Score rows, sent as JSON or as an Arrow stream, and answer in the same form."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in (JSON, MEDIA_TYPE):
            raise Refusal(415, f"The Content-Type must be {JSON} or {MEDIA_TYPE}.")
        body = bytearray()
        try:
            async with self._timeout(408, "A request must arrive within"):
                await self._read(request, body)
            async with self._timeout(503, "Ask again soon: an answer must be ready within"):
                asked = Order(body, kind == MEDIA_TYPE, reasons, tuple(id))
                reply = await self._queue.reply(asked)
        finally:
            self._n_bytes -= len(body)
        request.state.facts = reply.served.facts | {"rows": reply.n_rows}
        headers = {"X-Fewlier-Model-SHA256": reply.served.sha256}
        return Response(reply.body, 200, headers, kind)

    @asynccontextmanager
    async def _timeout(self, status: int, must: str) -> AsyncIterator[None]:
        """Refuse a request when the block takes too long."""
        try:
            async with asyncio.timeout(self._limits.seconds):
                yield
        except TimeoutError as error:
            raise Refusal(status, f"{must} {self._limits.seconds:g} seconds.") from error

    async def _read(self, request: Request, body: bytearray) -> None:
        """Read the body of a request as far as the limits allow."""
        most = self._limits.body
        async for chunk in request.stream():
            body += chunk
            self._n_bytes += len(chunk)
            if len(body) > most:
                raise Refusal(413, f"A request may have at most {most} bytes.")
            if self._n_bytes > MAX_BODIES * most:
                raise Refusal(503, "This worker has no room for more; ask again soon.")


def make_app(
    path: Path, counts: Counts, limits: Limits, hosts: Sequence[str], token: str | None
) -> FastAPI:
    """Return the application of one worker.

    Parameters
    ----------
    path : Path
        The model file.
    counts : Counts
        Where to count.
    limits : Limits
        What a request may ask for.
    hosts : sequence of str
        Names that requests may give in `Host`; "*" is any.
    token : str or None
        What they must bring.
    """
    service = Service(path, counts, limits, token)
    app = FastAPI(
        title="fewlier",
        version=version("fewlier"),
        lifespan=service.lifespan,
        redoc_url=None,
        redirect_slashes=False,  # another path is another thing
        telemetry=_NO_TELEMETRY,
        exception_handlers=dict.fromkeys(_ERRORS, _problem),
    )
    known = [Depends(service.check_token)] if token is not None else []
    asked = APIRouter(dependencies=known, responses=PROBLEMS)
    asked.post("/score", responses=ANSWERS, openapi_extra=REQUEST)(service.score)
    asked.get("/model", response_model=MODEL)(service.model)
    asked.get("/metrics", response_class=PlainTextResponse)(service.metrics)
    app.include_router(asked)
    app.get("/health/live", **HEALTH)(service.live)
    app.get("/health/ready", **HEALTH)(service.ready)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=hosts, www_redirect=False)
    app.add_middleware(Journal, counts=counts)
    return app


async def _problem(_: Request, error: Exception) -> Response:
    """Say in a sentence why there is no answer."""
    status, detail = getattr(error, "status", 400), str(error)
    if isinstance(error, RequestValidationError):
        status, (first, *_more) = 422, error.errors()
        detail = f"{first['loc'][-1]!r}: {first['msg']}."
    elif isinstance(error, ClientDisconnect):
        status, detail = 499, "The client has gone away."
    elif not isinstance(error, UserError):
        status, detail = 500, "This is a bug in fewlier, not in the request; the log has more."
    return JSONResponse({"detail": detail}, status, {"Retry-After": "1"} if status == 503 else None)
