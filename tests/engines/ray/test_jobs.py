"""Jobs of the benchmark on a cluster: the rows of one process, and a reason where one is killed."""

import json
import os
import subprocess
import sys
import time
from functools import partial

import numpy as np
import pytest
import ray
from computing import die, fail, measure, nap
from paper_tables import write_paper_table

from fewlier_bench.reproduction.paper_jobs import QUICK_TABLES
from fewlier_bench.runs.execution import KILLED, execute
from fewlier_bench.runs.jobs import Job
from fewlier_bench.runs.on_ray import _reason, on_ray
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


class Lost:
    """What a node without the code cannot read."""

    def __reduce__(self):
        """Fail where it arrives."""
        return time.strptime, ("", "not on this node")


def test_a_job_that_does_not_arrive_says_so_and_not_that_it_was_killed(tmp_path):
    lost, store = job("A", partial(measure, Lost())), Store(tmp_path)
    execute([lost], store, workers=1, engine=partial(on_ray, address=None))
    (reason,) = {row.reason for row in store.read("paper")}
    assert reason.startswith("Ray: ")
    assert "not on this node" in reason
    assert KILLED not in {_reason(ray.exceptions.RuntimeEnvSetupError("no")), reason}


def test_no_more_jobs_run_at_once_than_there_are_workers(tmp_path):
    started = time.monotonic()
    jobs = [job(name, partial(nap, folder=str(tmp_path))) for name in "ABCD"]
    assert len([*on_ray(jobs, None, workers=2)]) == 4
    assert max(int(path.read_text()) for path in tmp_path.glob("*.seen")) <= 2
    assert time.monotonic() - started < 120


def command(words, cluster, *, engine, env):
    """Run a command of the benchmark, here or on the cluster, and return its rows."""
    where = ["--engine", "ray", "--address", cluster.address] if engine else []
    done = subprocess.run(
        [sys.executable, "-m", "fewlier_bench", *words, *where, "--workers", "2", "--json"],
        capture_output=True,
        text=True,
        check=False,
        env=env,
    )
    assert done.returncode == 0, done.stderr
    return [(r["dataset"], r["method"], r["split"], r["auc"]) for r in json.loads(done.stdout)]


def test_the_commands_give_the_rows_that_they_give_on_one_machine(cluster, tmp_path):
    rng, tables = np.random.default_rng(0), tmp_path / "made"
    tables.mkdir()
    for name in ("first", "second"):
        y = (np.arange(200) < 30).astype(np.int8)
        np.savez(tables / f"{name}.npz", X=rng.normal(size=(200, 3)) + 3 * y[:, None], y=y)
    words = ["compare", "--data", tables, "--methods", "LOF,kNN distance", "--anomalies", "3"]
    both_ways(cluster, tmp_path, [*words, "--splits", "2"], n_rows=8)
    paper = tmp_path / "paper"
    paper.mkdir()
    for name in QUICK_TABLES:
        write_paper_table(paper, name)
    words = ["reproduce", "--methods", "LOF,KNN", "--anomalies", "3", "--splits", "2"]
    both_ways(cluster, tmp_path, [*words, "--tables", ",".join(QUICK_TABLES)], data=paper)


def both_ways(cluster, folder, words, *, data=None, n_rows=None):
    """Check that a command gives the same rows with and without the cluster."""
    env = os.environ | ({"FEWLIER_DATA": str(data)} if data else {})
    here, there = (
        command(
            [*map(str, words), "--results", str(folder / f"{words[0]}-{engine}")],
            cluster,
            engine=engine,
            env=env,
        )
        for engine in (False, True)
    )
    assert sorted(there) == sorted(here)
    assert len(here) == (n_rows or len(here)) > 0
