"""The study of scale, on small sizes: what is there is not done again, and every figure is one."""

import csv
from functools import partial

import pytest
from factories import small

from fewlier.scoring.batches import BatchScorer
from fewlier_bench.cli.studies import run_study
from fewlier_bench.studies import scale

pytestmark = [pytest.mark.slow, pytest.mark.long]


@pytest.fixture
def study(tmp_path, monkeypatch):
    """Return a function that runs the study twice, and returns its rows."""
    monkeypatch.setattr(scale, "AnomalyDetector", lambda **_: small(max_epochs=1))
    results = tmp_path / "scale.csv"

    def run(*words):
        words = [*map(str, words), "--folder", str(tmp_path), "--results", str(results)]
        run_study("scale", words)
        before = results.read_bytes()
        run_study("scale", words)
        assert results.read_bytes() == before
        return list(csv.DictReader(before.decode().splitlines()))

    return run


def test_a_fit_of_each_size_has_its_time_and_peak(study):
    rows = study("fit", "--rows", 400, 900)
    assert [(row["what"], row["rows"]) for row in rows] == [("fit", "400"), ("fit", "900")]
    assert all(float(row["value"]) > 0 and float(row["peak_mb"]) > 50 for row in rows)


def test_samples_are_compared_on_other_rows(study, monkeypatch):
    monkeypatch.setattr(scale, "FILE_ROWS", 3000)
    make = scale.make_rows
    monkeypatch.setattr(scale, "make_rows", lambda n, *rest: make(min(n, 3000), *rest))
    rows = study("sample", "--samples", 500, 2000, "--labels", 10, "--repeats", 1)
    assert [row["unit"] for row in rows] == ["AUC", "s"] * 2
    assert rows[0]["method"] == "500 normals, 10 labels"
    assert 0.3 < float(rows[0]["value"]) < 1


def test_one_thread_has_a_speed_with_and_without_reasons(study, monkeypatch):
    make = scale.make_rows
    monkeypatch.setattr(scale, "make_rows", lambda n, *rest: make(min(n, 2000), *rest))
    rows = study("thread")
    assert [row["method"] for row in rows] == ["reasons", "no reasons"]
    assert all(float(row["value"]) > 0 for row in rows)


def test_a_folder_is_scored_in_every_way(study, tmp_path, monkeypatch):
    make, seen = scale.make_rows, []
    monkeypatch.setattr(scale, "make_rows", lambda n, *rest: make(min(n, 2000), *rest))

    def note(folder, **options):
        seen.append((folder.name, options.get("n_threads")))
        scale_here(folder, **options)

    scale_here = scale.score_here
    monkeypatch.setattr(scale, "score_here", note)
    monkeypatch.setattr(scale, "n_cores", partial(int, 1))
    (row,) = study("engines", "--rows", 400, 20_000)
    assert (row["method"], row["rows"], row["unit"]) == (
        "one process, 1 threads",
        "19600",
        "rows/s",
    )
    assert [name for name, _ in seen] == ["score-400", "score-400", "score-20000"]
    assert BatchScorer(tmp_path / "engines.fewlier").model.encoder.schema.names


def test_a_made_up_table_has_its_labels_and_is_the_same_again(tmp_path):
    rows, is_odd = scale.make_rows(5000, 3, n_labels=7)
    assert rows.num_columns == 21
    labels = rows[scale.LABEL].to_numpy()
    assert (labels == 1).sum() == 7
    assert is_odd[labels == 1].all()
    assert scale.make_rows(5000, 3, n_labels=7)[0].equals(rows)
    folder = scale.make_folder(tmp_path / "f", 250, file_rows=100)
    assert len([*folder.glob("*.parquet")]) == 3
