"""The benchmark that computes OCSVM's rows from a kernel matrix in memory."""

import os
import subprocess
import sys

import pytest
from paper_tables import write_paper_table

from fewlier_bench.reproduction.paper_jobs import make_jobs, make_scope
from fewlier_bench.runs.execution import execute
from fewlier_bench.runs.measuring import Source
from fewlier_bench.runs.results import Store

COMPUTED = ("seconds", "machine", "date")  # what a row says of the way there


def in_memory(folder, results, splits):
    command = [
        "-m",
        "fewlier_bench.studies.kernel_in_memory",
        "--table",
        "Waveform",
        "--results",
        results,
    ]
    done = subprocess.run(
        [sys.executable, *command, "--splits", *map(str, splits)],
        env=os.environ | {"FEWLIER_DATA": str(folder)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return Store(results).read("paper")


def test_rows_are_those_of_the_reproduction_and_each_is_computed_once(tmp_path, monkeypatch):
    write_paper_table(tmp_path, "Waveform")  # its kernel takes several blocks of rows
    monkeypatch.setenv("FEWLIER_DATA", str(tmp_path))
    store = Store(tmp_path / "reproduce")
    jobs = make_jobs(make_scope("paper", methods=["OCSVM"]), [Source.find("Waveform")], store)
    execute([job for job in jobs if job.cells[0].split == 1], store, workers=1)
    expected = store.read("paper")
    assert len(expected) == 3
    found = in_memory(tmp_path, tmp_path / "memory", [1])
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        for name, value in vars(one).items():
            if name not in COMPUTED:
                same = pytest.approx(value, abs=1e-6) if isinstance(value, float) else value
                assert getattr(other, name) == same, name
        assert one.seconds > 0
    assert in_memory(tmp_path, tmp_path / "memory", [1]) == found
