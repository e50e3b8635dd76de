import json
import os

import numpy as np
import pytest
from commands import BENCH
from processes import plain, run

from fewlier_bench.cli.compare import RESULTS
from fewlier_bench.methods.peers import PEERS, Peer
from fewlier_bench.runs.results import Store

pytestmark = pytest.mark.slow

METHODS = "logistic regression,kNN distance,LOF"


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data") / "made"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for name, n_anomalies in (("first", 30), ("second", 30), ("small", 7)):
        X = rng.normal(size=(200, 3))
        y = (np.arange(200) < n_anomalies).astype(np.int8)
        X[y == 1] += 3
        np.savez(folder / f"{name}.npz", X=X, y=y)
    return folder


@pytest.fixture
def compare(bench, tables, tmp_path, monkeypatch):
    """Return a function that runs the command in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return lambda *rest: bench("compare", "--data", tables, "--workers", 1, *rest)


def test_a_comparison_runs_on_processes_and_only_what_is_missing(tables, compare, tmp_path):
    options = ("--methods", METHODS, "--anomalies", "3", "--splits", "2", "--results", "rows")
    command = ("compare", "--data", tables, "--workers", "2", *options)
    environment = os.environ | {"COLUMNS": "200"}
    done = run(*command, command=BENCH, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    shown, store = plain(done.stdout), Store(tmp_path / "rows" / "made")
    rows = store.read("clean")
    assert {(r.dataset, r.method, r.k, r.split) for r in rows} == {
        (name, method, 3, split)
        for name in ("first", "second", "small")
        for method in METHODS.split(",")
        for split in (0, 1)
    }
    assert {r.reason for r in rows if r.dataset != "small"} == {""}
    assert {r.reason for r in rows if r.dataset == "small"} == {
        "left out: fewer than 3 test anomalies"
    }
    assert shown.startswith("Averages with 6 labelled anomalies (k = 3); all other training rows")
    assert "Averages are over 2 tables: first, second." in shown
    assert "Left out: small: fewer than 3 test anomalies." in shown

    lines = store.path("clean").read_bytes().splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith(b"first,LOF,3,1,")]
    assert len(kept) == len(lines) - 1
    store.path("clean").write_bytes(b"".join(kept))
    assert plain(compare(*options).out.decode()) == shown
    *before, again = store.path("clean").read_bytes().splitlines(keepends=True)
    assert before == kept
    assert again.startswith(b"first,LOF,3,1,")


def test_json_has_the_rows_and_they_are_in_a_folder_of_the_collection(compare):
    done = compare("--methods", "LOF", "--anomalies", 0, "--splits", 1, "--json")
    assert done.code == 0
    rows = json.loads(done.out)
    assert {(row["dataset"], row["k"]) for row in rows} == {
        ("first", 0),
        ("second", 0),
        ("small", 0),
    }
    assert all(0.5 < row["auc"] <= 1 for row in rows)
    assert len(Store(RESULTS / "made").read("clean")) == 3


@pytest.mark.parametrize("experiment", ["contaminated", "unseen"])
def test_other_experiments_have_files_of_their_own(experiment, compare):
    choice = ("--methods", "kNN distance", "--anomalies", 3, "--splits", 1, "--tables", "first")
    done = compare("--experiment", experiment, *choice)
    assert done.code == 0
    assert "failed" not in done.err
    assert Store(RESULTS / "made").path(experiment).exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--methods", "PCA"], "A method must be one of fewlier, fewlier best, CatBoost"),
        (["--anomalies", 2], "must be one of 0, 1, 3, 5, 10, 25 in the experiment 'clean'; got 2"),
        (["--tables", "third", "--methods", "LOF"], "got no third.npz. There are: first, second"),
        (["--page", "page.md"], "--page runs nothing, so it takes only --results; got"),
    ],
)
def test_what_cannot_be_run_is_reported_before_anything_is(arguments, message, compare, tmp_path):
    done = compare(*arguments)
    assert (done.code, done.out) == (2, b"")
    assert message in done.err
    assert list(tmp_path.iterdir()) == []


def test_a_method_without_its_package_is_reported_before_anything_runs(
    compare, tmp_path, monkeypatch
):
    absent = Peer("CatBoost", True, PEERS["CatBoost"].fit_score, "catboost_that_is_not_there")
    monkeypatch.setitem(PEERS, "CatBoost", absent)
    done = compare("--methods", "CatBoost,LOF")
    assert (done.code, done.out) == (2, b"")
    assert "got CatBoost without catboost_that_is_not_there" in done.err
    assert list(tmp_path.iterdir()) == []


def test_the_page_comes_from_results_alone(bench, compare, tmp_path):
    compare("--methods", "LOF,kNN distance", "--anomalies", 1, "--splits", 2)
    page = tmp_path / "page.md"
    page.write_text("<!-- begin generated: made/clean_k1 -->\n<!-- end generated -->\n", "utf-8")
    done = bench("compare", "--page", page)
    assert (done.code, done.out) == (0, b"")
    assert done.err == f"fewlier: {page} shows the results of {RESULTS}."
    assert "| kNN distance | " in page.read_text("utf-8")
