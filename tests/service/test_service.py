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
    limits = ("--max-body", 100_000, "--max-rows", 100)
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
    by_columns = service.post("/score", {"columns": columns}).json["rows"]
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
    texts = [[why["text"] for why in json.loads(row)] for row in arrow["reasons"]]
    assert texts == [[why["text"] for why in row] for row in expected]


def test_requests_that_are_scored_together_get_the_scores_of_their_own_rows(service, detector):
    expected = detector.anomaly_score(ROWS)

    def ask(number):
        answer = service.post("/score", {"rows": [RECORDS[number % 30]]}).json
        return answer["rows"][0]["anomaly_score"]

    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(ask, range(120)))
    np.testing.assert_array_equal(found, np.resize(expected, 120))


@pytest.mark.parametrize(
    ("where", "kind", "body", "status", "message"),
    [
        ("/score", JSON, b"{", 400, "must be JSON"),
        ("/score", "text/plain", b"{}", 415, "application/json or application/vnd"),
        ("/score", JSON, b'{"rows": [{"a": 1}]}', 400, "must have the 3 columns of training"),
        ("/score?reasons=x", JSON, b"{}", 422, "'reasons'"),
        ("/score?id=idd", JSON, json.dumps(ONE).encode(), 400, "'id' must name columns"),
        ("/score", JSON, b" " * 100_001, 413, "at most 100000 bytes"),
        ("/score", JSON, b'{"columns": {"a": [' + b"1," * 100 + b"1]}}", 413, "at most 100 rows"),
        ("/score", JSON, b'{"rows": [' + b"{}," * 2000 + b"{}]}", 413, "at most 400 cells"),
        ("/score", JSON, b'{"rows": [{}]}', 400, "must have the 3 columns of training"),
        ("/score", JSON, b'{"columns": {}}', 400, "must have the 3 columns of training"),
        ("/score", MEDIA_TYPE, b"xyz", 400, "must be an Arrow stream"),
        ("/nowhere", JSON, b"{}", 404, "Not Found"),
        ("/model", JSON, b"{}", 405, "Method Not Allowed"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(service, where, kind, body, status, message):
    answer = service.post(where, body, kind)
    assert (answer.status, set(answer.json)) == (status, {"detail"})
    assert message in answer.json["detail"]


def test_ids_come_back_and_a_missing_column_is_guessed(service):
    rows = [row | {"id": number, "due": "soon"} for number, row in enumerate(RECORDS)]
    answer = service.post("/score?id=due", {"rows": rows}).json["rows"]
    assert [(row["id"], row["due"]) for row in answer] == [(n, "soon") for n in range(30)]
    frame = ROWS.assign(id=range(30))
    arrow = pl.read_ipc_stream(service.post("/score", as_arrow(frame), MEDIA_TYPE).body)
    assert arrow["id"].to_list() == [*range(30)]
    refused = service.post("/score", {"rows": [{"Amount": 5, "visits": 1, "city": "Rome"}]})
    assert refused.status == 400
    assert "did you mean 'amount'" in refused.json["detail"]
    assert service.post("/score", {"rows": rows}).status == 400  # nobody has asked for 'due'


def test_no_rows_are_no_error(service):
    for document in ({"rows": []}, {"columns": {name: [] for name in FEATURES}}):
        answer = service.post("/score?reasons=2", document)
        assert (answer.status, answer.json["rows"]) == (200, [])
    assert service.post("/score?id=due", {"rows": []}).json["rows"] == []


def test_what_is_asked_and_answered_is_described(service):
    described = service.get("/openapi.json").json
    assert [*described["paths"]] == [
        "/score",
        "/model",
        "/metrics",
        "/health/live",
        "/health/ready",
    ]
    score = described["paths"]["/score"]["post"]
    assert {*score["requestBody"]["content"]} == {JSON, MEDIA_TYPE}
    assert [one["name"] for one in score["parameters"]] == ["reasons", "id"]
    row, reason = (described["components"]["schemas"][name] for name in ("ScoredRow", "Reason"))
    answer = service.post("/score?reasons=1", ONE).json["rows"][0]
    assert {*answer} == {*row["properties"]}
    assert {*answer["reasons"][0]} == {*reason["properties"]}
    assert b"/openapi.json" in service.get("/docs").body


def test_a_malformed_row_is_named(service):
    rows = [dict(RECORDS[0]) for _ in range(3)]
    rows[2]["amount"] = [1]
    answer = service.post("/score", {"rows": rows})
    assert answer.status == 400
    assert "a list in row 2, column 'amount'" in answer.json["detail"]


def test_a_body_without_a_length_is_limited_too(service):
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=30)
    chunks = (b" " * 1000 for _ in range(200))
    connection.request("POST", "/score", chunks, {"Content-Type": JSON}, encode_chunked=True)
    try:
        assert connection.getresponse().status == 413
    finally:
        connection.close()


def test_other_hosts_are_refused(service):
    assert service.get("/model", Host="localhost").status == 200
    odd = ("[::1].evil.example", "localhost:80@evil.example", "localhost:8000.evil.example")
    for host in ("evil.example", "evil.example:8000", "", "localhost.evil.example", *odd):
        answer = service.get("/model", Host=host)
        assert answer.status == 400


def test_the_model_and_its_hash_are_told(service, path):
    facts = json.loads(run("inspect", path, "--json").stdout)
    answer = service.get("/model").json
    scored = service.post("/score", ONE)
    assert answer["inspection"]["columns"] == facts["columns"]
    assert scored.headers["x-fewlier-model-sha256"] == answer["model_sha256"]
    assert scored.json["model_sha256"] == answer["model_sha256"]
    for path in ("/health/live", "/health/ready"):
        assert service.get(path).json == {"ready": True, "model_sha256": answer["model_sha256"]}


def metric(service, name):
    text = service.get("/metrics").body.decode()
    return sum(float(v) for v in re.findall(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE))


def test_metrics_are_summed_over_workers(service):
    counted = 'fewlier_rows_total{is_anomaly="false"}'
    flagged = 'fewlier_rows_total{is_anomaly="true"}'
    before = metric(service, counted) + metric(service, flagged)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: service.post("/score", {"rows": RECORDS}), range(40)))
    after = [metric(service, counted) + metric(service, flagged) for _ in range(6)]
    assert after == [before + 1200] * 6
    before = metric(service, flagged)
    service.post("/score", {"rows": [row | {"amount": 1000.0} for row in RECORDS]})
    assert metric(service, flagged) == before + 30
    errors = 'fewlier_requests_total{path="/score",status="400"}'
    before = metric(service, errors)
    service.post("/score", {"rows": "none"})
    assert metric(service, errors) == before + 1


def test_the_log_is_json_without_secrets(service):
    service.get("/model?token=secret-in-a-query", Authorization="Bearer secret-in-a-header")
    line = json.loads(service.await_line('"method": "GET", "path": "/model", "status": 200'))
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
    with running(tmp_path / "visits.fewlier") as service:
        by_json = service.post("/score", {"rows": records}).json["rows"]
        arrow = pl.read_ipc_stream(service.post("/score", as_arrow(rows), MEDIA_TYPE).body)
        none = service.post("/score", as_arrow(rows.head(0)), MEDIA_TYPE)
        assert pl.read_ipc_stream(none.body).shape == (0, 3)
        assert service.post("/score", {"rows": []}).json["rows"] == []
    np.testing.assert_array_equal([row["anomaly_score"] for row in by_json], expected)
    np.testing.assert_array_equal(arrow["anomaly_score"].to_numpy(), expected)
