"""How long it takes until something happens: the help, the import, the scores of ten rows.

    fewlier-bench start --repeats 5

Each in a fresh process, in turns; the shortest counts, because others may use the machine too. The
packages that fewlier imports are timed as well: nobody can start faster than they do.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fewlier import AnomalyDetector
from fewlier_bench.studies.grid import make_parser


def cases(folder: Path) -> dict[str, tuple[str, ...]]:
    """Return what to run, with the words that Python gets, and make the files it needs."""
    rows = np.random.default_rng(0).normal(size=(300, 3))
    model, table = folder / "model.fewlier", folder / "ten.csv"
    AnomalyDetector(max_epochs=2, random_state=0).fit(rows).save(model)
    np.savetxt(table, rows[:10], delimiter=",", header="x0,x1,x2", comments="")
    score = ("score", str(table), "-m", str(model), "-o", str(folder / "scored.csv"))
    return {
        "fewlier --help (aim: below 0.4)": ("-m", "fewlier", "--help"),
        "fewlier.AnomalyDetector (aim: below 2.5)": (
            "-c",
            "import fewlier; fewlier.AnomalyDetector",
        ),
        "fewlier score, ten rows (aim: below 2.5)": ("-m", "fewlier", *score),
        "import torch": ("-c", "import torch"),
        "import sklearn.base": ("-c", "import sklearn.base"),
        "import torch, sklearn.base": ("-c", "import torch, sklearn.base"),
        "python": ("-c", ""),
    }


def seconds(words: Sequence[str]) -> float:
    """Return how long Python takes with these words."""
    # As where packages are installed: they are not compiled anew at every start.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    started = time.perf_counter()
    subprocess.run([sys.executable, *words], check=True, capture_output=True, env=environment)
    return time.perf_counter() - started


def main(words: Sequence[str]) -> None:
    """Run and print one line for each case."""
    parser = make_parser(__name__, __doc__)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args(words).repeats
    with tempfile.TemporaryDirectory() as folder:
        found: dict[str, list[float]] = {}
        chosen = cases(Path(folder))
        for _ in range(repeats + 1):
            for name, arguments in chosen.items():
                found.setdefault(name, []).append(seconds(arguments))
    for name, times in found.items():  # the first run compiles, and reads from the disk
        print(f"{name:45}{min(times[1:]):8.2f} s", flush=True)
