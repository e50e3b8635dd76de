"""The study that computes the rows of OCSVM from a kernel matrix in memory."""

import pytest
from paper_tables import write_paper_table

from fewlier_bench.reproduction.paper_jobs import make_jobs, make_scope
from fewlier_bench.runs.execution import execute
from fewlier_bench.runs.measuring import Source
from fewlier_bench.runs.results import Store
from fewlier_bench.studies import kernel_in_memory

pytestmark = pytest.mark.slow

COMPUTED = ("seconds", "machine", "date")  # what a row says of its computation


def test_rows_are_those_of_the_reproduction_and_each_is_computed_once(tmp_path, monkeypatch):
    write_paper_table(tmp_path, "Stamps")
    monkeypatch.setenv("FEWLIER_DATA", str(tmp_path))
    monkeypatch.setattr(kernel_in_memory, "BLOCK", 50)  # so that there are several blocks
    store = Store(tmp_path / "reproduce")
    jobs = make_jobs(make_scope("paper", methods=["OCSVM"]), [Source.find("Stamps")], store)
    execute([job for job in jobs if job.cells[0].split == 1], store, workers=1)
    expected = store.read("paper")
    assert len(expected) == 3

    def in_memory():
        options = ["--table", "Stamps", "--results", str(tmp_path / "memory"), "--splits", "1"]
        kernel_in_memory.main(options)
        return Store(tmp_path / "memory").read("paper")

    found = in_memory()
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        for name, value in vars(one).items():
            if name not in COMPUTED:
                same = pytest.approx(value, abs=1e-6) if isinstance(value, float) else value
                assert getattr(other, name) == same, name
        assert one.seconds > 0
    assert in_memory() == found
