"""The few-label comparison: its jobs and rows, its tables, its page."""

import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_up_results import result
from sklearn.metrics import average_precision_score, roc_auc_score

from fewlier import Made, Training
from fewlier.errors import UserError
from fewlier.table import Table
from fewlier_bench.comparison import peer_jobs
from fewlier_bench.comparison.collection import collection_name, find_tables
from fewlier_bench.comparison.comparison_figure import (
    describe_seconds,
    draw_accuracy_by_seconds,
)
from fewlier_bench.comparison.comparison_page import write_comparison_page
from fewlier_bench.comparison.comparison_tables import detail_tables, short_tables, summary_tables
from fewlier_bench.comparison.overview_table import overview_table
from fewlier_bench.comparison.peer_jobs import make_jobs, make_scope, measure_peer
from fewlier_bench.data.few_labels import draw_clean, make_few_label_split
from fewlier_bench.methods.peers import PEERS, Peer, score_with
from fewlier_bench.pages.printed import Value
from fewlier_bench.pages.rendering import to_markdown
from fewlier_bench.runs.execution import execute, rows_of
from fewlier_bench.runs.results import Store
from fewlier_bench.runs.stacks import SplitStack, given_rows

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "evidence" / "ACCURACY.md"
SHORT = ROOT / "docs" / "EVIDENCE.md"
RESULTS = ROOT / "results" / "comparison"
TINY = {
    "density": Made(hidden=(8,), n_orderings=2),
    "training": Training(lambdas=(0, 10), max_epochs=5),
}
CHEAP = ["logistic regression", "kNN distance"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder of two tables: one with many anomalies, one with few."""
    folder = tmp_path_factory.mktemp("made")
    rng = np.random.default_rng(0)
    for name, n_anomalies in (("many", 40), ("few", 8)):
        X = rng.normal(size=(300, 3))
        y = (np.arange(300) < n_anomalies).astype(np.int64)
        X[y == 1] += 2.5 * np.eye(3)[np.arange(n_anomalies) % 3]
        np.savez(folder / f"{name}.npz", X=X, y=y)
    return folder


@pytest.fixture
def tiny(monkeypatch):
    """Let fewlier's detectors fit at once."""
    settings = {"fewlier": TINY, "fewlier best": TINY | {"selection": "best"}}
    monkeypatch.setattr(peer_jobs, "DETECTORS", settings)


def rows_by_cell(rows):
    return {(r.dataset, r.method, r.k, r.split): r for r in rows}


def run(store, folder, experiment="clean", names=(), retry=False, **choice):
    jobs = make_jobs(make_scope(experiment, device="cpu", **choice), find_tables(folder, names))
    execute(jobs, store, workers=1, retry=retry)
    return rows_by_cell(rows_of(experiment, jobs, store))


# Tables.


def test_tables_come_from_a_folder_or_are_the_papers(folder):
    few, many = find_tables(folder)
    assert (few.name, few.n_rows, few.n_columns) == ("few", 300, 3)
    assert len({few.sha256, many.sha256}) == 2
    assert [table.name for table in find_tables(folder, ["many"])] == ["many"]
    assert collection_name(folder) == folder.name
    assert collection_name(None) == "paper"


@pytest.mark.usefixtures("data")
def test_the_papers_tables_are_not_scaled():
    (table,) = find_tables(None, ["stamps"])
    assert (table.name, table.n_rows, table.n_columns) == ("Stamps", 325, 9)
    X, y = table.load()
    assert X.max() > 1
    assert y.sum() == 16


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": np.zeros((3, 1))}, "must have arrays of numbers X and y"),
        ({"X": np.array([["a"]]), "y": [0]}, "must have arrays of numbers X and y"),
        ({"X": np.zeros(3), "y": np.zeros(3)}, r"must have X of shape \(n, d\)"),
        ({"X": np.zeros((3, 1)), "y": [0, 1, 2]}, "1 for an anomaly and 0"),
    ],
)
def test_files_that_are_no_labelled_tables_are_refused(arrays, message, tmp_path):
    np.savez(tmp_path / "bad.npz", **arrays)
    with pytest.raises(UserError, match=message):
        find_tables(tmp_path)


def test_folders_without_the_table_are_refused(folder, tmp_path):
    with pytest.raises(UserError, match=r"tables as \.npz files.*got none"):
        find_tables(tmp_path)
    with pytest.raises(UserError, match=r"got no other\.npz\. There are: few, many"):
        find_tables(folder, ["many", "other"])


# Jobs and rows.


def test_there_is_a_cell_for_every_table_method_k_and_split(folder):
    scope = make_scope("clean", methods=["fewlier", *CHEAP])
    jobs = make_jobs(scope, find_tables(folder))
    counts = Counter((cell.method, cell.k) for job in jobs for cell in job.cells)
    n_splits = {0: 5, 1: 5, 3: 10, 5: 5, 10: 5, 25: 5}
    for method in ("fewlier", *CHEAP):
        for k, n in n_splits.items():
            needs_labels = method == "logistic regression"
            assert counts[method, k] == (0 if needs_labels and k == 0 else 2 * n)
    stacks = [job for job in jobs if job.cells[0].method == "fewlier"]
    assert len(stacks) == 2 * len(n_splits)
    assert all(job.seeds[cell] == cell.split for job in jobs for cell in job.cells)


def test_unseen_kinds_have_a_split_for_every_draw_and_cluster(folder):
    jobs = make_jobs(make_scope("unseen", methods=["LOF"], most_draws=2), find_tables(folder))
    found = [(cell.k, cell.split, seed) for job in jobs for cell, seed in job.seeds.items()]
    assert sorted(found) == sorted([(3, s, s // 3) for s in range(6)] * 2)


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"methods": ["PCA"]}, "A method must be one of fewlier, .*got PCA"),
        ({"anomalies": [2]}, "must be one of 0, 1, 3, 5, 10, 25 in the experiment 'clean'; got 2"),
        ({"most_draws": 11}, "The number of splits must be one of .* got 11"),
    ],
)
def test_what_the_experiment_does_not_have_is_refused(choice, message):
    with pytest.raises(UserError, match=message):
        make_scope("clean", **choice)
    with pytest.raises(UserError, match="one of 3, 10 in the experiment 'contaminated'; got 5"):
        make_scope("contaminated", anomalies=[5])


@pytest.mark.parametrize("experiment", ["clean", "contaminated", "unseen"])
def test_peers_are_fitted_on_the_rows_given_and_unlabelled_ones_count_as_normal(
    experiment, folder, tmp_path
):
    rows = run(Store(tmp_path), folder, experiment, ["many"], methods=CHEAP, most_draws=1)
    (table,) = find_tables(folder, ["many"])
    X, y = table.load()
    assert any(row.auc is not None for row in rows.values())
    for (_, method, k, number), row in rows.items():
        split = make_few_label_split(experiment, X, y, k, number)
        if isinstance(split, str):
            assert row.reason == f"left out: {split}"
            continue
        given = X[split.given], (split.labels == 1).astype(np.int8)
        scores = score_with(PEERS[method], given, X[split.test], split.number)
        assert row.auc == pytest.approx(roc_auc_score(y[split.test], scores), abs=1e-6)
        expected = average_precision_score(y[split.test], scores)
        assert row.average_precision == pytest.approx(expected, abs=1e-6)


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("method", ["fewlier", "fewlier best"])
def test_every_split_of_a_stack_is_the_detector_on_its_rows(method, folder, tmp_path):
    choice = {"methods": [method], "anomalies": [0, 3], "most_draws": 2}
    rows = run(Store(tmp_path), folder, names=["many"], **choice)
    (table,) = find_tables(folder, ["many"])
    X, y = table.load()
    settings = peer_jobs.DETECTORS[method] | {"device": "cpu"}
    for (_, _, k, number), row in rows.items():
        split = draw_clean(y, 2 * k, number)
        stack = SplitStack.of_table(Table.of(X), settings)
        ((model, _),) = stack.fit([given_rows(split)])
        scores = model.score(model.encode(Table.of(X[split.test])))
        assert row.auc == pytest.approx(roc_auc_score(y[split.test], scores), abs=1e-6)
        assert row.seconds > 0
    assert len(rows) == 4


@pytest.mark.usefixtures("tiny")
def test_splits_whose_rows_have_other_levels_are_fitted_too():
    rng = np.random.default_rng(0)
    stars = rng.integers(0, 5, 300).astype(float)
    stars[280:290] = np.arange(10, 20)  # each in one anomaly, which few splits give
    table = Table.of(np.column_stack([stars, rng.normal(size=300)]))
    y = np.repeat([0, 1], [280, 20]).astype(np.int8)
    splits = [draw_clean(y, 6, number) for number in range(3)]
    settings = peer_jobs.DETECTORS["fewlier"] | {"device": "cpu"}
    stack = SplitStack.of_table(table, settings)
    together = stack.fit([given_rows(split) for split in splits])
    assert len({model.encoder.schema for model, _ in together}) > 1
    for (model, _), split in zip(together, splits, strict=True):
        ((alone, _),) = stack.fit([given_rows(split)])
        expected = stack.score(alone, split.test)
        found = stack.score(model, split.test)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("tiny")
def test_detectors_know_which_rows_have_no_label(folder, tmp_path, monkeypatch):
    given = []

    def note(split):
        given.append(split)
        return given_rows(split)

    monkeypatch.setattr(peer_jobs, "given_rows", note)
    choice = {"methods": ["fewlier"], "anomalies": [3], "most_draws": 1}
    run(Store(tmp_path), folder, "contaminated", ["many"], **choice)
    (split,) = given
    assert set(split.labels) == {-1, 1}


def test_cells_left_out_are_rows_with_a_reason_and_are_not_tried_again(folder, tmp_path):
    store, choice = Store(tmp_path), {"methods": CHEAP, "anomalies": [3], "most_draws": 2}
    rows = run(store, folder, **choice)
    few = [row for row in rows.values() if row.dataset == "few"]
    assert [row.reason for row in few] == ["left out: fewer than 3 test anomalies"] * 4
    assert not any(row.has_failed for row in rows.values())
    content = store.path("clean").read_bytes()
    assert run(store, folder, retry=True, **choice) == rows
    assert store.path("clean").read_bytes() == content


def test_a_peer_that_fails_is_a_row_that_can_be_tried_again(folder, tmp_path, monkeypatch):
    def fail(*_):
        raise ValueError("no such luck")

    store, choice = Store(tmp_path), {"methods": ["LOF"], "anomalies": [1], "most_draws": 1}
    with monkeypatch.context() as patch:
        patch.setitem(PEERS, "LOF", Peer("LOF", False, fail))
        (row,) = run(store, folder, names=["many"], **choice).values()
    assert row.reason == "ValueError: no such luck"
    assert row.has_failed
    (row,) = run(store, folder, names=["many"], retry=True, **choice).values()
    assert row.auc > 0.5
    assert len(store.read("clean")) == 2


def test_rows_name_the_versions_of_a_peers_package(folder):
    (table,) = find_tables(folder, ["many"])
    jobs = make_jobs(make_scope("clean", methods=["LOF"], anomalies=[1]), [table])
    assert {job.packages for job in jobs} == {()}
    assert all(job.compute.func is measure_peer for job in jobs)
    if PEERS["XGBoost"].is_installed:
        assert PEERS["XGBoost"].packages[0] in ("xgboost", "xgboost-cpu")


# Tables and the page.


def made_up(k=3, n_splits=5):
    """Return rows in which fewlier is above LOF on two tables, and not everywhere complete."""
    rng = np.random.default_rng(0)
    rows = []
    for dataset, gain in (("a", 0.1), ("b", 0.0), ("c", 0.05)):
        for split in range(n_splits):
            noise = rng.normal(0, 0.01, 3)
            aucs = {"fewlier": 0.8 + gain, "LOF": 0.8, "kNN distance": 0.7}
            for (method, auc), error in zip(aucs.items(), noise, strict=True):
                if (dataset, method) != ("c", "kNN distance"):
                    rows.append(result(dataset, method, k, split, auc + error))
    reason = {"auc": None, "average_precision": None, "reason": "left out: fewer than 3"}
    return [*rows, result("d", "LOF", k, 0, **reason)]


def test_averages_are_over_the_tables_of_fewlier_and_outcomes_over_those_of_both():
    (table,) = summary_tables(made_up(), "clean")
    assert table.name == "clean_k3"
    assert table.rows == ("fewlier", "kNN distance", "LOF")
    columns = {column.heading: [value.ours for value in column.values] for column in table.columns}
    rows = [row for row in made_up() if row.auc is not None]
    for method, average in zip(table.rows, columns["AUC"], strict=True):
        means = [
            np.mean([row.auc for row in rows if (row.dataset, row.method) == (dataset, method)])
            for dataset in ("a", "b", "c")
            if method != "kNN distance"
        ]
        assert average == (pytest.approx(np.mean(means)) if means else None)
    assert columns["AP"] == columns["AUC"]  # made up to be the same
    assert columns["wins"] == [None, 2, 2]
    assert columns["ties"] == [None, 0, 1]
    assert columns["losses"] == [None, 0, 0]
    assert columns["mean rank"][1] is None
    notes = " ".join(table.notes)
    assert "Averages are over 3 tables: a, b, c." in notes
    assert "kNN distance on c: no result" in notes
    assert "Left out: d: fewer than 3." in notes


def test_without_fewlier_nothing_is_won():
    (table,) = summary_tables([r for r in made_up() if r.method != "fewlier"], "clean")
    assert [column.heading for column in table.columns] == ["AUC", "AP", "mean rank"]
    assert "Averages are over 2 tables: a, b." in table.notes


def test_short_tables_have_the_best_peers_of_each_k_over_all_tables_and_over_halves():
    rows = [*made_up(0), *made_up(3), *made_up(25)]
    tables = {table.name: table for table in short_tables(rows)}
    assert list(tables) == ["short", "short_odd", "short_even"]
    assert tables["short"].rows == ("fewlier", "LOF")  # kNN lacks a table
    pools = ("no labels", "6 labels", "50 labels")
    headings = [f"{measure}, {pool}" for pool in pools for measure in ("AUC", "AP")]
    assert [column.heading for column in tables["short"].columns] == headings
    odd, even = (tables[f"short_{half}"].columns[0].values[0].ours for half in ("odd", "even"))
    found = {d: [] for d in "abc"}
    for row in made_up(0):
        if row.method == "fewlier":
            found[row.dataset].append(row.auc)
    assert odd == pytest.approx(np.mean([np.mean(found[name]) for name in "ac"]))
    assert even == pytest.approx(np.mean(found["b"]))


def test_the_figure_shows_methods_that_have_an_average_and_says_where_they_ran():
    rows = [replace(row, seconds=1.0 + row.split) for row in made_up()]
    figure = draw_accuracy_by_seconds(rows)
    (axes,) = figure.axes
    assert {text.get_text() for text in axes.texts} == {"fewlier", "LOF"}
    points = axes.collections[0].get_offsets()
    assert points[:, 0].tolist() == pytest.approx([3, 3])
    assert describe_seconds(rows) == "- a machine: fewlier, LOF, kNN distance.\n"


def test_each_table_of_data_has_a_line_with_what_is_not_separated_from_the_best_in_bold():
    (table,) = detail_tables(made_up(), "clean")
    assert table.rows == ("a", "b", "c", "average")
    text = to_markdown(table)
    (line,) = [line for line in text.splitlines() if line.startswith("| a |")]
    assert line.split("|")[2].strip().startswith("**0.")
    assert "**" not in line.split("|")[4]
    title = "Mean test AUC on each table with 6 labelled anomalies (k = 3); all other training rows"
    assert text.startswith(f"**{title}")


def test_the_overview_shows_a_situation_as_its_summary_does(tmp_path):
    Store(tmp_path / "dev").append("clean", made_up())
    overview = overview_table(tmp_path)
    (summary,) = summary_tables(Store(tmp_path / "dev").read("clean"), "clean")
    shown = {
        column.heading: column.values[overview.rows.index("dev: 6 labels")]
        for column in overview.columns
    }
    averages = dict(zip(summary.rows, (v.ours for v in summary.columns[0].values), strict=True))
    assert shown["fewlier"] == Value(averages["fewlier"], is_bold=True)
    assert shown["kNN distance"] == Value(None)  # it lacks a table that fewlier has


def page_with(folder, *names):
    page = folder / "page.md"
    marks = [f"<!-- begin generated: {n} -->\nold\n<!-- end generated -->\n" for n in names]
    page.write_text("By hand.\n" + "".join(marks), "utf-8")
    return page


def test_the_page_comes_from_the_results_of_each_collection(tmp_path):
    Store(tmp_path / "rows" / "dev").append("clean", made_up())
    page = page_with(tmp_path, "dev/clean_k3", "dev/clean_k3_tables", "dev/unseen_k3", "dev/run")
    write_comparison_page(tmp_path / "rows", page)
    text = page.read_text("utf-8")
    assert text.startswith("By hand.\n")
    assert "| fewlier | 0.8" in text
    assert "No results yet." in text
    assert "Rows: 41 of `clean`" in text
    assert (tmp_path / "rows" / "dev" / "tables" / "clean_k3.csv").exists()
    write_comparison_page(tmp_path / "rows", page)
    assert page.read_text("utf-8") == text


def test_the_short_page_of_the_project_shows_its_results(tmp_path):
    page = Path(shutil.copy(SHORT, tmp_path))
    shutil.copytree(RESULTS.parent, tmp_path / "results")
    write_comparison_page(tmp_path / "results" / RESULTS.name, page)
    remedy = "run: fewlier-bench compare --page docs/EVIDENCE.md"
    assert page.read_text("utf-8") == SHORT.read_text("utf-8"), remedy


def test_the_page_of_the_project_shows_its_results(tmp_path):
    page = tmp_path / PAGE.name
    shutil.copy(PAGE, page)
    shutil.copytree(RESULTS.parent, tmp_path / "results")
    write_comparison_page(tmp_path / "results" / RESULTS.name, page)
    remedy = "run: fewlier-bench compare --page docs/evidence/ACCURACY.md"
    assert page.read_text("utf-8") == PAGE.read_text("utf-8"), remedy
    for kept in RESULTS.rglob("tables/*.csv"):
        made = tmp_path / "results" / kept.relative_to(RESULTS.parent)
        assert made.read_bytes() == kept.read_bytes(), remedy
    for kept in (PAGE.parent / "figures" / "comparison").iterdir():
        made = tmp_path / kept.relative_to(PAGE.parent)
        assert made.read_bytes() == kept.read_bytes(), remedy


def test_a_page_or_results_that_do_not_fit_change_nothing(tmp_path):
    page = page_with(tmp_path, "other/clean_k3")
    before = page.read_bytes()
    with pytest.raises(UserError, match=r"Results must be a folder with a folder .*-bench comp"):
        write_comparison_page(tmp_path / "none", page)
    Store(tmp_path / "rows" / "dev").append("clean", made_up())
    with pytest.raises(UserError, match=r"must be among dev/run, dev/clean_k0.*got other/clean_k3"):
        write_comparison_page(tmp_path / "rows", page)
    with pytest.raises(UserError, match=r"which is not a file. Name docs/evidence/ACCURACY.md"):
        write_comparison_page(tmp_path / "rows", tmp_path / "absent.md")
    assert page.read_bytes() == before
    assert not Path(tmp_path / "rows" / "dev" / "tables").exists()
