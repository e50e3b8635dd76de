"""What jobs of tests compute, in a module that other processes can import."""

import os
import signal
import time
from pathlib import Path

from fewlier_bench.runs.jobs import Measurement


def measure(cells):
    """Measure every cell, and say in `value` which cells were asked for together."""
    asked = " ".join(f"{cell.method}{cell.split}" for cell in cells)
    return [
        (cell, Measurement("n", asked, 0.5, cell.split / 10, 0.25, 1.5, "here")) for cell in cells
    ]


def fail(cells):
    """Fail as code does."""
    raise RuntimeError(f"no answer\nfor {len(cells)} cells")


def die(_):
    """End as a process does that takes too much memory."""
    os.kill(os.getpid(), signal.SIGKILL)


def threads(cells):
    """Tell how many threads this process may use."""
    found = Measurement("threads", os.environ.get("OMP_NUM_THREADS", ""))
    return [(cell, found) for cell in cells]


def nap(cells, folder):
    """Take a moment, and leave how many did so at once."""
    mark = Path(folder) / f"{cells[0].method}.busy"
    mark.touch()
    time.sleep(0.5)
    seen = len([*Path(folder).glob("*.busy")])
    mark.with_suffix(".seen").write_text(str(seen))
    mark.unlink()
    return measure(cells)
