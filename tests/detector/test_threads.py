"""One process, many threads: every call gives the bits that it gives alone."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from factories import FEATURES, payments, small

from fewlier import AnomalyDetector
from fewlier.density import DENSITIES

pytestmark = pytest.mark.slow

N_THREADS, N_ROUNDS = 8, 3
ROWS = payments()
X, Y = ROWS[FEATURES], ROWS["fraud"]
# Each thread has rows of its own, of another number, one of them more than a chunk.
TABLES = [payments(300 if i else 1100, seed=10 + i)[FEATURES] for i in range(N_THREADS)]

USES = {
    "score": lambda detector, table: detector.anomaly_score(table),
    "p-value": lambda detector, table: detector.p_value(table),
    "probability": lambda detector, table: detector.predict_proba(table),
    "log density": lambda detector, table: detector.score_samples(table),
    "contributions": lambda detector, table: detector.explain(table).contributions,
    "expected": lambda detector, table: detector.explain(table[:50]).expected.median,
    "drift": lambda detector, table: np.array([c.statistic for c in detector.drift(table).columns]),
}


@pytest.fixture(autouse=True)
def eager_switches():
    """Let threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def at_once(calls):
    """Make all calls at the same time, each in a thread of its own."""
    barrier = threading.Barrier(len(calls))

    def begin(call):
        barrier.wait(timeout=60)
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result() for future in [pool.submit(begin, call) for call in calls]]


def assert_same_bits(found, alone):
    for one, other in zip(found, alone, strict=True):
        np.testing.assert_array_equal(one, other)


def same_when_shared(calls, alone):
    for _ in range(N_ROUNDS):
        assert_same_bits(at_once(calls), alone)


@pytest.fixture(scope="module")
def fitted():
    return small(max_epochs=3).fit(X, Y)


@pytest.mark.parametrize("use", USES)
def test_one_detector_in_many_threads_gives_the_bits_it_gives_alone(use, fitted):
    calls = [partial(USES[use], fitted, table) for table in TABLES]
    same_when_shared(calls, [call() for call in calls])


def test_different_uses_of_one_detector_do_not_disturb_one_another(fitted):
    calls = [partial(use, fitted, TABLES[1]) for use in USES.values()]
    same_when_shared(calls, [call() for call in calls])


def test_threads_leave_a_detector_as_it_was(fitted, tmp_path):
    fitted.save(tmp_path / "before")
    for _ in range(N_ROUNDS):
        at_once([partial(fitted.anomaly_score, table) for table in TABLES])
    fitted.save(tmp_path / "after")
    assert (tmp_path / "after").read_bytes() == (tmp_path / "before").read_bytes()


def test_the_first_calls_of_a_loaded_detector_may_come_together(model):
    alone = [AnomalyDetector.load(model).anomaly_score(table) for table in TABLES]
    for _ in range(N_ROUNDS):
        loaded = AnomalyDetector.load(model)  # with nothing computed ahead
        calls = [partial(loaded.anomaly_score, table) for table in TABLES]
        assert_same_bits(at_once(calls), alone)


def test_detectors_of_every_density_score_side_by_side():
    """Each in two threads, on other rows."""
    sizes = {"latent": 2, "n_samples": 2, "n_transforms": 2, "max_epochs": 1}
    detectors = [small(density=name, **sizes).fit(X, Y) for name in DENSITIES]
    calls = [partial(one.anomaly_score, TABLES[i]) for one in detectors for i in (1, 2)]
    same_when_shared(calls, [call() for call in calls])


def test_a_detector_scores_the_same_while_others_are_fitted(fitted):
    def fit():
        return small(max_epochs=3, random_state=1).fit(X, Y).anomaly_score(X)

    def score():
        return np.stack([fitted.anomaly_score(X) for _ in range(N_ROUNDS)])

    calls = [fit, fit, score, score]
    assert_same_bits(at_once(calls), [call() for call in calls])


def test_a_model_scores_the_same_while_its_detector_is_updated(model):
    detector = AnomalyDetector.load(model)
    old = detector.model_
    encoded = old.encode(detector._table(X))
    alone = old.score(encoded)

    def score():
        return np.stack([old.score(encoded) for _ in range(N_ROUNDS)])

    more = payments(300, seed=11)
    *found, _ = at_once([score, score, lambda: detector.update(more[FEATURES], more["fraud"])])
    assert detector.model_ is not old
    for scores in found:
        assert_same_bits(scores, [alone] * N_ROUNDS)
