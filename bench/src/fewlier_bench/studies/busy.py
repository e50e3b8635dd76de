"""A busy machine: a fit and a scoring alone, beside one busy loop, and two at once, on two cores.

    fewlier-bench busy --repeats 3

Each is a process of its own, on 2,000 rows of ten columns with six labels. With fair shares, what
uses both cores takes half as long again beside one busy loop, and what uses one no longer. The
three take turns, and the shortest time of each counts, because others may use the machine too.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from fewlier import AnomalyDetector
from fewlier_bench.studies.grid import make_parser

N_ROWS, N_COLUMNS, N_ANOMALIES = 2000, 10, 6
N_SCORED = 100_000
AIM = 2.5


def measure() -> None:
    """Print how long a fit and a scoring take in this process, after a first of each."""
    rng = np.random.default_rng(0)
    X, y = (
        rng.normal(size=(N_ROWS, N_COLUMNS)),
        np.repeat([0, 1], [N_ROWS - N_ANOMALIES, N_ANOMALIES]),
    )
    X[y == 1, :2] += 3
    fresh = rng.normal(size=(N_SCORED, N_COLUMNS))
    AnomalyDetector(max_epochs=1, random_state=0).fit(X[-200:], y[-200:]).anomaly_score(
        fresh[:5000]
    )
    started = time.perf_counter()
    detector = AnomalyDetector(random_state=0).fit(X, y)
    fitted = time.perf_counter()
    detector.anomaly_score(fresh)
    print(json.dumps({"fit": fitted - started, "score": time.perf_counter() - fitted}))


def in_processes(n: int) -> dict[str, float]:
    """Measure in n processes at once; return the longest times."""
    code = "from fewlier_bench.studies.busy import measure; measure()"
    environment = {k: v for k, v in os.environ.items() if k != "OMP_NUM_THREADS"}  # the default
    processes = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment)
        for _ in range(n)
    ]
    found = [json.loads(process.communicate()[0]) for process in processes]
    return {what: max(times[what] for times in found) for what in ("fit", "score")}


@contextmanager
def busy_loop() -> Iterator[None]:
    """Keep one core busy inside the block."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def main(words: Sequence[str]) -> None:
    """Run and print the times, and their ratios to the times alone."""
    parser = make_parser(__name__, __doc__)
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args(words).repeats
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])  # inherited by the processes
    others = f"{os.getloadavg()[0]:.1f} processes were running before"
    print(f"shortest of {repeats}, on {len(os.sched_getaffinity(0))} cores; {others}")
    found: dict[str, list[dict[str, float]]] = {}
    for _ in range(repeats):
        found.setdefault("alone", []).append(in_processes(1))
        with busy_loop():
            found.setdefault("beside a busy loop", []).append(in_processes(1))
        found.setdefault("two at once", []).append(in_processes(2))
    for what in ("fit", "score"):
        alone, *_ = shortest = [min(times[what] for times in runs) for runs in found.values()]
        for name, seconds in zip(found, shortest, strict=True):
            aim = f" (aim: at most {AIM})" if name == "beside a busy loop" else ""
            print(f"{what:6}{name:20}{seconds:8.2f} s {seconds / alone:8.2f} x{aim}", flush=True)
