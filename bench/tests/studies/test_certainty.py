"""The study of what is promised: lines, what they are made of, and their means."""

import csv

import numpy as np
import pytest

from fewlier_bench.studies.certainty import N_BATCH, ODD_IN_BATCH, discoveries


@pytest.mark.slow
def test_each_situation_is_a_line_that_is_computed_once(bench, tmp_path):
    path = tmp_path / "certainty.csv"
    cell = ("--tables", "numbers", "--rows", 60, "--seeds", 1)

    def lines(*situations):
        done = bench("certainty", "run", "--out", path, *cell, "--situations", *situations)
        assert done.code == 0, done.err
        return list(csv.DictReader(path.read_text("utf-8").splitlines()))

    first = lines("hidden")
    rows = lines("hidden", "update")
    assert rows[:1] == first
    assert [row["situation"] for row in rows] == ["hidden", "update"]
    assert all(0 <= float(row["alarms_5"]) <= 1 for row in rows)
    assert rows[1]["normals"] == "54"  # 60 less six anomalies: no row of the update is among them
    shown = bench("certainty", "show", path).out.decode()
    assert "| update | 1 | 54 |" in shown
    assert "| all but hidden | 1 | 54 |" in shown


def test_discoveries_are_those_of_benjamini_and_hochberg():
    from scipy.stats import false_discovery_control

    rng = np.random.default_rng(0)
    normal, odd = rng.random(1000), rng.beta(0.1, 5, 100)
    for batch, (false, found) in enumerate(discoveries(normal, odd, 0.1)):
        first = normal[100 * batch :][: N_BATCH - ODD_IN_BATCH]
        second = odd[ODD_IN_BATCH * batch :][:ODD_IN_BATCH]
        flagged = false_discovery_control(np.concatenate([first, second])) <= 0.1
        n_false, n_true = flagged[: len(first)].sum(), flagged[len(first) :].sum()
        assert false == n_false / max(n_false + n_true, 1)
        assert found == n_true / ODD_IN_BATCH
