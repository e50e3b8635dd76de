"""A service as processes of its own, and what asks it."""

import http.client
import json
import os
import re
import signal
import subprocess
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from processes import COMMAND

JSON = "application/json"


class Response(NamedTuple):
    """What came back."""

    status: int
    headers: dict
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)


class Running:
    """A service that runs, and what it has written to standard error."""

    host = "127.0.0.1"

    def __init__(self, process, port, lines):
        self.process, self.port, self.lines = process, port, lines

    def ask(self, method, path, body=None, headers=None, timeout=240):
        """Send one request over a connection of its own."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            headers = {name.lower(): value for name, value in response.getheaders()}
            return Response(response.status, headers, response.read())
        finally:
            connection.close()

    def get(self, path, **headers):
        return self.ask("GET", path, headers=headers)

    def post(self, path, document, kind=JSON, **headers):
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        return self.ask("POST", path, body, {"Content-Type": kind} | headers)

    def workers(self):
        """Return the process ids of the workers."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [pid for pid in map(int, children.split()) if "spawn_main" in told(pid, "cmdline")]

    def await_workers(self, n, gone=()):
        """Wait until there are n workers beside those that are gone; return their process ids."""
        deadline = time.monotonic() + 240
        while len(found := [pid for pid in self.workers() if pid not in gone]) < n:
            assert time.monotonic() < deadline, self.lines
            time.sleep(0.1)
        assert self.get("/health/live").status == 200
        return found

    def await_ready(self):
        """Wait until there is a model to score by."""
        deadline = time.monotonic() + 240
        while self.get("/health/ready").status != 200:
            assert time.monotonic() < deadline, self.lines
            time.sleep(0.1)

    def await_line(self, pattern, seconds=240):
        """Wait until a line of standard error matches."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if found := [line for line in self.lines if re.search(pattern, line)]:
                return found[0]
            time.sleep(0.02)
        raise AssertionError(f"{pattern!r} is not among {self.lines}")

    def stop(self, number=signal.SIGTERM):
        """Ask it to end, and return its exit code."""
        self.process.send_signal(number)
        return self.process.wait(240)


def told(pid, what):
    """Return what the system tells of a process; nothing if it has ended."""
    try:
        return Path(f"/proc/{pid}/{what}").read_text()
    except OSError:
        return ""


@contextmanager
def running(*words, **environment):
    """Serve while the block runs."""
    command = [COMMAND, "serve", *map(str, words), "--port", "0"]
    process = subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"} | environment,
    )
    lines = []
    service = Running(process, 0, lines)
    try:
        reader = threading.Thread(target=_collect, args=(process.stderr, lines), daemon=True)
        reader.start()
        line = service.await_line("serving|needs|must|cannot", 240)
        service.port = int(re.search(r":(\d+) by", line)[1])
        yield service
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(240)
        reader.join(10)
        process.stderr.close()


def _collect(stream, lines):
    for line in stream:
        lines.append(line.rstrip("\n"))
