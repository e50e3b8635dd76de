"""The processes of a service: one that listens, and workers that answer."""

import os
import socket
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from uvicorn import Config
from uvicorn.supervisors import Multiprocess

from fewlier.errors import UserError
from fewlier.process.signals import hand_over, removed_if_stopped
from fewlier.service.guard import LOOPBACK
from fewlier.service.limits import Limits
from fewlier.service.lines import LOGGING
from fewlier.service.shelf import Shelf
from fewlier.service.told import COULD_NOT_START, Settings
from fewlier.service.worker import Protocol, make_app

HANG_SECONDS = 60
"""A worker that says nothing for so long is replaced; one that has ended, at once."""


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

    def known_hosts(self) -> tuple[str, ...] | None:
        """Return the names that requests may give in `Host`; None for any.

        Where a token is asked for and no name is given, the name says nothing.
        """
        if self.token is not None and not (self.is_loopback or self.hosts):
            return None
        return (*LOOPBACK, self.host, *self.hosts)

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
            raise UserError(
                f"The service must have an address of this machine and a free port; got "
                f"{self.host} and {self.port}: {error}. Choose others with --host and --port."
            ) from error


def serve(
    path: Path, address: Address, limits: Limits, n_workers: int, say: Callable[[str], None]
) -> None:
    """Serve the model of a file, or the models of a folder, until a signal says to stop."""
    with tempfile.TemporaryDirectory(prefix="fewlier-serve-") as folder, removed_if_stopped(folder):
        shelf = Shelf(path, Path(folder))
        shelf.open()  # what is wrong with a file is said here, and not by every worker
        names = ", ".join(served.name for served in shelf)
        threads = max(1, (os.cpu_count() or 1) // n_workers)
        with address.listen() as listening:
            settings = Settings(
                path.absolute(), Path(folder), limits, address.known_hosts(), address.token, threads
            )
            host, port = listening.getsockname()[:2]
            where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            plural = "s" if n_workers > 1 else ""
            say(
                f"serving {names} at http://{where} by {n_workers} worker{plural}; Ctrl-C stops it."
            )
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder  # where the workers count
            supervisor = Multiprocess(_config(settings, n_workers), [listening])
            hand_over()  # to the supervisor, who has its handlers by now
            supervisor.run()
    if any(one.process.exitcode == COULD_NOT_START for one in supervisor.processes):
        raise UserError(
            "A worker of the service could not start, so it has ended; the log has more."
        )
    say("stopped serving; every request that had begun was answered.")


def _config(settings: Settings, n_workers: int) -> Config:
    protocol = partial(Protocol, seconds=settings.limits.seconds)
    more: dict[str, Any] = {"http": protocol, "ws": "none", "lifespan": "on", "log_config": LOGGING}
    return Config(
        partial(make_app, settings),
        factory=True,
        workers=n_workers,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_worker_healthcheck=HANG_SECONDS,
        timeout_graceful_shutdown=int(2 * settings.limits.seconds),
        **more,
    )
