"""Signals during a comparison: one sentence, 130 or 143, no process left, and rows whole."""

import random
import re
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from commands import BENCH
from processes import assert_gone, start, stop

from fewlier_bench.runs.results import Store

COMPARE = "compare --data data --methods fewlier,LOF --workers 2 --results rows"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="asks Linux when to send a signal"),
]


@pytest.fixture
def data(tmp_path):
    """Return a folder with a folder of tables."""
    rng = np.random.default_rng(0)
    (tmp_path / "data").mkdir()
    X, y = rng.normal(size=(300, 3)), np.arange(300) < 40
    np.savez(tmp_path / "data" / "made.npz", X=X, y=y)
    return tmp_path


def test_a_comparison_may_be_stopped_at_any_moment(data):
    rng = random.Random("compare")
    for number in (signal.SIGINT, signal.SIGTERM) * 3:
        process = start(COMPARE, data, BENCH)
        time.sleep(0.001 * 2000 ** rng.random())
        _, err = stop(process, number)
        assert_gone(process.pid)
        assert process.returncode == 128 + number
        assert (err.splitlines() or ["fewlier: stopped"])[-1].startswith("fewlier: stopped")
        Store(data / "rows" / "data").read("clean")  # whole, or it would raise


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_comparison_is_stopped_while_its_workers_compute(number, data):
    process = start(COMPARE, data, BENCH)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    workers = set()
    while len(workers) < 3:  # the two, and multiprocessing's own helper
        assert process.poll() is None
        workers = set(children.read_text().split())
    time.sleep(1)
    _, err = stop(process, number)
    assert process.returncode == 128 + number
    assert re.fullmatch(r"fewlier: stopped comparing[^\n]*run it again to go on\.\n", err), err
    assert_gone(process.pid)
