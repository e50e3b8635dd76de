"""What a service does when clients, workers, files or signals do their worst."""

import json
import os
import re
import resource
import shutil
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from factories import FEATURES, payments
from services import JSON, running, told

pytestmark = pytest.mark.slow
ROWS = payments(seed=7)[FEATURES].head(30)
RECORDS = json.loads(ROWS.to_json(orient="records"))
ONE = {"rows": RECORDS[:1]}


@pytest.fixture(scope="module")
def service(path):
    with running(path, "--workers", 2, "--max-seconds", 10) as running_:
        yield running_
        assert running_.process.poll() is None


def test_bodies_that_are_slow_to_arrive_take_no_place_in_the_queue(path):
    with running(path, "--max-waiting", 2, "--max-seconds", 10) as service:
        head = b"POST /score HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        slow = [socket.create_connection(("127.0.0.1", service.port)) for _ in range(20)]
        for one in slow:
            one.sendall(head + b"Content-Length: 50\r\n\r\n{")
        assert service.post("/score", ONE).status == 200
        for one in slow:
            one.settimeout(60)
            answer = one.recv(10_000)
            assert answer.startswith(b"HTTP/1.1 408 ")
            one.close()


def test_a_killed_worker_is_replaced(service):
    await_both_workers(service, "model file taken up", 2)
    killed, _ = service.workers()
    os.kill(killed, signal.SIGKILL)
    service.await_workers(2, gone=[killed])
    assert service.post("/score", ONE).status == 200
    line = json.loads(service.await_line("a worker ended"))
    assert (line["worker"], line["exit_code"]) == (killed, -signal.SIGKILL)


def test_a_worker_without_room_for_its_counts_scores_all_the_same(path):
    with running(path) as service:
        (worker,) = service.await_workers(1)
        nothing = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, (0, nothing[1]))
        os.kill(worker, signal.SIGKILL)
        service.await_workers(1, gone=[worker])
        service.await_line("counts nothing for /metrics")
        assert service.post("/score", ONE).status == 200
        assert service.get("/metrics").status == 200


def bombs():
    """Return bodies of 31 MiB that would take much more as objects."""
    size = 31 * 2**20
    names = ",".join(f'"{number}":0' for number in range(size // 11))
    return [
        b'{"rows": [' + b"{}," * (size // 3) + b"{}]}",
        b'{"columns": {"amount": [' + b"1.5," * (size // 4) + b"1]}}",
        b'{"rows": [{' + names.encode() + b"}]}",
        b'{"columns": {"city": [' + b'"ab",' * (size // 5) + b'""]}}',
        b"[" * size,
    ]


@pytest.mark.long
@pytest.mark.parametrize("most", [10_000, 10**8], ids=["usual", "without a limit of rows"])
def test_bombs_that_come_together_are_refused_and_take_little_memory(path, most):
    with running(path, "--max-rows", most, "--max-seconds", 120) as service:
        (worker,) = service.await_workers(1)
        assert service.post("/score", ONE).status == 200
        with ThreadPoolExecutor(5) as pool:
            found = [*pool.map(lambda body: service.post("/score", body).status, bombs())]
        assert {*found} <= {400, 413}
        assert service.post("/score", ONE).status == 200
        peak = int(re.search(r"VmHWM:\s+(\d+)", told(worker, "status"))[1])
        assert peak < 1_500_000


@pytest.mark.long
def test_a_worker_that_starts_while_the_file_is_damaged_waits_for_a_good_one(path, tmp_path):
    copy = tmp_path / "pay.fewlier"
    shutil.copy(path, copy)
    with running(copy) as service:
        before = service.get("/health/ready").json
        copy.write_bytes(path.read_bytes()[:-100])
        service.await_line("model file refused")
        assert service.get("/health/ready").json == before
        (worker,) = service.await_workers(1)
        os.kill(worker, signal.SIGKILL)
        service.await_workers(1, gone=[worker])
        ready = service.get("/health/ready")
        assert (ready.status, ready.json) == (503, {"ready": False, "model_sha256": None})
        refused = service.post("/score", ONE)
        assert (refused.status, refused.headers["retry-after"]) == (503, "1")
        shutil.copy(path, copy)
        service.await_ready()
        assert service.post("/score", ONE).json["model_sha256"] == before["model_sha256"]


def test_a_token_from_the_environment_is_asked_for_on_ipv6_and_ctrl_c_ends_all(path):
    if not has_ipv6():
        pytest.skip("this machine has no loopback address of IPv6")
    token = "correct-horse-battery"
    with running(path, "--host", "::1", FEWLIER_TOKEN=token) as service:
        service.host = "::1"
        assert "http://[::1]:" in service.lines[0]
        assert service.get("/model").status == 401
        assert service.get("/model", Authorization=f"Bearer {token}").status == 200
        assert token not in "".join(told(pid, "environ") for pid in service.workers())
        for pid in service.workers():  # a terminal tells all processes
            os.kill(pid, signal.SIGINT)
        assert service.stop(signal.SIGINT) == 0
        assert "every request that had begun was answered" in service.lines[-1]


def has_ipv6():
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


def test_an_answer_that_takes_too_long_is_given_up(path):
    with running(path, "--max-seconds", 0.5) as service:
        answer = service.post("/score?reasons=3", {"rows": RECORDS * 300})
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")
        assert "within 0.5 seconds" in answer.json["detail"]
        deadline = time.monotonic() + 240
        while service.post("/score", ONE).status != 200:
            assert time.monotonic() < deadline


def test_the_token_is_asked_for_everywhere_but_of_health(path, tmp_path):
    token = "correct-horse-battery"
    (tmp_path / "token").write_text(token + "\n")
    words = ("--host", "0.0.0.0", "--token-file", tmp_path / "token")
    # FastAPI must not send what it measures to where its environment says.
    telemetry = {
        "FASTAPI_OTEL_AUTO_CONFIGURE": "true",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://[::1]:9",
    }
    with running(path, *words, **telemetry) as service:
        for free in ("/health/live", "/health/ready", "/docs", "/openapi.json"):
            assert service.get(free).status == 200
        described = service.get("/openapi.json").json
        assert described["paths"]["/score"]["post"]["security"]
        assert "visits" not in json.dumps(described)  # a column
        for asked in ("/model", "/metrics"):
            refused = service.get(asked, Authorization="Bearer wrong-horse-battery")
            assert (service.get(asked).status, refused.status) == (401, 401)
            assert refused.headers["www-authenticate"] == "Bearer"
        known = {"Authorization": f"Bearer {token}"}
        assert service.post("/score", ONE).status == 401
        assert service.post("/score", ONE, **known).status == 200
        assert service.get("/model", Host="any.example", **known).status == 200
        seen = [told(pid, what) for pid in service.workers() for what in ("cmdline", "environ")]
        assert not [text for text in [*seen, *service.lines] if token in text]
        assert service.stop() == 0


@pytest.mark.long
def test_a_replaced_file_is_taken_up_without_a_dropped_request(path, detector, other, tmp_path):
    copy = shutil.copy(path, tmp_path / "pay.fewlier")
    statuses, hashes, scores = [], [], []
    with running(copy, "--workers", 2) as service:
        await_both_workers(service, "model file taken up", 2)
        first = service.get("/model").json["model_sha256"]
        over = threading.Event()

        def ask():
            while not over.is_set():
                answer = service.post("/score", {"rows": RECORDS})
                statuses.append(answer.status)
                hashes.append(answer.json["model_sha256"])
                scores.append([row["anomaly_score"] for row in answer.json["rows"]])

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        other.save(copy)
        await_both_workers(service, "model file taken up", 4)
        copy.write_bytes(path.read_bytes()[:-100])
        await_both_workers(service, "model file refused", 2)
        over.set()
        for thread in threads:
            thread.join()
        last = service.post("/score", {"rows": RECORDS}).json["model_sha256"]
    assert set(statuses) == {200}
    assert set(hashes) == {first, last}
    assert first != last
    expected = {first: detector.anomaly_score(ROWS), last: other.anomaly_score(ROWS)}
    for hash_, found in zip(hashes, scores, strict=True):
        np.testing.assert_array_equal(found, expected[hash_])


def await_both_workers(service, text, n):
    deadline = time.monotonic() + 240
    while sum(text in line for line in service.lines) < n:
        assert time.monotonic() < deadline, service.lines
        time.sleep(0.05)


def test_a_service_that_is_told_to_stop_answers_what_has_begun(path):
    with running(path, "--max-rows", 10_000) as service:
        rows = {"rows": RECORDS * 100}
        with ThreadPoolExecutor(4) as pool:
            answers = [pool.submit(service.post, "/score?reasons=3", rows) for _ in range(4)]
            service.get("/health/live")
            time.sleep(1)  # they have been sent, and take longer
            code = service.stop()
            found = [answer.result() for answer in answers]
        assert code == 0
        assert [(one.status, len(one.json["rows"])) for one in found] == [(200, 3000)] * 4
        assert "every request that had begun was answered" in service.lines[-1]


@pytest.mark.long
def test_overload_is_answered_at_once_and_passes(path):
    with running(path, "--max-waiting", 2, "--max-seconds", 10) as service:
        slow = {"rows": RECORDS * 20}
        with ThreadPoolExecutor(12) as pool:
            answers = list(pool.map(lambda _: service.post("/score?reasons=3", slow), range(12)))
        statuses = [answer.status for answer in answers]
        assert {200, 503} == set(statuses)
        refused = answers[statuses.index(503)]
        assert refused.headers["retry-after"] == "1"
        assert "2 requests wait" in refused.json["detail"]
        deadline = time.monotonic() + 240
        while service.post("/score", ONE).status != 200:
            assert time.monotonic() < deadline
        late = service.ask(
            "POST", "/score", Trickle(), {"Content-Type": JSON, "Content-Length": "100"}
        )
        assert late.status == 408
        assert "within 10 seconds" in late.json["detail"]


class Trickle:
    """A body that never comes to its end."""

    def read(self, _=None):
        return b""
