"""Jobs of the benchmark on a cluster: the rows of one process, and a reason where one is killed."""

from functools import partial

import pytest
from computing import die, fail, measure

from fewlier_bench.runs.execution import KILLED, execute
from fewlier_bench.runs.jobs import Job
from fewlier_bench.runs.on_ray import on_ray
from fewlier_bench.runs.results import Cell, Store

pytestmark = pytest.mark.usefixtures("cluster")


def job(method, compute=measure):
    cells = [Cell("paper", "Pima", method, 3, split) for split in range(2)]
    return Job({cell: 100 + cell.split for cell in cells}, "abc", compute, 1.0)


def test_jobs_leave_the_rows_that_one_process_leaves(tmp_path, monkeypatch):
    monkeypatch.setattr("fewlier_bench.runs.on_ray.MAX_RETRIES", 0)
    jobs, found = [job("A"), job("B", fail), job("C")], []
    for name, engine in (("here", None), ("there", partial(on_ray, address=None))):
        store, shares = Store(tmp_path / name), []
        execute(jobs, store, workers=1, engine=engine, on_progress=shares.append)
        found.append(sorted(map(essence, store.read("paper"))))
        assert shares[-1] == 1
    assert found[0] == found[1]
    store = Store(tmp_path / "killed")
    execute([job("A"), job("B", die)], store, workers=1, engine=partial(on_ray, address=None))
    reasons = {row.method: row.reason for row in store.read("paper")}
    assert reasons == {"A": "", "B": KILLED}


def essence(row):
    """Return what a row says but for the time and the threads that it took."""
    return (row.method, row.split, row.seed, row.auc, row.reason, row.sha256)
