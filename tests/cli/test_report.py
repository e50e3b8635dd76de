"""`fewlier report`."""

import json
import sys

import pytest
from factories import payments

from fewlier import AnomalyDetector

ROWS = payments(150, seed=1)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "new.csv"
    ROWS.to_csv(path, index=False)
    return path


@pytest.mark.slow
def test_a_report_is_written_and_told(table, model, fewlier, tmp_path):
    page = tmp_path / "report.html"
    done = fewlier("report", table, "-m", model, "--label", "fraud", "-o", page)
    n_above = int(AnomalyDetector.load(model).predict(ROWS[["amount", "visits", "city"]]).sum())
    assert (done.code, done.out) == (0, b"")
    assert done.err == (
        f"fewlier: 150 rows scored, {n_above} above the threshold; the report is {page}."
    )
    html = page.read_text("utf-8")
    assert html.startswith("<!doctype html>")
    assert "Scores against labels" in html
    assert "<title>Anomalies in new.csv</title>" in html
    assert str(tmp_path) not in html


@pytest.mark.slow
def test_json_names_the_report(table, model, fewlier, tmp_path):
    done = fewlier(
        "report", "-", "-m", model, "-o", tmp_path / "a.html", "--json", stdin=table.read_bytes()
    )
    found = json.loads(done.out)
    assert (done.code, done.err) == (0, "")
    assert found["report"] == str(tmp_path / "a.html")
    assert found["n_rows"] == 150
    assert found["threshold"] == AnomalyDetector.load(model).threshold_


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-o", "-"], "A report must be written to a file; got standard output."),
        (["-o", "new.csv"], "The output must be another file than the input"),
        (["-o", "fraud.fewlier"], "The output must be another file than the input"),
        (["-o", "absent/a.html"], "The output must be a file that can be written"),
        (["-o", "a.html", "--label", "theft"], "label column must be among its columns"),
        (["-o", "a.html", "--anomaly", "x"], "--anomaly must come with --label"),
    ],
)
def test_what_the_user_can_fix_is_told_and_nothing_is_written(
    options, message, table, model, fewlier, folder, monkeypatch
):
    monkeypatch.chdir(table.parent)
    before = folder()
    done = fewlier("report", "new.csv", "-m", model.name, *options)
    assert (done.code, done.out) == (2, b"")
    assert message in done.err
    assert folder() == before


def test_without_the_extra_the_command_says_what_to_install(table, model, fewlier, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = fewlier("report", table, "-m", model, "-o", table.with_name("a.html"))
    assert done.code == 2
    assert "pip install 'fewlier[report]'" in done.err
    assert not table.with_name("a.html").exists()
