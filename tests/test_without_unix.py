"""What works where Python lacks what only Unix has, as on Windows: the names are taken away."""

import os
import pty
import subprocess
import sys

import pytest

TAKEN_AWAY = """
import os, signal, sys
del signal.SIGHUP, os.major, os.nice, os.sysconf
MODULES = {"fcntl", "grp", "pwd", "resource", "termios", "tty"}

class Lacking:
    def find_spec(self, name, path=None, target=None):
        if name in MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

for name in MODULES:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Lacking())
"""
FIT = """
import numpy as np
from fewlier import AnomalyDetector, Session, Training, UserError

rows = np.random.default_rng(0).normal(size=(60, 3))
labels = np.r_[np.ones(3), np.zeros(57)]
detector = AnomalyDetector(training=Training(max_epochs=1), random_state=0).fit(rows, labels)
detector.save("a.fewlier")
loaded = AnomalyDetector.load("a.fewlier")
assert (loaded.anomaly_score(rows) == detector.anomaly_score(rows)).all()
with Session(rows, random_state=0) as session:
    session.answer(session.next().row, 1)
try:
    Session(rows, path="answers.jsonl")
except UserError as error:
    print(error)
"""
COMMAND = """
import sys
from fewlier.cli import run

sys.argv[0] = "fewlier"
run()
"""


def without_unix(code, *words, **options):
    """Return the command that runs code in a Python without the names."""
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", TAKEN_AWAY + code, *map(str, words)],
        text=True,
        **options,
    )


@pytest.mark.slow
def test_the_library_fits_saves_loads_and_asks(tmp_path):
    done = without_unix(FIT, cwd=tmp_path, capture_output=True)
    assert done.returncode == 0, done.stderr
    # filelock has a lock of Windows, which cannot be tried here; where there is none, it is said.
    assert "answers.jsonl: a file for answers must be one that a session can lock" in done.stdout


@pytest.mark.slow
def test_commands_fit_and_score_and_keys_need_a_terminal_of_unix(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n" + "".join(f"{i % 7},{i % 5}\n" for i in range(60)))

    def run(*words, **options):
        return without_unix(COMMAND, *words, cwd=tmp_path, stderr=subprocess.PIPE, **options)

    for words in (
        ["fit", "t.csv", "-o", "m.fewlier", "--max-epochs", "1"],
        ["score", "t.csv", "-m", "m.fewlier", "-o", "scored.csv"],
    ):
        done = run(*words, stdout=subprocess.DEVNULL)
        assert done.returncode == 0, done.stderr
    ours, theirs = pty.openpty()
    code = "import filelock\nfilelock.lock_descriptor = lambda *_, **__: True\n"
    done = without_unix(
        code + COMMAND,
        *("label", "t.csv", "-o", "a.jsonl", "--terminal"),
        cwd=tmp_path,
        stdin=theirs,
        stderr=subprocess.PIPE,
    )
    os.close(ours)
    os.close(theirs)
    assert done.returncode == 2
    assert "Leave --terminal out" in done.stderr
