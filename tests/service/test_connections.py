"""Connections that a worker must not hold, over real sockets, with little patience."""

import asyncio
import http.client
import json
import socket
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from functools import partial

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from uvicorn import Config, Server

from fewlier.service.guard import Guard
from fewlier.service.journal import Journal
from fewlier.service.worker import Protocol

pytestmark = pytest.mark.slow
PATIENCE = 0.4
MOST = 4
LARGE = 30_000_000
WHOLE = b"GET /small HTTP/1.1\r\nHost: localhost\r\n\r\n"


async def small(_: Request):
    return Response(b"small")


async def large(_: Request):
    return Response(bytes(LARGE))


async def echo(request: Request):
    return Response(await request.body())


async def medium(_: Request):
    return Response(bytes(30_000))  # less than uvicorn lets pile up


ROUTES = [
    Route("/medium", medium),
    Route("/small", small),
    Route("/large", large),
    Route("/echo", echo, methods=["POST"]),
    Route("/health/live", small),
]


@pytest.fixture(scope="module")
def server():
    """Serve in a thread; a request has `PATIENCE` seconds for its head and to be taken."""
    app = Journal(Guard(Starlette(routes=ROUTES), ("localhost", "127.0.0.1"), None))
    protocol = partial(Protocol, seconds=PATIENCE, head_seconds=PATIENCE, most=MOST)
    server = Server(Config(app, http=protocol, ws="none", log_config=None, timeout_keep_alive=2))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        run = threading.Thread(target=lambda: asyncio.run(server.serve([listening])))
        run.start()
        server.port = listening.getsockname()[1]
        yield server
        server.should_exit = True
        run.join(30)
        assert not run.is_alive()


@pytest.fixture
def port(server):
    """Return where the server listens; no connection is left in the end."""
    yield server.port
    await_none(server)


def await_none(server):
    """Wait until the server holds no connection, which must be soon."""
    deadline = time.monotonic() + 10
    while server.server_state.connections:
        assert time.monotonic() < deadline
        time.sleep(0.01)


@contextmanager
def connected(port, sent=b""):
    with socket.create_connection(("127.0.0.1", port), timeout=20) as one:
        one.sendall(sent)
        yield one


def answer(one, path="/small", headers=b"", body=b""):
    """Ask over a connection that stays open, and return what comes back."""
    method = b"POST" if body else b"GET"
    length = b"Content-Length: %d\r\n" % len(body) if body else b""
    head = b"%s %s HTTP/1.1\r\nHost: localhost\r\n%s%s\r\n" % (
        method,
        path.encode(),
        length,
        headers,
    )
    one.sendall(head + body)
    response = http.client.HTTPResponse(one)
    response.begin()
    return response.status, dict(response.getheaders()), response.read()


def assert_closed(one):
    """Wait for the end of a connection, which must come soon."""
    started = time.monotonic()
    with suppress(ConnectionResetError):
        while one.recv(1_000_000):
            pass
    assert time.monotonic() - started < 10


def trickle(one):
    """Send a byte now and then, until the connection is closed."""
    started = time.monotonic()
    with suppress(ConnectionError):
        while time.monotonic() - started < 10:
            one.sendall(b"x")
            time.sleep(PATIENCE / 10)
        raise AssertionError("the connection is still open")


@pytest.mark.parametrize("sent", [b"", b"G", WHOLE[:20], WHOLE + b"G", WHOLE * 2 + WHOLE[:-2]])
def test_a_connection_on_which_no_request_begins_is_closed(port, sent):
    with connected(port, sent) as one:
        assert_closed(one)


def test_a_second_request_that_stays_half_is_not_waited_for(port):
    with connected(port) as one:
        assert answer(one)[0] == 200
        one.sendall(b"G")
        assert_closed(one)


def test_a_head_that_trickles_gets_no_more_time(port):
    with connected(port) as one:
        assert answer(one)[0] == 200
        trickle(one)


def test_a_body_that_goes_on_after_the_answer_gets_no_more_time(port):
    head = b"GET /small HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999\r\n\r\n"
    with connected(port, head) as one:
        trickle(one)


@pytest.mark.parametrize(("asked", "n"), [(b"/large", 1), (b"/medium", 1000)])
def test_an_answer_that_is_not_taken_is_given_up(server, asked, n):
    with socket.create_connection(("127.0.0.1", server.port), timeout=1) as one, suppress(OSError):
        one.sendall(WHOLE.replace(b"/small", asked) * n)
        await_none(server)
    await_none(server)


def test_an_answer_that_is_taken_comes_whole(port):
    with connected(port) as one:
        assert len(answer(one, "/large")[2]) == LARGE
        assert answer(one, "/echo", body=bytes(1_000_000))[2] == bytes(1_000_000)


def test_a_connection_in_use_stays_open(port):
    with connected(port) as one:
        for _ in range(6):
            assert answer(one)[0] == 200
            time.sleep(PATIENCE / 2)  # in all longer than a head may take
        time.sleep(2 * PATIENCE)  # idle, but nothing has begun
        assert answer(one)[0] == 200


def test_more_connections_than_a_worker_may_hold_are_told_to_come_back(port):
    with ExitStack() as stack:
        held = [stack.enter_context(connected(port)) for _ in range(MOST)]
        assert [answer(one)[0] for one in held] == [200] * MOST
        with connected(port) as more:
            assert answer(more, "/health/live")[0] == 200
            status, headers, body = answer(more)
            assert (status, headers["retry-after"], headers["content-type"]) == (
                503,
                "1",
                "application/json",
            )
            assert "4 connections" in json.loads(body)["error"]
            assert_closed(more)
        assert answer(held[0])[0] == 200
