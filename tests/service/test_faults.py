"""What a service does when clients, workers, files or signals do their worst."""

import json
import os
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


@pytest.mark.long
def test_half_open_and_slow_clients_hold_up_nobody(service):
    idle = [socket.create_connection(("127.0.0.1", service.port)) for _ in range(30)]
    for number, one in enumerate(idle[:15]):
        one.sendall(b"POST /score HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n"[:number])
    for one in idle[15:]:
        one.sendall(
            b"POST /score HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 50\r\n\r\n{"
        )
    started = time.monotonic()
    assert service.post("/score", ONE).status == 200
    assert time.monotonic() - started < 20
    for number, one in enumerate(idle):
        one.settimeout(60)  # a head may take 10 seconds, a body --max-seconds
        answer = b"".join(iter(lambda one=one: one.recv(10_000), b""))
        assert answer.startswith(b"" if number < 15 else b"HTTP/1.1 408 ")
        one.close()


def test_a_killed_worker_is_replaced(service):
    await_both_workers(service, "model file taken up", 2)
    killed, _ = service.workers()
    os.kill(killed, signal.SIGKILL)
    service.await_workers(2, gone=[killed])
    assert service.post("/score", ONE).status == 200


@pytest.mark.long
def test_a_worker_that_starts_while_the_file_is_damaged_goes_on_with_the_last_good_one(
    path, detector, tmp_path
):
    copy = tmp_path / "pay.fewlier"
    shutil.copy(path, copy)
    with running(copy, TMPDIR=str(tmp_path)) as service:
        before = service.get("/model").json["model_sha256"]
        copy.write_bytes(path.read_bytes()[:-100])
        service.await_line("model file refused")
        (worker,) = service.await_workers(1)
        os.kill(worker, signal.SIGKILL)
        (worker,) = service.await_workers(1, gone=[worker])
        scored = service.post("/score", {"rows": RECORDS}).json
        assert scored["model_sha256"] == before
        found = [row["anomaly_score"] for row in scored["rows"]]
        np.testing.assert_array_equal(found, detector.anomaly_score(ROWS))
        # Without the copy nothing is left to serve.
        for kept in tmp_path.glob("fewlier-serve-*/*.kept"):
            kept.unlink()
        os.kill(worker, signal.SIGKILL)
        assert service.process.wait(240) == 2
        service.await_line("fewlier: A worker of the service could not start")


def test_a_token_from_the_environment_is_asked_for_on_ipv6_and_ctrl_c_ends_all(path):
    if not has_ipv6():
        pytest.skip("this machine has no loopback address of IPv6")
    token = "correct-horse-battery"
    with running(path, "--host", "::1", FEWLIER_TOKEN=token) as service:
        service.host = "::1"
        assert "http://[::1]:" in service.lines[0]
        assert service.get("/models").status == 401
        assert service.get("/models", Authorization=f"Bearer {token}").status == 200
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
        assert "at most 0.5 seconds" in answer.json["error"]
        deadline = time.monotonic() + 240
        while service.post("/score", ONE).status != 200:
            assert time.monotonic() < deadline


def test_the_token_is_asked_for_everywhere_but_of_health(path, tmp_path):
    token = "correct-horse-battery"
    (tmp_path / "token").write_text(token + "\n")
    with running(path, "--host", "0.0.0.0", "--token-file", tmp_path / "token") as service:
        for free in ("/health/live", "/health/ready", "/v2/health/ready"):
            assert service.get(free).status == 200
        for asked in ("/model", "/models", "/metrics", "/openapi.json", "/v2", "/nowhere"):
            refused = service.get(asked, Authorization="Bearer wrong-horse-battery")
            assert (service.get(asked).status, refused.status) == (401, 401)
            assert refused.headers["www-authenticate"] == "Bearer"
        known = {"Authorization": f"Bearer {token}"}
        assert service.post("/score", ONE).status == 401
        assert service.post("/score", ONE, **known).status == 200
        assert service.get("/models", Host="any.example", **known).status == 200
        seen = [told(pid, what) for pid in service.workers() for what in ("cmdline", "environ")]
        assert not [text for text in [*seen, *service.lines] if token in text]
        assert service.stop() == 0


@pytest.mark.long
def test_a_replaced_file_is_taken_up_without_a_dropped_request(path, detector, other, tmp_path):
    folder = tmp_path / "models"
    folder.mkdir()
    shutil.copy(path, folder / "pay.fewlier")
    statuses, hashes, scores = [], [], []
    with running(folder, "--workers", 2) as service:
        await_both_workers(service, "model file taken up", 2)
        first = service.get("/models").json["models"][0]["model_sha256"]
        over = threading.Event()

        def ask():
            while not over.is_set():
                answer = service.post("/models/pay/score", {"rows": RECORDS})
                statuses.append(answer.status)
                hashes.append(answer.json["model_sha256"])
                scores.append([row["anomaly_score"] for row in answer.json["rows"]])

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        other.save(folder / "pay.fewlier")
        await_both_workers(service, "model file taken up", 4)
        (folder / "pay.fewlier").write_bytes(path.read_bytes()[:-100])
        await_both_workers(service, "model file refused", 2)
        other.save(folder / "second.fewlier")
        await_both_workers(service, '"model": "second"', 2)
        over.set()
        for thread in threads:
            thread.join()
        last = service.post("/models/pay/score", {"rows": RECORDS}).json["model_sha256"]
        assert service.post("/score", ONE).status == 404
        assert service.post("/models/second/score", ONE).status == 200
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
        slow = {"rows": RECORDS * 3}
        with ThreadPoolExecutor(12) as pool:
            answers = list(pool.map(lambda _: service.post("/score?reasons=3", slow), range(12)))
        statuses = [answer.status for answer in answers]
        assert {200, 503} == set(statuses)
        refused = answers[statuses.index(503)]
        assert refused.headers["retry-after"] == "1"
        assert "2 requests waiting" in refused.json["error"]
        deadline = time.monotonic() + 240
        while service.post("/score", ONE).status != 200:
            assert time.monotonic() < deadline
        late = service.ask(
            "POST", "/score", Trickle(), {"Content-Type": JSON, "Content-Length": "100"}
        )
        assert late.status == 408
        assert "within 10 seconds" in late.json["error"]


class Trickle:
    """A body that never comes to its end."""

    def read(self, _=None):
        return b""
