import json
import re
from dataclasses import replace

import numpy as np
import pytest
from made_up_results import result, write_results
from paper_tables import write_paper_table
from processes import plain

from fewlier import AnomalyDetector, Made, Training
from fewlier_bench.cli.reproduce import RESULTS
from fewlier_bench.data import load_dataset
from fewlier_bench.methods import baselines
from fewlier_bench.reproduction import paper_jobs, reproduction_page
from fewlier_bench.reproduction.experiments import DESIGNS, PAPER, TIMES
from fewlier_bench.reproduction.paper_jobs import QUICK_TABLES
from fewlier_bench.reproduction.protocol import PAPER_PROTOCOL
from fewlier_bench.reproduction.published import published_auc
from fewlier_bench.runs import stacks
from fewlier_bench.runs.results import Store

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    for name in QUICK_TABLES:
        write_paper_table(folder, name)
    return folder


@pytest.fixture
def reproduce(bench, tables, tmp_path, monkeypatch):
    """Return a function that runs the command in this process, in an empty folder."""
    monkeypatch.setenv("FEWLIER_DATA", str(tables))
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: bench("reproduce", "--workers", 1, *arguments)


def beside(auc, dataset, method, k):
    """Return how an AUC and its difference to the paper's are shown."""
    difference = auc - published_auc(dataset, method, k).auc
    return f"{auc:.3f} {difference:+.3f}".replace("0.", ".")


def essence(rows):
    return {(r.dataset, r.method, r.k, r.split): (r.auc, r.value, r.reason) for r in rows}


@pytest.fixture
def small_fits(monkeypatch):
    """Let the paper's detectors, the default one and the paper's baselines fit at once."""
    protocol = replace(PAPER_PROTOCOL, lambdas=(0.0, 0.1, 10.0), hidden=(8,), max_epochs=20)
    protocol = replace(protocol, n_orderings=2, learning_rate=0.01, vae_hidden=(8,))
    default = {
        "density": Made(hidden=(4,), n_orderings=1),
        "training": Training(lambdas=(0, 10), max_epochs=2),
    }
    make = paper_jobs.make_scope
    small = lambda *args, **choice: replace(make(*args, **choice), protocol=protocol)  # noqa: E731
    monkeypatch.setattr(paper_jobs, "make_scope", small)
    detector = lambda **settings: AnomalyDetector(**default | settings)  # noqa: E731
    monkeypatch.setattr(stacks, "AnomalyDetector", detector)
    for name, baseline in list(baselines.BASELINES.items()):
        first = replace(baseline, grid=baseline.grid[:2])
        monkeypatch.setitem(baselines.BASELINES, name, first)


@pytest.mark.usefixtures("small_fits")
def test_the_quick_version_runs_all_methods_and_only_what_is_missing(reproduce, tmp_path):
    def quick():
        done = reproduce("--quick", "--results", "rows")
        assert done.code == 0, done.err
        return plain(done.out.decode())

    shown, store = quick(), Store(tmp_path / "rows")
    rows = store.read("paper")
    assert {(r.dataset, r.method, r.k, r.split) for r in rows} == {
        (name, method, 3, split)
        for name in QUICK_TABLES
        for method in DESIGNS[PAPER].methods
        for split in (0, 1)
    }
    assert len(rows) == 66
    assert not any(row.reason for row in rows)
    assert np.mean([row.auc for row in rows if row.method == "Proposed"]) > 0.8
    assert {row.method for row in store.read("lambdas")} >= {"lambda=0", "lambda=0.1"}
    stamps = [row.auc for row in rows if (row.dataset, row.method) == ("Stamps", "IF")]
    assert shown.startswith("Mean test AUC with 3 training anomalies, and the difference to the pa")
    assert beside(np.mean(stamps), "Stamps", "IF", 3) in shown.split("Stamps")[1]

    content = store.path("paper").read_bytes()
    assert quick() == shown
    assert store.path("paper").read_bytes() == content
    lines = content.splitlines(keepends=True)
    gone = [line for line in lines if re.match(rb"Parkinson,(MADE|RF|KNN),3,1,", line)]
    assert len(gone) == 3
    store.path("paper").write_bytes(b"".join(line for line in lines if line not in gone))
    quick()
    assert essence(store.read("paper")) == essence(rows)
    assert len(store.read("paper")) == 66


def test_it_shows_means_beside_the_papers_and_says_which_k_a_table_is_too_small_for(reproduce):
    tables = ("--tables", "Parkinson,Stamps")
    done = reproduce(*tables, "--methods", "KNN", "--anomalies", 1, "--anomalies", 5, "--splits", 2)
    assert done.code == 0
    assert "note: k = 5 is left out where anomalies are too few: Parkinson." in done.err
    shown = plain(done.out.decode())
    rows = Store(RESULTS).read("paper")
    parkinson, stamps, stamps_5 = (
        beside(np.mean([r.auc for r in rows if (r.dataset, r.k) == (name, k)]), name, "KNN", k)
        for name, k in (("Parkinson", 1), ("Stamps", 1), ("Stamps", 5))
    )
    title = "Mean test AUC with {}, and the difference to the paper: KNN"
    first, second = shown.split(title.format("5 training anomalies"))
    assert first.startswith(
        f"{title.format('1 training anomaly')} Parkinson {parkinson} Stamps {stamps} average "
    )
    assert second.strip() == f"Stamps {stamps_5} average {stamps_5}"


def test_json_has_the_rows_and_the_quick_version_leaves_nothing(reproduce, tmp_path):
    done = reproduce("--quick", "--methods", "LOF", "--methods", "KNN", "--json")
    rows = json.loads(done.out)
    assert len(rows) == 3 * 2 * 2
    assert {row["method"] for row in rows} == {"LOF", "KNN"}
    assert all(0 <= row["auc"] <= 1 and len(row["sha256"]) == 64 for row in rows)
    assert list(tmp_path.iterdir()) == []


def test_a_method_that_fails_is_reported_and_tried_again_when_asked(reproduce, monkeypatch):
    def fail(*_, **__):
        raise MemoryError("too many neighbours")

    whole = baselines.BASELINES["LOF"]
    monkeypatch.setitem(baselines.BASELINES, "LOF", replace(whole, make=fail))
    arguments = ("--methods", "LOF,KNN", "--tables", "Stamps", "--anomalies", 3, "--splits", 2)
    done = reproduce(*arguments)
    assert done.code == 0
    expected = "2 of 4 rows failed; the first, LOF on Stamps: MemoryError: too many neighbours"
    assert expected in done.err
    rows = Store(RESULTS).read("paper")
    assert [r.reason for r in rows if r.method == "LOF"] == ["MemoryError: too many neighbours"] * 2
    assert re.search(r"Stamps +– +[.1]", done.out.decode())
    assert "–: LOF on Stamps: MemoryError: too many neighbours." in plain(done.out.decode())
    monkeypatch.setitem(baselines.BASELINES, "LOF", whole)
    assert "2 of 4 rows failed" in reproduce(*arguments).err
    again = reproduce(*arguments, "--retry")
    assert "failed" not in again.err
    assert len(Store(RESULTS).read("paper")) == 6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tables", "Pima"], "Dataset Pima must be in $FEWLIER_DATA"),
        (["--tables", "Pimma"], "Did you mean Pima"),
        (["--methods", "PCA"], "A method must be one of LOF"),
        (["--anomalies", 2], "must be one of 1, 3, 5"),
        (["--quick", "--times"], "These options exclude each other: --quick, --times"),
        (["--times", "--device", "cuda"], "--times runs in one process on the CPU"),
        (
            ["--times", "--tables", "Stamps"],
            "Run first: fewlier-bench reproduce --methods Proposed",
        ),
        (
            ["--page", "page.md", "--tables", "Stamps", "--json"],
            "--page runs nothing, so it takes only --results; got --tables, --workers, "
            "--json. Run without --page first.",
        ),
    ],
)
def test_what_cannot_be_run_is_reported_before_anything_is(arguments, message, reproduce, tmp_path):
    done = reproduce(*arguments)
    assert (done.code, done.out) == (2, b"")
    assert message in done.err
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def page(tmp_path):
    """Return a page with one generated part."""
    path = tmp_path / "page.md"
    path.write_text("<!-- begin generated: averages -->\nold\n<!-- end generated -->\n", "utf-8")
    return path


def test_the_page_comes_from_results_alone(bench, page, tmp_path, monkeypatch):
    monkeypatch.setenv("FEWLIER_DATA", str(tmp_path / "none"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(reproduction_page, "make_figures", lambda _: {})  # they take seconds
    write_results(RESULTS, n_splits=2)
    before = {path: path.read_bytes() for path in RESULTS.glob("*.csv")}
    done = bench("reproduce", "--page", page)
    assert (done.code, done.out) == (0, b"")
    assert done.err == f"fewlier: {page} shows the results of {RESULTS}."
    assert "| Proposed | 0." in page.read_text("utf-8")
    assert {path: path.read_bytes() for path in RESULTS.glob("*.csv")} == before
    assert (RESULTS / "tables" / "averages.csv").exists()


def test_results_that_are_not_there_leave_the_page_as_it_is(bench, page, tmp_path):
    before = page.read_bytes()
    done = bench("reproduce", "--page", page, "--results", tmp_path / "other")
    assert (done.code, done.out) == (2, b"")
    assert "Results must be a folder with paper.csv" in done.err
    assert page.read_bytes() == before
    assert list(tmp_path.iterdir()) == [page]


@pytest.mark.parametrize("option", ["--quick", "--json", "--times", "--retry"])
def test_nothing_is_run_for_a_page(bench, option, page):
    done = bench("reproduce", "--page", page, option)
    assert done.code == 2
    assert f"takes only --results; got {option}." in done.err


def test_times_are_shown_as_seconds(reproduce):
    row = result("Parkinson", "Proposed", seconds=12.5, sha256=load_dataset("Parkinson").sha256)
    for experiment in (PAPER, TIMES):
        Store(RESULTS).append(experiment, [row])
    done = reproduce("--times", "--tables", "Parkinson")
    assert done.code == 0
    assert plain(done.out.decode()).endswith("seconds Parkinson 12.50 (0.02)")
