"""`fewlier-bench adgym` on a made-up benchmark."""

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor

import made_up_adgym
import pytest
from processes import plain, run

from fewlier_bench.comparison import adgym_jobs, adgym_published
from fewlier_bench.data import adgym
from fewlier_bench.runs.results import Store

pytestmark = pytest.mark.slow

OPTIONS = ("adgym", "--results", "rows", "--workers", "1", "--anomalies", "5", "--splits", "2")


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Return a folder with the tables and the published numbers."""
    folder = tmp_path_factory.mktemp("tables")
    made_up_adgym.write_tables(folder)
    (folder / "published.csv").write_text(made_up_adgym.publish(), "utf-8")
    return folder


@pytest.fixture
def made_up(tables, tmp_path, monkeypatch):
    """Return a function that puts the benchmark in place, in this process and an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FEWLIER_DATA", str(tables))
    monkeypatch.setenv("PUBLISHED", str(tables / "published.csv"))
    monkeypatch.setattr(adgym_published, "_read", adgym_published._read)  # is put back
    monkeypatch.setitem(adgym_jobs.DETECTORS, "fewlier", {})
    real = dict(adgym.ADGYM)
    yield made_up_adgym.install
    adgym.ADGYM.clear()
    adgym.ADGYM.update(real)
    adgym_published.published_results.cache_clear()


def rows_of(method, folder):
    rows = Store(folder / "adgym").read("adgym")
    return {(row.dataset, row.k, row.split): row for row in rows if row.method == method}


def run_shard(shard):
    """Run the command in a process that has no optional package."""
    program = (sys.executable, made_up_adgym.__file__)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return run(*OPTIONS, "--shard", shard, command=program, env=environment)


def test_shards_fill_one_file_at_the_same_time_and_the_page_shows_it(
    bench, made_up, tables, tmp_path
):
    with ThreadPoolExecutor() as pool:
        shards = list(pool.map(run_shard, ("1/2", "2/2")))
    for done in shards:
        assert done.returncode == 0, done.stderr
        assert "Naive Bayes reaches ADGym's numbers on 4 splits" in plain(done.stderr)
    rows = rows_of("fewlier", tmp_path / "rows")
    assert set(rows) == {(name, 5, split) for name in ("fault", "vowels") for split in (0, 1)}
    assert all(row.auc > 0.6 and row.seed == row.split + 1 for row in rows.values())
    assert set(rows_of("naive Bayes", tmp_path / "rows")) == set(rows)

    made_up((tables / "published.csv").read_text("utf-8"))
    file = tmp_path / "rows" / "adgym" / "adgym.csv"
    before = file.read_bytes()
    shown = plain(bench(*OPTIONS).out.decode())
    assert "Averages are over 2 tables: fault, vowels." in shown
    assert "Averages with 5 labelled anomalies, without the tables in dev:" in shown
    assert len(json.loads(bench(*OPTIONS, "--json").out)) == 8
    assert file.read_bytes() == before
    page = tmp_path / "page.md"
    page.write_text("<!-- begin generated: adgym/short -->\n<!-- end generated -->\n", "utf-8")
    done = bench("adgym", "--results", "rows", "--page", page)
    assert (done.code, done.out) == (0, b"")
    assert "| chance | 0.150 |" in page.read_text("utf-8")


def test_splits_that_are_not_adgyms_end_the_run(bench, made_up, tables, tmp_path):
    header, first, *others = (tables / "published.csv").read_text("utf-8").splitlines()
    wrong = first.replace(first.split(",")[4], "0.123456")
    made_up("\n".join([header, wrong, *others]))
    done = bench(*OPTIONS)
    assert (done.code, done.out) == (2, b"")
    assert "Naive Bayes must reach ADGym's AUC 0.123456" in done.err
    assert not rows_of("fewlier", tmp_path / "rows")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "$FEWLIER_DATA must name a folder with ADGym's tables; got none, without 1_ALOI.npz"),
        (["--tables", "Pima"], "A table must be one of ALOI, annthyroid"),
        (["--methods", "LOF"], "A method must be one of fewlier, fewlier normal, naive Bayes; got"),
        (["--anomalies", 3], "labelled anomalies must be one of 5, 10, 20; got 3."),
        (["--splits", 4], "The number of splits must be one of 1, 2, 3; got 4."),
        (["--shard", "3/2"], "--shard must be a part of a whole such as 2/4; got 3/2."),
        (["--page", "page.md", "--retry"], "it takes only --results; got --retry."),
    ],
)
def test_what_cannot_be_run_is_reported_before_anything_is(
    arguments, message, bench, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    done = bench("adgym", *arguments)
    assert (done.code, done.out) == (2, b"")
    assert message in done.err
    assert list(tmp_path.iterdir()) == []
