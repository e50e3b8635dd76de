"""The service as it runs: real processes, workers and sockets."""

import http.client
import io
import json
import re
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import polars as pl
import pytest
from factories import FEATURES, payments, small
from processes import run
from services import JSON, running

from fewlier.service.arrow import MEDIA_TYPE

pytestmark = pytest.mark.slow
ROWS = payments(seed=7)[FEATURES].head(30)
RECORDS = json.loads(ROWS.to_json(orient="records"))
ONE = {"rows": RECORDS[:1]}


@pytest.fixture(scope="module")
def service(path):
    limits = ("--max-body", 100_000, "--max-rows", 100, "--max-reasons", 89)
    with running(path, "--workers", 2, *limits) as running_:
        yield running_
        assert running_.process.poll() is None


def as_arrow(rows):
    sink = io.BytesIO()
    pl.from_pandas(rows).write_ipc_stream(sink)
    return sink.getvalue()


def test_scores_are_those_of_the_library_bit_for_bit(service, detector):
    expected = {
        "anomaly_score": detector.anomaly_score(ROWS),
        "is_anomaly": detector.predict(ROWS).astype(bool),
        "p_value": detector.p_value(ROWS),
    }
    columns = {name: [row[name] for row in RECORDS] for name in FEATURES}
    by_rows = service.post("/score", {"rows": RECORDS}).json["rows"]
    by_columns = service.post("/models/pay/score", {"columns": columns}).json["rows"]
    arrow = pl.read_ipc_stream(service.post("/score", as_arrow(ROWS), MEDIA_TYPE).body)
    for name, values in expected.items():
        for found in (by_rows, by_columns):
            np.testing.assert_array_equal([row[name] for row in found], values)
        np.testing.assert_array_equal(arrow[name].to_numpy(), values)


def test_reasons_are_those_of_explain(service, detector):
    expected = [
        [why._asdict() | {"text": str(why)} for why in row]
        for row in detector.explain(ROWS).tops(n=2)
    ]
    found = service.post("/score?reasons=2", {"rows": RECORDS}).json["rows"]
    for row, reasons in zip(found, expected, strict=True):
        for got, wanted in zip(row["reasons"], reasons, strict=True):
            assert got["text"] == wanted["text"]
            assert got["contribution"] == pytest.approx(wanted["contribution"], abs=1e-9)
    arrow = pl.read_ipc_stream(service.post("/score?reasons=2", as_arrow(ROWS), MEDIA_TYPE).body)
    texts = [[why["text"] for why in row] for row in arrow["reasons"].to_list()]
    assert texts == [[why["text"] for why in row] for row in expected]


def test_requests_that_are_scored_together_get_the_scores_of_their_own_rows(service, detector):
    expected = detector.anomaly_score(ROWS)

    def ask(number):
        answer = service.post("/score", {"rows": [RECORDS[number % 30]]}).json
        return answer["rows"][0]["anomaly_score"]

    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(ask, range(120)))
    np.testing.assert_array_equal(found, np.resize(expected, 120))


def test_the_inference_protocol_gives_the_same_scores(service, detector):
    metadata = service.get("/v2/models/pay").json
    inputs = [
        tensor | {"shape": [30], "data": [row[tensor["name"]] for row in RECORDS]}
        for tensor in metadata["inputs"]
    ]
    assert {tensor["name"]: tensor["datatype"] for tensor in metadata["inputs"]} == {
        "amount": "FP64",
        "visits": "FP64",
        "city": "BYTES",
    }
    document = {"id": "7", "inputs": inputs, "parameters": {"reasons": 1}}
    answer = service.post("/v2/models/pay/infer", document).json
    found = {tensor["name"]: tensor["data"] for tensor in answer["outputs"]}
    assert (answer["id"], answer["model_version"]) == ("7", metadata["versions"][0])
    np.testing.assert_array_equal(found["anomaly_score"], detector.anomaly_score(ROWS))
    first = json.loads(found["reasons"][0])[0]["text"]
    assert first == str(detector.explain(ROWS).top(0, 1)[0])
    # The same as a column of a matrix, and one output alone.
    tall = [t | {"shape": [30, 1], "data": [[cell] for cell in t["data"]]} for t in inputs]
    alone = service.post(
        "/v2/models/pay/infer", {"inputs": tall, "outputs": [{"name": "p_value"}]}
    ).json["outputs"]
    assert [tensor["name"] for tensor in alone] == ["p_value"]
    np.testing.assert_array_equal(alone[0]["data"], detector.p_value(ROWS))


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, "'inputs' must be a list"),
        ([{"name": 1}], "must have a 'name'"),
        ([{"name": "a", "datatype": "FP8"}], "'datatype' of input 'a'"),
        ([{"name": "a", "datatype": "FP64", "shape": [2], "data": [1]}], "'shape' of input 'a'"),
        (
            [{"name": "a", "datatype": "FP64", "shape": [2], "data": [1, "x"]}],
            "must be a number or null; got str in row 1, column 'a'",
        ),
        ([{"name": "a", "datatype": "INT8", "shape": [1], "data": [1]}] * 2, "got 'a' again"),
    ],
)
def test_malformed_inputs_are_refused(service, inputs, message):
    answer = service.post("/v2/models/pay/infer", {"inputs": inputs})
    assert answer.status == 400
    assert re.search(message, answer.json["error"])


@pytest.mark.parametrize(
    ("where", "kind", "body", "status", "message"),
    [
        ("/score", JSON, b"{", 400, "must be JSON"),
        ("/score", "text/plain", b"{}", 415, "application/json or application/vnd"),
        ("/score", JSON, b'{"rows": [{"a": 1}]}', 400, "must have the 3 columns of training"),
        ("/score?reasons=x", JSON, b"{}", 400, "'reasons' must be"),
        ("/score", JSON, b" " * 100_001, 413, "at most 100000 bytes"),
        ("/score", JSON, b'{"columns": {"a": [' + b"1," * 100 + b"1]}}", 413, "at most 100 rows"),
        ("/score", JSON, b'{"rows":' + b"[" * 40, 413, "at most 32 lists and objects"),
        ("/score?reasons=3", JSON, json.dumps({"rows": RECORDS}).encode(), 413, "at most 89 reas"),
        ("/score", MEDIA_TYPE, b"xyz", 400, "must be an Arrow stream"),
        ("/models/nobody/score", JSON, b"{}", 404, "No model of that name"),
        ("/nowhere", JSON, b"{}", 404, "Not Found"),
        ("/model", JSON, b"{}", 405, "Method Not Allowed"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(service, where, kind, body, status, message):
    answer = service.post(where, body, kind)
    assert (answer.status, set(answer.json)) == (status, {"error"})
    assert message in answer.json["error"]


def test_a_malformed_row_is_named(service):
    rows = [dict(RECORDS[0]) for _ in range(3)]
    rows[2]["amount"] = [1]
    answer = service.post("/score", {"rows": rows})
    assert answer.status == 400
    assert "a list in row 2, column 'amount'" in answer.json["error"]


def test_a_body_without_a_length_is_limited_too(service):
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=30)
    chunks = (b" " * 1000 for _ in range(200))
    connection.request("POST", "/score", chunks, {"Content-Type": JSON}, encode_chunked=True)
    try:
        assert connection.getresponse().status == 413
    finally:
        connection.close()


def test_other_hosts_are_refused(service):
    assert service.get("/models", Host="localhost").status == 200
    for host in ("evil.example", "evil.example:8000", "", "localhost.evil.example"):
        answer = service.get("/models", Host=host)
        assert answer.status in (400, 421)


def test_the_model_and_its_hash_are_told(service, path):
    facts = json.loads(run("inspect", path, "--json").stdout)
    answer = service.get("/model").json
    scored = service.post("/score", ONE)
    assert answer["inspection"]["columns"] == facts["columns"]
    assert scored.headers["x-fewlier-model-sha256"] == answer["model_sha256"]
    assert scored.json["model_sha256"] == answer["model_sha256"]
    assert service.get("/models").json["models"][0]["model"] == "pay"


def metric(service, name):
    text = service.get("/metrics").body.decode()
    return sum(float(v) for v in re.findall(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE))


def test_metrics_are_summed_over_workers(service):
    counted = 'fewlier_rows_total{model="pay"}'
    before = metric(service, counted)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: service.post("/score", {"rows": RECORDS}), range(40)))
    assert [metric(service, counted) - before for _ in range(6)] == [1200.0] * 6
    shifted = [row | {"amount": 1000.0} for row in RECORDS]
    for _ in range(40):
        service.post("/score", {"rows": shifted})
    values = 'fewlier_drift{column="amount",model="pay",what="values"}'
    assert metric(service, values) > 0.3
    assert metric(service, 'fewlier_share_flagged{model="pay"}') > 0.4
    errors = 'fewlier_errors_total{endpoint="score"}'
    before = metric(service, errors)
    service.post("/score", {"rows": "none"})
    assert metric(service, errors) == before + 1


def test_the_log_is_json_without_secrets(service):
    service.get("/models?token=secret-in-a-query", Authorization="Bearer secret-in-a-header")
    line = json.loads(service.await_line('"path": "/models"'))
    assert line | {"method": "GET", "status": 200, "event": "request"} == line
    service.post("/score", ONE)
    scored = r'(?=.*"path": "/score")(?=.*"status": 200).*"rows": 1[,}]'
    assert json.loads(service.await_line(scored))["model"] == "pay"
    assert not [line for line in service.lines if "secret" in line]


def test_a_cell_of_spaces_holds_up_nobody(service):
    rows = [dict(RECORDS[0], amount="-" + " " * 9_000 + "x") for _ in range(10)]
    started = time.monotonic()
    answer = service.post("/score", {"rows": rows})
    assert (answer.status, "amount" in answer.json["notes"][0]) == (200, True)
    assert time.monotonic() - started < 10


def test_dates_and_booleans_are_scored_as_by_the_library(tmp_path):
    rng, n = np.random.default_rng(0), 120
    days = pd.Timestamp("2026-01-05") + pd.to_timedelta(rng.integers(0, 200_000, n), "min")
    visits = pd.DataFrame(
        {"amount": rng.normal(50, 10, n), "paid": rng.random(n) < 0.7, "at": days}
    ).astype({"paid": "boolean"})
    visits.loc[::17, ["paid", "at"]] = None
    detector = small().fit(visits, np.arange(n) < 6)
    detector.save(tmp_path / "visits.fewlier")
    rows = visits.tail(40)
    expected = detector.anomaly_score(rows)
    texts = rows.assign(at=rows["at"].dt.strftime("%Y-%m-%dT%H:%M:%S")).astype(object)
    records = texts.where(texts.notna(), None).to_dict("records")
    assert {type(row["paid"]) for row in records} == {bool, type(None)}
    inputs = [
        {"name": name, "datatype": kind, "shape": [40], "data": [row[name] for row in records]}
        for name, kind in (("amount", "FP64"), ("paid", "BOOL"), ("at", "BYTES"))
    ]
    with running(tmp_path / "visits.fewlier") as service:
        by_json = service.post("/score", {"rows": records}).json["rows"]
        arrow = pl.read_ipc_stream(service.post("/score", as_arrow(rows), MEDIA_TYPE).body)
        by_protocol = service.post("/v2/models/visits/infer", {"inputs": inputs}).json["outputs"]
    np.testing.assert_array_equal([row["anomaly_score"] for row in by_json], expected)
    np.testing.assert_array_equal(arrow["anomaly_score"].to_numpy(), expected)
    np.testing.assert_array_equal(by_protocol[0]["data"], expected)
