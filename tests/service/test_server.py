"""What the process does that listens, with no workers behind it."""

import socket
from types import SimpleNamespace

import pytest
from uvicorn.config import STARTUP_FAILURE

from fewlier.errors import UserError
from fewlier.service import server
from fewlier.service.limits import Limits
from fewlier.service.server import Address, serve


@pytest.fixture
def serve_by(monkeypatch, detector, tmp_path):
    """Return what serves by workers that end with some codes, and what it has called."""
    detector.save(tmp_path / "pay.fewlier")
    called = []

    class Supervisor:
        def __init__(self, *_):
            called.append("its handlers are set")

        def run(self):
            called.append("it runs")

    def serve_by(*codes):
        Supervisor.processes = [
            SimpleNamespace(process=SimpleNamespace(exitcode=code)) for code in codes
        ]
        address = Address("127.0.0.1", 0, (), None)
        serve(tmp_path / "pay.fewlier", address, Limits(), len(codes), called.append)
        return called

    monkeypatch.setattr(server, "Supervisor", Supervisor)
    monkeypatch.setattr(server, "_config", lambda *_: None)
    monkeypatch.setattr(server, "release_signals", lambda: called.append("signals are handed over"))
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", "")
    return serve_by


def test_signals_are_handed_over_only_when_somebody_takes_them(serve_by):
    _, *called = serve_by(0, -15)
    assert called[:3] == ["its handlers are set", "signals are handed over", "it runs"]
    assert "every request that had begun was answered" in called[3]


def test_a_worker_that_cannot_start_is_an_error(serve_by):
    with pytest.raises(UserError, match="A worker could not start"):
        serve_by(-15, STARTUP_FAILURE)


def test_answers_are_sent_at_once_and_do_not_wait_for_the_client_to_acknowledge():
    with (
        Address("127.0.0.1", 0, (), None).listen() as listening,
        socket.create_connection(listening.getsockname()),
        listening.accept()[0] as accepted,
    ):
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
