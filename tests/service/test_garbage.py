"""Garbage requests, generated from the service's own OpenAPI and beyond it."""

import http.client
import json
import os
import socket

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from services import JSON, running

from fewlier.service.arrow import MEDIA_TYPE

pytestmark = pytest.mark.slow
N = int(os.environ.get("FEWLIER_GARBAGE", "250"))
"""Requests to send; 10 000 by hand."""

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
CELLS = st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
ROWS = st.lists(st.fixed_dictionaries({"amount": VALUES, "visits": CELLS, "city": CELLS}))
TENSORS = st.lists(
    st.fixed_dictionaries(
        {
            "name": st.sampled_from(["amount", "visits", "city"]) | st.text(),
            "datatype": st.sampled_from(["FP64", "INT64", "BYTES", "BOOL"]) | VALUES,
            "shape": st.lists(st.integers(), max_size=2) | VALUES,
            "data": st.lists(VALUES, max_size=3) | VALUES,
        }
    )
)
DOCUMENTS = (
    st.builds(lambda rows: {"rows": rows}, ROWS)
    | st.builds(lambda columns: {"columns": columns}, st.dictionaries(st.text(), VALUES))
    | st.builds(lambda tensors: {"inputs": tensors}, TENSORS)
    | VALUES
)
BODIES = st.binary(max_size=300) | DOCUMENTS.map(lambda document: json.dumps(document).encode())
HEADER = st.text(st.characters(codec="latin-1", exclude_categories=["Cc"]), max_size=20)


@pytest.fixture(scope="module")
def service(detector, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "pay.fewlier"
    detector.save(path)
    with running(path) as running_:
        yield running_


def test_no_garbage_is_answered_by_a_500(service):
    described = service.get("/openapi.json").json["paths"]
    operations = [(method.upper(), path) for path in described for method in described[path]]
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=240)

    @settings(max_examples=N, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(
        st.sampled_from(operations),
        st.sampled_from(["", "?reasons=2", "?reasons=-1", "?reasons=9999999", "?x=%00"]),
        st.sampled_from([JSON, MEDIA_TYPE, "text/plain", ""]) | HEADER,
        BODIES,
    )
    def ask(operation, query, kind, body):
        method, path = operation
        connection.request(method, path + query, body, {"Content-Type": kind.strip()})
        response = connection.getresponse()
        answer = response.read()
        assert response.status in {200, 400, 404, 413, 415}, answer
        assert str(response.status) in described[path][method.lower()]["responses"]
        if response.status != 200:
            assert set(json.loads(answer)) == {"error"}
            assert b"Traceback" not in answer

    try:
        ask()
    finally:
        connection.close()
    assert not [line for line in service.lines if "traceback" in line]


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.binary(min_size=1, max_size=200))
def test_bytes_that_are_not_http_end_their_connection_alone(service, sent):
    with socket.create_connection(("127.0.0.1", service.port), timeout=30) as one:
        one.sendall(sent)
        one.shutdown(socket.SHUT_WR)
        one.recv(1000)
    assert service.get("/health/live").status == 200
