"""Threads: each computes alone, and the caller finds its settings as they were."""

import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from factories import FEATURES, payments, small
from threadpoolctl import threadpool_info, threadpool_limits

from fewlier import AnomalyDetector, UserError
from fewlier.process.threads import MAX_AHEAD, ahead, in_threads, one_thread

ROWS = payments(300)
X, Y = ROWS[FEATURES], ROWS["fraud"]
MANY = payments(2500, seed=1)[FEATURES]  # several chunks


@pytest.fixture(autouse=True)
def three_threads():
    """Let the caller have three threads, whatever the machine has."""
    torch.get_num_threads()
    with threadpool_limits(3):
        yield


def settings():
    pools = {pool["filepath"]: pool["num_threads"] for pool in threadpool_info()}
    return pools | {"torch": torch.get_num_threads(), "parallel": torch.__config__.parallel_info()}


def openmp_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "openmp"}


def in_another_thread(function):
    found = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


def test_a_block_computes_in_one_thread_and_knows_how_many_it_may_use():
    with one_thread() as granted:
        assert (granted, torch.get_num_threads(), openmp_threads()) == (3, 1, {1})
        with one_thread() as inside:
            assert (inside, torch.get_num_threads()) == (3, 1)
        assert openmp_threads() == {1}
    assert (torch.get_num_threads(), openmp_threads()) == (3, {3})


@pytest.mark.skipif(not torch.backends.mkl.is_available(), reason="this torch has no MKL")
def test_a_number_of_threads_that_torch_was_told_counts_as_granted():
    def mkl_threads():
        return int(
            re.search(r"mkl_get_max_threads\(\) : (\d+)", torch.__config__.parallel_info())[1]
        )

    def look():
        torch.set_num_threads(2)
        with one_thread() as granted:
            inside = granted, torch.get_num_threads(), mkl_threads()
            shared = in_threads(lambda _: (torch.get_num_threads(), mkl_threads()), range(4))
        return inside, set(shared), torch.get_num_threads(), mkl_threads()

    before = torch.get_num_threads()
    try:
        assert in_another_thread(look) == ((2, 1, 1), {(1, 1)}, 2, 2)
    finally:
        torch.set_num_threads(before)


def test_a_block_changes_no_other_thread():
    before = in_another_thread(settings)
    with one_thread():
        assert in_another_thread(settings) == before


def test_work_is_shared_by_threads_that_each_compute_alone():
    together = threading.Barrier(3)

    def work(item):
        together.wait(timeout=60)  # passes only where three are at work
        return item, torch.get_num_threads(), openmp_threads()

    assert in_threads(work, range(6)) == [(item, 1, {1}) for item in range(6)]


def test_one_item_stays_in_the_callers_thread():
    assert in_threads(lambda _: threading.current_thread(), [0]) == [threading.current_thread()]
    assert in_threads(len, []) == []


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_after_an_error_no_further_item_is_begun(error):
    begun, before = [], settings()

    def work(item):
        begun.append(item)
        if not item:
            raise error("here")
        threading.Event().wait(0.01)

    with pytest.raises(error, match="here"):
        in_threads(work, range(1000))
    assert len(begun) < 500
    assert settings() == before


@pytest.fixture(scope="module")
def fitted():
    return small(max_epochs=2).fit(X, Y)


CALLS = {
    "fit": lambda _: small(max_epochs=1).fit(X, Y),
    "update": lambda d: AnomalyDetector.load(d).update(MANY[:20], np.zeros(20)),
    "score": lambda d: AnomalyDetector.load(d).anomaly_score(MANY),
    "explain": lambda d: AnomalyDetector.load(d).explain(MANY[:50]).expected,
    "log density": lambda d: AnomalyDetector.load(d).score_samples(MANY),
    "drift": lambda d: AnomalyDetector.load(d).drift(MANY),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_leaves_the_settings_of_the_caller(name, model):
    before = settings(), in_another_thread(settings)
    CALLS[name](model)
    assert (settings(), in_another_thread(settings)) == before


def test_calls_that_fail_leave_the_settings_of_the_caller(fitted, monkeypatch):
    before = settings()

    def fail(*_):
        raise MemoryError

    with pytest.raises(ZeroDivisionError):
        small(max_epochs=2).fit(X, Y, progress=lambda share: 1 / (share < 0.4))
    for part in fitted.model_.parts.values():
        monkeypatch.setattr(type(part), "contributions", fail)
    with pytest.raises(MemoryError):
        fitted.anomaly_score(MANY)
    with pytest.raises(UserError, match="memory"):
        small(max_epochs=1).fit(X, Y)
    assert settings() == before


def test_calls_from_several_threads_share_work_and_leave_the_settings_of_the_process(fitted):
    alone, found = fitted.anomaly_score(MANY), []
    before = settings(), in_another_thread(settings)

    def call():
        torch.get_num_threads()
        with threadpool_limits(3, user_api="openmp"):
            found.append((fitted.anomaly_score(MANY), torch.get_num_threads()))

    callers = [threading.Thread(target=call) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert (settings(), in_another_thread(settings)) == before
    assert len(found) == 4
    for scores, n_threads in found:
        np.testing.assert_array_equal(scores, alone)
        assert n_threads == 3


def test_no_bit_depends_on_the_number_of_threads():
    def bits(n_threads):
        with threadpool_limits(n_threads):
            return small(max_epochs=2, hidden=(128,)).fit(X, Y).anomaly_score(MANY)

    one, two, three = map(bits, (1, 2, 3))
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(one, three)


ALL_CALLS = """
import os, sys, time
import numpy as np
import fewlier

def n_threads():
    return len(os.listdir("/proc/self/task"))

rng = np.random.default_rng(0)
X, y = rng.normal(size=(1500, 20)), np.arange(1500) < 6
detector = fewlier.AnomalyDetector(training=fewlier.Training(max_epochs=1), random_state=0)
before = n_threads()
detector.fit(X, y).update(X[:20] + 9, np.ones(20))
detector.explain(X).expected
detector.save(sys.argv[1])
fewlier.AnomalyDetector.load(sys.argv[1]).score_samples(X)
for _ in range(500):  # a thread that has ended may take a moment to vanish
    if n_threads() <= before:
        break
    time.sleep(0.01)
print(n_threads() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="counts threads as Linux does")
def test_no_call_starts_a_thread_that_stays(tmp_path):
    """As those of OpenMP do, which wait in busy loops."""
    command = [sys.executable, "-W", "ignore", "-c", ALL_CALLS, tmp_path / "a.fewlier"]
    environment = os.environ | {"OMP_NUM_THREADS": "2"}
    found = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert found.stdout == "0\n"


def test_batches_are_under_way_while_the_caller_has_another_and_keep_their_order():
    together = threading.Barrier(3, timeout=30)

    def work(item):
        together.wait()  # passes only if three are under way at once
        with one_thread() as granted:
            return item, granted, torch.get_num_threads(), openmp_threads()

    assert list(ahead(work, range(6))) == [(item, 1, 1, {1}) for item in range(6)]


def test_many_threads_are_shared_by_few_batches():
    def work(_):
        with one_thread() as granted:
            return granted

    with threadpool_limits(16):
        assert list(ahead(work, range(20))) == [16 // MAX_AHEAD] * 20


@pytest.mark.parametrize(("threads", "n"), [(1, 5), (3, 2)])
def test_few_batches_or_threads_take_one_after_the_other(threads, n):
    begun = []
    with threadpool_limits(threads):
        found = ahead(lambda item: begun.append(item) or threading.get_ident(), range(n))
        assert next(found) == threading.get_ident()
    assert begun == [0]


def test_an_error_comes_when_its_batch_would_and_ends_the_rest():
    def work(item):
        if item == 2:
            raise UserError("item 2 is bad")
        return item

    taken = []
    found = ahead(work, (taken.append(item) or item for item in range(100)))
    assert [next(found), next(found)] == [0, 1]
    with pytest.raises(UserError, match="item 2 is bad"):
        next(found)
    assert len(taken) <= 6
