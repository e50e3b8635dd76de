"""Load on a service: one row at a time, 1,000 rows as JSON and as Arrow, and memory over time.

    fewlier-bench serve --seconds 20 --workers 2
    fewlier-bench serve --seconds 600  # ten minutes of full load by each kind of request

The service runs on loopback with a model of 5,000 x 20 rows, the clients in threads of one process,
whose share of the processor is printed: on two cores it is taken from the service. Before it stands
how many rows the library scores, 1,000 at a time: in one thread, and in as many as there are cores.
Aims, with two workers on two cores: one row at least 150 requests a second, 99 % within 50 ms at 16
connections; 1,000 rows at 60 % of the library's speed as Arrow and at 25 % as JSON; no error;
memory that grows by less than 64 MB. The speed that is meant is that of one thread: all workers
together, with the clients beside them, against one thread of the library with its rows in memory.
The command ends with code 1 when an aim is missed.
"""

import http.client
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.pool import Pool
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import torch
from pyarrow import ipc

from fewlier import AnomalyDetector
from fewlier_bench.studies.study import Study, option

N_ROWS, N_COLUMNS, N_ANOMALIES = 5000, 20, 30
ARROW, JSON = "application/vnd.apache.arrow.stream", "application/json"
PAGE = os.sysconf("SC_PAGE_SIZE")
MAX_GROWTH = 64.0
"""Megabytes by which the processes of the service may grow in a load."""


class Load(NamedTuple):
    """What to ask, by how many connections at once, for how long."""

    port: int
    body: bytes
    media_type: str
    connections: int
    seconds: float


class Found(NamedTuple):
    """How long each answer took, what went wrong, and the clients' processor time."""

    times: list[float]
    errors: list[str]
    client: float


class Aim(NamedTuple):
    """What a kind of request is to reach: requests a second, or a share of the library's speed."""

    requests: float = 0.0
    share: float = 0.0
    p99: float = np.inf  # in milliseconds


AIMS = {
    "one row": Aim(requests=150, p99=50),
    "1,000 rows, JSON": Aim(share=0.25),
    "1,000 rows, Arrow": Aim(share=0.6),
}


def rows() -> pa.Table:
    """Return the table, the last rows being anomalies."""
    X = np.random.default_rng(0).normal(size=(N_ROWS, N_COLUMNS))
    X[-N_ANOMALIES:] += 2.5
    return pa.table({f"x{column}": X[:, column] for column in range(N_COLUMNS)})


def put_load(load: Load) -> Found:
    """Ask as fast as answers come, over connections that stay open.

    A connection that breaks is an error, and is not opened again.
    """
    times: list[float] = []
    errors: list[str] = []
    end = time.monotonic() + load.seconds

    def ask() -> None:
        try:
            ask_on()
        except Exception as error:  # noqa: BLE001 - of a thread, which nobody else would hear of
            errors.append(repr(error))

    def ask_on() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", load.port, timeout=120)
        while time.monotonic() < end:
            started = time.perf_counter()
            connection.request("POST", "/score", load.body, {"Content-Type": load.media_type})
            response = connection.getresponse()
            response.read()
            times.append(time.perf_counter() - started)
            if response.status != 200:
                errors.append(str(response.status))
        connection.close()

    before = time.process_time()
    threads = [threading.Thread(target=ask) for _ in range(load.connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return Found(times, errors, time.process_time() - before)


@contextmanager
def served(model: Path, workers: int) -> Iterator[tuple[int, int]]:
    """Serve a model; yields the process id and the port."""
    command = [sys.executable, "-m", "fewlier", "serve", str(model)]
    command += ["--port", "0", "--workers", str(workers)]
    with (
        tempfile.TemporaryFile("w+") as log,
        subprocess.Popen(command, stderr=log, text=True) as process,
    ):
        try:
            yield process.pid, _await_port(process, log.fileno())
        finally:
            process.terminate()


def _await_port(process: "subprocess.Popen[str]", log: int) -> int:
    while process.poll() is None:
        text = os.pread(log, 10_000, 0).decode()
        if found := re.search(r"http://127\.0\.0\.1:(\d+)", text):
            connection = http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=300)
            connection.request("GET", "/health/ready")
            connection.getresponse().read()
            connection.close()
            return int(found[1])
        time.sleep(0.1)
    raise SystemExit(f"the service did not start: {os.pread(log, 10_000, 0).decode()}")


def memory(parent: int) -> float:
    """Return the megabytes that a process and its children hold."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text("ascii").split()
    pages = [
        int(Path(f"/proc/{process}/statm").read_text("ascii").split()[1])
        for process in (parent, *children)
    ]
    return sum(pages) * PAGE / 1e6


def library_speed(
    detector: AnomalyDetector, table: pa.Table, seconds: float, n_threads: int
) -> float:
    """Return the rows a second that the library scores, 1,000 at a time in so many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(n_threads)  # what fewlier shares its rows among
    try:
        detector.p_value(table)  # warm
        some, n, started = table.slice(0, 1000), 0, time.perf_counter()
        while time.perf_counter() - started < seconds:
            detector.p_value(some)
            n += 1000
        return n / (time.perf_counter() - started)
    finally:
        torch.set_num_threads(before)


def bodies(table: pa.Table) -> dict[str, tuple[bytes, str, int, int]]:
    """Return what to ask: body, media type, rows, connections."""
    sink = io.BytesIO()
    with ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table.slice(0, 1000))

    def as_json(n: int) -> bytes:
        return json.dumps({"rows": table.slice(0, n).to_pylist()}).encode()

    return {
        "one row": (as_json(1), JSON, 1, 16),
        "1,000 rows, JSON": (as_json(1000), JSON, 1000, 4),
        "1,000 rows, Arrow": (sink.getvalue(), ARROW, 1000, 4),
    }


def run(options: Namespace) -> None:
    """Run and print one line for each kind of request."""
    print(f"{os.getloadavg()[0]:.1f} processes were running before", flush=True)
    table, y = rows(), np.repeat([0, 1], [N_ROWS - N_ANOMALIES, N_ANOMALIES])
    with tempfile.TemporaryDirectory() as folder, get_context("spawn").Pool(1) as clients:
        path = Path(folder) / "model.fewlier"
        detector = AnomalyDetector(random_state=0).fit(table, y)
        detector.save(path)
        seconds, n_cores = min(options.seconds, 5), os.cpu_count() or 1
        own = {n: library_speed(detector, table, seconds, n) for n in (1, n_cores)}
        for n_threads, speed in own.items():
            print(f"the library in {n_threads} thread(s)   {speed:8.0f} rows/s", flush=True)
        missed = []
        with served(path, options.workers) as (process, port):
            for name, (body, media_type, n, connections) in bodies(table).items():
                load = Load(port, body, media_type, connections, options.seconds)
                missed += _report(name, n, load, own[1], clients, process)
    for what in missed:
        print(f"missed: {what}")
    raise SystemExit(1 if missed else 0)


def misses(
    name: str, found: Found, requests: float, share: float, p99: float, grown: float
) -> list[str]:
    """Return the aims that a load has missed."""
    aim = AIMS[name]
    are_missed = {
        f"{requests:.0f} of {aim.requests:.0f} requests/s": requests < aim.requests,
        f"{share:.0%} of the library's speed, not {aim.share:.0%}": share < aim.share,
        f"99 % within {p99:.0f} ms, not {aim.p99:.0f}": p99 > aim.p99,
        f"{len(found.errors)} errors, such as {next(iter(found.errors), '')}": bool(found.errors),
        f"memory grown by {grown:.0f} MB, not {MAX_GROWTH:.0f}": grown > MAX_GROWTH,
    }
    return [f"{name}: {what}" for what, is_missed in are_missed.items() if is_missed]


def _report(name: str, n: int, load: Load, own: float, clients: Pool, process: int) -> list[str]:
    """Print what a load has shown, and return the aims that it has missed."""
    clients.apply(put_load, (load._replace(seconds=2.0),))  # warm
    before = memory(process)
    found = clients.apply(put_load, (load,))
    per_second = len(found.times) / load.seconds
    p50, p99 = 1000 * np.quantile(found.times or [np.inf], [0.5, 0.99])
    after = memory(process)
    share = per_second * n / own
    print(
        f"{name:20}{load.connections:3} connections {per_second:8.0f} requests/s "
        f"{per_second * n:8.0f} rows/s ({share:.0%} of one thread)   p50 {p50:.0f} ms, p99 "
        f"{p99:.0f} ms   {len(found.errors)} errors   client {found.client / load.seconds:.0%} of "
        f"a core   memory {before:.0f} -> {after:.0f} MB",
        flush=True,
    )
    return misses(name, found, per_second, share, p99, after - before)


STUDY = Study.of(
    run,
    option("--seconds", type=float, default=20),
    option("--workers", type=int, default=2),
)
