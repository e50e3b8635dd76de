"""The processes of a service: one that listens, and workers that answer."""

import logging
import os
import socket
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, final

from starlette.types import ASGIApp
from uvicorn import Config
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from fewlier.errors import UserError
from fewlier.process.signals import release_signals, removed_if_stopped
from fewlier.service.limits import Limits
from fewlier.service.log import LOGGING

LOOPBACK = ("127.0.0.1", "localhost", "::1")
"""Names of the machine itself."""
HANG_SECONDS = 60
"""Seconds without a sign of a worker after which it is replaced; one that has ended is at once."""
MAX_CONNECTIONS = 1_000
"""Connections of a worker; requests on further ones get 503 from uvicorn."""

log = logging.getLogger(__name__)


class Address(NamedTuple):
    """Where a service listens, and for whom.

    Parameters
    ----------
    host : str
        Address or name of an interface.
    port : int
        Port; 0 is any that is free.
    hosts : tuple of str
        Further names that requests may give in `Host`.
    token : str or None
        What requests must bring.
    """

    host: str
    port: int
    hosts: tuple[str, ...]
    token: str | None

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it."""
        return self.host in LOOPBACK

    def known_hosts(self) -> tuple[str, ...]:
        """Return the names that requests may give in `Host`; "*" for any.

        With another name some site on the web could have been made to point here. Where a token is
        asked for and no name is given, the name says nothing.
        """
        if self.token is not None and not (self.is_loopback or self.hosts):
            return ("*",)
        names = (*LOOPBACK, self.host, *self.hosts)
        return tuple(f"[{name}]" if ":" in name else name for name in names)

    def listen(self) -> socket.socket:
        """Return a socket that listens there."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        try:
            listening = socket.create_server((self.host, self.port), family=family, backlog=2048)
            # Connections get this, and so send small answers at once: asyncio asks for it only
            # where a socket names its protocol, which one handed to a worker does not.
            listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return listening
        except (OSError, OverflowError) as error:
            got = f"got {self.host} and {self.port}: {error}"
            raise UserError(f"--host must be of this machine, --port be free; {got}.") from error


@final
class Supervisor(Multiprocess):
    """Replaces workers that have ended or hang, and logs how each has ended."""

    def keep_subprocess_alive(self) -> None:
        """Look after the workers."""
        before = list(self.processes)
        super().keep_subprocess_alive()
        for old in before:
            if old not in self.processes:
                log.error("a worker ended", extra={"worker": old.pid, "exit_code": old.exitcode})


def serve(
    path: Path, address: Address, limits: Limits, n_workers: int, say: Callable[[str], None]
) -> None:
    """Serve the model of a file until a signal says to stop."""
    from fewlier.service.model import Served

    served = Served.of(path)  # what is wrong with a file is said here, and not by every worker
    with tempfile.TemporaryDirectory(prefix="fewlier-serve-") as folder, removed_if_stopped(folder):
        threads = max(1, (os.cpu_count() or 1) // n_workers)
        with address.listen() as listening:
            who = address.known_hosts(), address.token
            make = partial(make_app, threads, path.absolute(), Path(folder), limits, *who)
            host, port = listening.getsockname()[:2]
            where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            by = f"{n_workers} worker{'s' if n_workers > 1 else ''}"
            say(f"serving {served.name} at http://{where} by {by}; Ctrl-C stops it.")
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder  # where the workers count
            supervisor = Supervisor(_config(make, n_workers, limits.seconds), [listening])
            release_signals()  # to the supervisor, who has its handlers by now
            supervisor.run()
    if any(one.process.exitcode == STARTUP_FAILURE for one in supervisor.processes):
        raise UserError("A worker could not start, so the service has ended; the log has more.")
    say("stopped serving; every request that had begun was answered.")


def make_app(n_threads: int, path: Path, folder: Path, *more: Any) -> ASGIApp:  # noqa: ANN401
    """Return the application of this process, a new worker.

    What it needs takes seconds to load, and so a worker answers its supervisor first.
    """
    import torch

    from fewlier.service import app
    from fewlier.service.metrics import Counts

    logging.captureWarnings(True)
    torch.set_num_threads(n_threads)
    return app.make_app(path, Counts(folder), *more)


def _config(make: Callable[[], ASGIApp], n_workers: int, seconds: float) -> Config:
    return Config(
        make,
        factory=True,
        workers=n_workers,
        http="h11",
        ws="none",
        log_config=LOGGING,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_worker_healthcheck=HANG_SECONDS,
        timeout_graceful_shutdown=int(2 * seconds),
    )
