"""`fewlier score --engine ray` as a process, which starts a cluster of its own."""

import os
import signal
import subprocess
import sys

import pyarrow.dataset as ds
import pytest
from factories import payments

# Progress lines at once, so that a test sees when the work has begun.
DRIVER = (
    "from fewlier.cli import run, screen\n"
    "screen.SECONDS_BETWEEN_LINES = screen.SHARE_BETWEEN_LINES = 0\n"
    "run()"
)


@pytest.fixture
def command(model, tmp_path):
    """Return the words that score a folder of sixty files."""
    big = tmp_path / "big"
    big.mkdir()
    for number in range(60):
        payments(100, seed=number).to_parquet(big / f"{number:02}.parquet", index=False)
    words = ["score", big, "-m", model, "-o", tmp_path / "out", "--engine", "ray", "--workers", "2"]
    return [sys.executable, "-c", DRIVER, *map(str, words)]


@pytest.fixture
def environment():
    """Return this environment without the address of a cluster that a test may have joined."""
    return {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}


def test_the_command_scores_a_folder(command, environment, tmp_path):
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if "rows scored" in line]
    assert lines[0].startswith("fewlier: 6000 rows scored, ")
    assert done.stdout == ""
    assert ds.dataset(tmp_path / "out").count_rows() == 6000


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stop_of_the_driver_leaves_nothing(number, code, command, environment, tmp_path):
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        said = ""
        for line in process.stderr:
            said += line
            if "scoring:" in line:
                break
        process.send_signal(number)
        _, rest = process.communicate(timeout=120)
    assert process.returncode == code, said + rest
    assert "no output was written." in rest
    assert sorted(path.name for path in tmp_path.iterdir()) == ["big"]
