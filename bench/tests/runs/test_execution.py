import logging
from dataclasses import replace
from datetime import UTC, datetime
from multiprocessing import active_children

import pytest
from computing import die, fail, measure, threads

from fewlier import UserError
from fewlier_bench.runs.execution import KILLED, execute, versions
from fewlier_bench.runs.jobs import Job, describe_machine, n_cores
from fewlier_bench.runs.results import Cell, Store

BOTH = pytest.mark.parametrize("workers", [1, 2])


def job(method, compute=measure, splits=2, cost=1.0, experiment="paper"):
    cells = [Cell(experiment, "Pima", method, 3, split) for split in range(splits)]
    return Job({cell: 100 + cell.split for cell in cells}, "abc", compute, cost)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path)


@BOTH
def test_every_cell_gets_a_row_with_where_it_came_from(workers, store):
    shares = []
    execute([job("A"), job("B", splits=1)], store, workers=workers, on_progress=shares.append)
    rows = sorted(store.read("paper"), key=lambda row: (row.method, row.split))
    assert [(r.method, r.split, r.seed, r.auc) for r in rows] == [
        ("A", 0, 100, 0.0),
        ("A", 1, 101, 0.1),
        ("B", 0, 100, 0.0),
    ]
    first = rows[0]
    assert (first.parameter, first.value, first.machine) == ("n", "A0 A1", "here")
    assert (first.sha256, first.versions, first.reason) == ("abc", versions(), "")
    assert abs(datetime.fromisoformat(first.date).replace(tzinfo=UTC) - datetime.now(UTC)).days < 2
    assert shares[-1] == 1
    assert len(shares) == 2


def test_versions_name_what_computes():
    names = [part.split()[0] for part in versions().split(", ")]
    assert names == ["fewlier", "python", "torch", "numpy", "scikit-learn"]


def test_a_second_run_computes_nothing_and_a_stopped_one_goes_on(store):
    jobs = [job("A"), job("A", experiment="lambdas"), job("B")]
    execute(jobs, store, workers=1)
    content = store.path("paper").read_bytes()
    execute([replace(one, compute=fail) for one in jobs], store, workers=1)
    assert store.path("paper").read_bytes() == content
    kept = content.splitlines(keepends=True)
    store.path("paper").write_bytes(b"".join(line for line in kept if b"A,3,1" not in line))
    execute(jobs, store, workers=1)
    assert len(store.read("paper")) == 4
    assert store.read("paper")[-1].value == "A1"  # only what was missing
    assert len(store.read("lambdas")) == 2


def test_the_longest_jobs_start_first(store):
    execute([job("A"), job("B", cost=9.0), job("C", cost=3.0)], store, workers=1)
    assert [row.method for row in store.read("paper")] == ["B", "B", "C", "C", "A", "A"]


@BOTH
def test_a_failure_is_rows_with_its_reason_and_is_tried_again_only_if_asked(workers, store, caplog):
    with caplog.at_level(logging.ERROR):
        execute([job("A", fail), job("B")], store, workers=workers)
    rows = {(row.method, row.split): row for row in store.read("paper")}
    assert len(rows) == 4
    assert {rows["A", split].reason for split in (0, 1)} == {"RuntimeError: no answer"}
    assert rows["A", 0].auc is None
    assert rows["A", 1].seed == 101
    assert rows["A", 0].machine == describe_machine()
    assert rows["B", 1].reason == ""
    if workers == 1:  # else it is on the standard error of the process that computed
        assert "RuntimeError: no answer" in caplog.text
        assert "Traceback" in caplog.text
    execute([job("A"), job("B", fail)], store, workers=workers)
    assert len(store.read("paper")) == 4
    execute([job("A"), job("B", fail)], store, workers=workers, retry=True)
    assert [row.reason for row in store.read("paper")[4:]] == ["", ""]
    assert len(store.read("paper")) == 6


def test_a_process_that_is_killed_fails_its_own_job_alone(store):
    execute([job("A", die), *(job(name) for name in "BCD")], store, workers=2)
    reasons = {(row.method, row.split): row.reason for row in store.read("paper")}
    assert len(reasons) == 8
    assert {cell for cell, reason in reasons.items() if reason} == {("A", 0), ("A", 1)}
    assert reasons["A", 0] == KILLED


def test_workers_share_the_cores(store, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    execute([job("A", threads), job("B", threads)], store, workers=2)
    assert {row.value for row in store.read("paper")} == {str(max(1, n_cores() // 2))}


@BOTH
def test_a_stop_keeps_the_rows_so_far_and_leaves_no_process(workers, store):
    def stop(_):
        raise KeyboardInterrupt

    before = set(active_children())
    with pytest.raises(KeyboardInterrupt):
        execute([job(name) for name in "ABC"], store, workers=workers, on_progress=stop)
    assert len(store.read("paper")) == 2
    assert set(active_children()) == before


def test_rows_of_a_table_with_other_values_are_not_mixed_in(store):
    execute([job("A")], store, workers=1)
    other = replace(job("A"), sha256="def")
    with pytest.raises(UserError, match=r"must have rows of the same tables; the rows of Pima"):
        execute([other], store, workers=1)
