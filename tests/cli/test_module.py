"""`python -m fewlier` is `fewlier`."""

import subprocess
import sys

import pytest
from processes import run

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("arguments", [["--version"], ["score"], ["--help"], ["fit", "no.csv"]])
def test_the_package_runs_as_the_command_does(arguments, tmp_path):
    command = [sys.executable, "-m", "fewlier", *arguments]
    found = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    expected = run(*arguments, cwd=tmp_path)
    assert (found.returncode, found.stdout, found.stderr) == (
        expected.returncode,
        expected.stdout,
        expected.stderr,
    )
