"""The study of what a fit says of itself."""

import csv

import numpy as np
import pytest


@pytest.mark.slow
def test_each_fit_is_a_line_with_what_it_said_and_what_was_found(bench, tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(260) < 40
    np.savez(tmp_path / "table.npz", X=rng.normal(3 * y[:, None], 1, (260, 3)), y=y.astype(int))
    path = tmp_path / "promises.csv"
    for labels in ([3], [3, 6]):
        run = "promises", "run", "--data", tmp_path, "--out", path, "--splits", 1, "--labels"
        done = bench(*run, *labels)
        assert done.code == 0, done.err
    rows = list(csv.DictReader(path.read_text("utf-8").splitlines()))
    assert [(row["labels"], row["situation"]) for row in rows] == [
        ("3", "clean"),
        ("3", "hidden"),
        ("6", "clean"),
        ("6", "hidden"),
    ]
    for row in rows:
        assert float(row["low"]) <= float(row["held_out"]) <= float(row["high"])
        assert float(row["flagged_1"]) <= float(row["flagged_20"]) < 0.5
        assert float(row["auc"]) > 0.9
        assert float(row["cost"]) < float(row["constant"])
    shown = bench("promises", "show", path).out.decode()
    assert "| hidden | 6 | 1 |" in shown
