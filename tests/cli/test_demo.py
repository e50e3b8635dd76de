"""`fewlier demo`; tests/test_guide.py compares what it prints at full size."""

import json
import re
import sys

import pytest
from processes import plain

from fewlier.cli import demonstration


@pytest.mark.slow
@pytest.mark.usefixtures("quick_demo")
def test_it_compares_fits_with_and_without_labels_and_gives_reasons(fewlier, folder, tmp_path):
    done = fewlier("demo")
    assert done.code == 0, done.err
    shown = plain(done.out.decode())
    assert "Training: 286 benign (normal) and 6 malignant (anomalous)" in shown
    (without_labels,) = re.findall(r"Test AUC with no labels (\d\.\d{3})", shown)
    (with_labels,) = re.findall(r"Test AUC with 6 labels (\d\.\d{3})", shown)
    assert float(with_labels) >= max(0.9, float(without_labels))
    assert "rows 286 normal, 6 anomalous, 0 unlabelled" in shown
    rows, end = shown.split("Most anomalous test rows")[1].split("The same as a page")
    assert "to open in a browser: fewlier-demo/report.html" in end
    assert "fewlier label fewlier-demo/train.csv" in end
    assert len(re.findall(r"\d+ │ +\d+\.\d │ malignant", rows)) >= demonstration.N_SHOWN - 1
    assert len(re.findall(r" = [\d.]+, expected [^:]+: \+\d", rows)) == demonstration.N_SHOWN * 3

    written = ("train.csv", "test.csv", "tumours.fewlier", "report.html")
    assert set(folder()) == {f"fewlier-demo/{name}" for name in written}
    made = tmp_path / "fewlier-demo"
    assert "Scores against labels" in (made / "report.html").read_text("utf-8")
    judged = ("-m", made / "tumours.fewlier", "--label", "malignant", "--json")
    assert json.loads(fewlier("evaluate", made / "test.csv", *judged).out)["n_anomaly"] == 206


@pytest.mark.slow
@pytest.mark.usefixtures("quick_demo")
def test_it_takes_a_folder_the_number_of_labels_and_a_seed(fewlier, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)  # the page takes longer than all the rest

    def run(seed):
        done = fewlier("demo", "-o", "a/b", "--labels", 9, "--random-state", seed)
        shown = re.sub(r"time \d+\.\d s", "", plain(done.out.decode()))
        return shown, (tmp_path / "a" / "b" / "train.csv").read_bytes()

    first = run(1)
    assert "286 benign (normal) and 9 malignant" in first[0]
    assert "Test AUC with 9 labels" in first[0]
    assert run(1) == first
    assert all(one != other for one, other in zip(run(2), first, strict=True))


@pytest.mark.slow
@pytest.mark.usefixtures("quick_demo")
def test_it_goes_without_the_extra(fewlier, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    done = fewlier("demo")
    assert done.code == 0
    assert not list(tmp_path.rglob("*.html"))
    assert b"browser" not in done.out
    assert "note: A report needs matplotlib and jinja2" in done.err


def test_it_refuses_a_folder_that_cannot_be_before_any_work(fewlier, tmp_path):
    (tmp_path / "file").write_text("")
    done = fewlier("demo", "-o", tmp_path / "file")
    assert (done.code, done.out) == (2, b"")
    assert "--output must be a folder that can be written" in done.err


def test_it_writes_its_tables_for_the_other_commands(fewlier, tmp_path):
    (tmp_path / "demo").mkdir()
    done = fewlier("demo", "--tables", tmp_path / "demo")
    assert done.code == 0, done.err
    assert "label column is 'malignant'" in plain(done.out.decode())
    for name in ("train.csv", "test.csv"):
        assert (tmp_path / "demo" / name).read_text().splitlines()[0].endswith("malignant")


def test_training_and_test_rows_are_all_rows_once():
    split = demonstration.breast_cancer(n_labels=6, seed=0)
    assert sorted([*split.training, *split.test]) == list(range(569))
    assert split.labels[split.training].sum() == 6
