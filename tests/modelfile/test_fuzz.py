"""A short run of the fuzzer; `make fuzz` runs it for longer."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

FUZZER = Path(__file__).parents[1] / "fuzz" / "fuzz_model_file.py"
N_RUNS = 500


@pytest.mark.slow
@pytest.mark.long
def test_no_changed_model_file_raises_anything_but_a_format_error(tmp_path):
    pytest.importorskip("atheris", reason="atheris has wheels for Linux on x86-64 only")
    fuzz = [sys.executable, FUZZER, tmp_path / "corpus", f"-runs={N_RUNS}", "-seed=1"]
    done = subprocess.run(fuzz, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"number_of_executed_units: {N_RUNS}" in done.stderr
    # More than one input per mode: coverage guides it.
    assert int(re.findall(r"corp: (\d+)", done.stderr)[-1]) > 20
