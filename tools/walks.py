"""Count the modules of fewlier that each walk through the code passes.

    python tools/walks.py [WALK ...] [--names]

A module counts if a function of it runs. What runs on import does not: all modules are imported
before. docs/DEVELOP.md names the walks.
"""

import argparse
import importlib
import inspect
import pkgutil
import sys
import tempfile
import threading
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from types import FrameType

import numpy as np
import pandas as pd

import fewlier
from fewlier import AnomalyDetector
from fewlier.cli.app import app
from fewlier.files.folder import open_table
from fewlier.files.writing import create_table
from fewlier.scoring.files import score_file

ROOT = Path(fewlier.__file__).parent


def passed(walk: Callable[[], object]) -> Counter[str]:
    """Return how many different functions of each module run during a walk, in any thread."""
    found: set[tuple[str, int]] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_flags & inspect.CO_OPTIMIZED:
            found.add((code.co_filename, code.co_firstlineno))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            walk()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type] # that is how it is taken back
    paths = (Path(name) for name, _ in found)
    return Counter(str(p.relative_to(ROOT)) for p in paths if p.is_relative_to(ROOT))


def command(*words: str) -> Callable[[], object]:
    """Return a walk through a command."""
    return lambda: app([*words], standalone_mode=False)


def walks(folder: Path) -> dict[str, Callable[[], object]]:
    """Return the walks by name, with what they need in a folder."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"amount": rng.normal(50, 9, 300), "visits": rng.poisson(3, 300)})
    rows["city"] = rng.choice(["Bern", "Oslo", "Rome"], 300)
    rows["fraud"] = [1.0] * 6 + [0.0] * 200 + [None] * 94
    rows.loc[:5, "amount"] += 90
    rows.loc[40:50, "city"] = None
    X, path, model = rows.drop(columns="fraud"), folder / "rows.csv", str(folder / "m.fewlier")
    rows.to_csv(path, index=False)
    (folder / "many").mkdir()
    for number in range(3):
        rows.to_csv(folder / "many" / f"{number}.csv", index=False)

    def new() -> AnomalyDetector:
        return AnomalyDetector(random_state=0)

    detector, of_table = new().fit(X, rows["fraud"]), ("-m", model)
    detector.save(model)
    fitted = AnomalyDetector.load(model)

    def score_a_file() -> None:
        with open_table(path) as file, create_table(folder / "scored.csv") as write:
            score_file(detector, file, write)

    fit = ("fit", str(path), "--label", "fraud", "-o", str(folder / "n"))
    return {
        "fit (frame)": lambda: new().fit(X, rows["fraud"]),
        "score (frame)": lambda: detector.score_frame(X),
        "score (file)": score_a_file,
        "explain": lambda: detector.explain(X).top(0),
        "save": lambda: detector.save(model),
        "load": lambda: AnomalyDetector.load(model),
        "update": lambda: fitted.update(X[:3], [1, 1, 1]),
        "fewlier fit": command(*fit),
        "fewlier score FILE": command("score", str(path), *of_table, "-o", str(folder / "s.csv")),
        "fewlier score FOLDER": command(
            "score", str(folder / "many"), *of_table, "-o", str(folder / "scored")
        ),
        "fewlier explain": command("explain", str(path), *of_table),
    }


def main() -> None:
    """Print a table, and with --names the modules of each walk."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("walk", nargs="*", help="walks to count; default: all")
    parser.add_argument("--names", action="store_true", help="name the modules")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    for module in pkgutil.walk_packages([str(ROOT)], "fewlier."):
        if module.name != "fewlier.__main__":
            with suppress(ImportError):  # of an extra that is not installed
                importlib.import_module(module.name)
    lines = [f"{'walk':22} {'modules':>7} {'functions':>9}"]
    with tempfile.TemporaryDirectory() as folder:
        for name, walk in walks(Path(folder)).items():
            if not chosen.walk or name in chosen.walk:
                found = passed(walk)
                lines.append(f"{name:22} {len(found):7} {found.total():9}")
                lines += [f"    {one} {n}" for one, n in sorted(found.items()) if chosen.names]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
