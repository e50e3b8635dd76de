"""Load on a service: what counts as an error, and as an aim that is missed."""

import http.server
import threading

import numpy as np
import pyarrow as pa
import pytest
import torch

from fewlier_bench.studies.serve import AIMS, JSON, Found, Load, library_speed, misses, put_load

GOOD = Found([0.01] * 100, [], 1.0)


@pytest.mark.slow
def test_an_answer_that_is_no_200_and_a_connection_that_breaks_are_errors():
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            status = statuses.pop(0) if statuses else None
            if status is None:
                self.close_connection = True  # without an answer
                return
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    statuses = [200, 503, 200]
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever).start()
        found = put_load(Load(server.server_port, b"{}", JSON, 1, 20.0))
        server.shutdown()
    assert len(found.times) == 3
    assert found.errors[0] == "503"
    assert "RemoteDisconnected" in found.errors[1]


@pytest.mark.parametrize("name", AIMS)
def test_what_reaches_its_aims_misses_none(name):
    assert misses(name, GOOD, 200, 0.7, 40, 5) == []


@pytest.mark.parametrize(
    ("name", "measured", "missed"),
    [
        ("one row", (149, 1, 40, 5), "149 of 150 requests/s"),
        ("one row", (200, 1, 51, 5), "99 % within 51 ms, not 50"),
        ("1,000 rows, Arrow", (1, 0.59, 400, 5), "59% of the library's speed, not 60%"),
        ("1,000 rows, JSON", (1, 0.3, 400, 65), "memory grown by 65 MB, not 64"),
    ],
)
def test_an_aim_that_is_missed_is_named(name, measured, missed):
    assert misses(name, GOOD, *measured) == [f"{name}: {missed}"]


def test_errors_are_a_miss():
    (missed,) = misses("one row", GOOD._replace(errors=["503", "OSError()"]), 200, 1, 40, 0)
    assert missed == "one row: 2 errors, such as 503"


def test_the_library_is_measured_in_as_many_threads_as_are_said():
    seen, before = set(), torch.get_num_threads()

    class Detector:
        def p_value(self, _):
            seen.add(torch.get_num_threads())

    table = pa.table({"a": np.zeros(2000)})
    assert library_speed(Detector(), table, 0.01, n_threads=before + 1) > 0
    assert seen == {before + 1}
    assert torch.get_num_threads() == before
