"""Garbage requests, generated from the service's own OpenAPI and beyond it."""

import http.client
import io
import json
import re
import socket
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import polars as pl
import pytest
from factories import FEATURES, payments
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from services import JSON, running

from fewlier.service.arrow import MEDIA_TYPE

pytestmark = [pytest.mark.slow, pytest.mark.long]
N, N_BODIES, N_CONNECTIONS = 10_000, 1_000, 4
"""Requests, the bodies that they are put together from, and how many are sent at a time."""
STATUSES = {200, 400, 413, 415, 422}
QUERIES = [
    "",
    "?reasons=2",
    "?reasons=-1",
    "?reasons=9999999",
    "?x=%00",
    "?reasons=1&reasons=2",
    "?id=city&id=id",
    '?id="x',
]
KINDS = [JSON, JSON, JSON, MEDIA_TYPE, MEDIA_TYPE, "text/plain", "", "application/json; x=\xe9"]

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters()),  # with halves of surrogate pairs
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
CELLS = st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
ROWS = st.lists(st.fixed_dictionaries({"amount": VALUES, "visits": CELLS, "city": CELLS}))
DOCUMENTS = (
    st.builds(lambda rows: {"rows": rows}, ROWS)
    | st.builds(lambda columns: {"columns": columns}, st.dictionaries(st.text(), VALUES))
    | VALUES
)
GOOD = payments(seed=7)[FEATURES].head(3)
_SINK = io.BytesIO()
pl.from_pandas(GOOD).write_ipc_stream(_SINK)
_ROWS = json.loads(GOOD.to_json(orient="records"))
VALID = [
    _SINK.getvalue(),
    *(
        json.dumps(document).encode()
        for document in ({"rows": _ROWS}, {"columns": GOOD.to_dict("list")}, {"rows": []})
    ),
]


@st.composite
def damaged(draw):
    """Return a good body with some bytes changed, or cut."""
    body = bytearray(draw(st.sampled_from(VALID)))
    for place in draw(st.lists(st.integers(0, len(body) - 1), max_size=3)):
        body[place] = draw(st.integers(0, 255))
    return bytes(body[: draw(st.integers(0, 3 * len(body)))])


DEEP = b'{"rows": ' + 40_000 * b"["
MANY = b'{"rows": [' + 40_000 * b"{},"

BODIES = (
    st.binary(max_size=300)
    | DOCUMENTS.map(lambda document: json.dumps(document).encode())
    | damaged()
)


def some(strategy, n):
    """Return n things that hypothesis makes up."""
    found = []

    @settings(
        max_examples=n,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(one):
        found.append(one)

    collect()
    return found


@pytest.fixture(scope="module")
def service(detector, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "pay.fewlier"
    detector.save(path)
    with running(path, "--max-rows", 5) as running_:
        yield running_


def operations(service):
    """Return what OpenAPI describes: method, path and the statuses of its answers."""
    return [
        (method.upper(), path, STATUSES & {*map(int, about["responses"])})
        for path, methods in service.get("/openapi.json").json["paths"].items()
        for method, about in methods.items()
    ]


def ask_all(port, requests):
    """Send requests over one connection; return those whose answer is not as described."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=240)
    wrong, statuses = [], set()
    for (method, path, known), query, kind, body in requests:
        connection.request(method, path + query, body, {"Content-Type": kind})
        response = connection.getresponse()
        answer = response.read()
        statuses.add(response.status)
        is_said = response.status == 200 or re.fullmatch(rb'{"detail":"[^"].*"}', answer)
        if response.status not in known or not is_said or b"Traceback" in answer:
            wrong.append((method, path, query, kind, body, response.status, answer))
    connection.close()
    return wrong, statuses


def test_no_garbage_is_answered_by_a_500(service):
    rng, bodies = np.random.default_rng(), some(BODIES, N_BODIES) + 10 * [*VALID, DEEP, MANY]
    parts = operations(service), QUERIES, KINDS, bodies
    requests = [tuple(part[rng.integers(len(part))] for part in parts) for _ in range(N)]
    with ThreadPoolExecutor(N_CONNECTIONS) as pool:
        shares = [requests[first::N_CONNECTIONS] for first in range(N_CONNECTIONS)]
        found = [*pool.map(lambda share: ask_all(service.port, share), shares)]
    assert [one for wrong, _ in found for one in wrong] == []
    assert set.union(*(statuses for _, statuses in found)) == STATUSES
    assert not [line for line in service.lines if "traceback" in line]


def test_no_path_is_answered_by_a_500(service):
    texts = st.text(st.characters(codec="ascii", exclude_categories=["Cc", "Zs"]), max_size=9)
    paths = st.lists(st.sampled_from(["score", "health", "docs", "live", ""]) | texts, max_size=6)
    asked = [("GET", "/" + "/".join(path), {200, 404, 405}) for path in some(paths, 300)]
    asked = [(one, "", "", b"") for one in asked if "?" not in one[1] and "#" not in one[1]]
    wrong, _ = ask_all(service.port, asked)
    assert wrong == []


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.binary(min_size=1, max_size=200))
def test_bytes_that_are_not_http_end_their_connection_alone(service, sent):
    with socket.create_connection(("127.0.0.1", service.port), timeout=30) as one:
        one.sendall(sent)
        one.shutdown(socket.SHUT_WR)
        one.recv(1000)
    assert service.get("/health/live").status == 200
