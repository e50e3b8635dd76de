"""Full load for some seconds: no error, and no growth of memory."""

import http.client
import io
import json
import threading
import time
from pathlib import Path

import polars as pl
import pytest
from factories import FEATURES, payments
from services import JSON, running

from fewlier.service.arrow import MEDIA_TYPE

pytestmark = [pytest.mark.slow, pytest.mark.long]
SECONDS, N_CONNECTIONS = 20, 6
WARM_SECONDS = 5
MAX_GROWTH = 32
"""Megabytes by which both workers may grow: what their allocators hold varies by half of that."""

ROWS = payments(n=1_000, seed=7)[FEATURES]


def bodies():
    """Return requests of all kinds: path, media type and body."""
    records, sink = json.loads(ROWS.to_json(orient="records")), io.BytesIO()
    pl.from_pandas(ROWS).write_ipc_stream(sink)
    one = ("/score", JSON, json.dumps({"rows": records[:1]}).encode())
    return [
        *[one] * 20,
        ("/score?reasons=2", JSON, json.dumps({"rows": records[:20]}).encode()),
        ("/score", JSON, json.dumps({"rows": records}).encode()),
        ("/score", MEDIA_TYPE, sink.getvalue()),
    ]


def memory(service):
    """Return the megabytes that the workers hold."""
    smaps = [Path(f"/proc/{pid}/smaps_rollup").read_text() for pid in service.workers()]
    kilobytes = [int(text.split("Pss:")[1].split()[0]) for text in smaps]
    return sum(kilobytes) / 1000


def load(service, seconds):
    """Ask as fast as answers come; return how many answers there were, and all that went wrong."""
    asked, wrong, answers = bodies(), [], []
    end = time.monotonic() + seconds

    def ask(first):
        connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=120)
        number = first
        while time.monotonic() < end:
            path, kind, body = asked[number % len(asked)]
            connection.request("POST", path, body, {"Content-Type": kind})
            response = connection.getresponse()
            response.read()
            answers.append(response.status)
            number += 1
        connection.close()

    def guarded(first):
        try:
            ask(first)
        except Exception as error:  # noqa: BLE001 - of a thread, which nobody else would hear of
            wrong.append(error)

    threads = [threading.Thread(target=guarded, args=(n,)) for n in range(N_CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(answers), wrong + [status for status in answers if status != 200]


def test_full_load_makes_no_error_and_no_memory_grow(detector, tmp_path):
    detector.save(tmp_path / "pay.fewlier")
    with running(tmp_path / "pay.fewlier", "--workers", 2) as service:
        service.await_workers(2)
        assert load(service, WARM_SECONDS)[1] == []
        before, pids = memory(service), service.workers()
        n, wrong = load(service, SECONDS)
        grown = memory(service) - before
        assert (wrong, service.workers()) == ([], pids)
        assert n > 10 * SECONDS
        assert grown < MAX_GROWTH, (before, grown, n)
