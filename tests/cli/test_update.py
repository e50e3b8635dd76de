"""`fewlier update`: more labels for a model file."""

import json
import re

import numpy as np
import pytest
from factories import FEATURES, payments

from fewlier import AnomalyDetector


def csv(rows):
    return rows.to_csv(index=False).encode()


MORE = payments(30, seed=8)


@pytest.mark.slow
@pytest.mark.parametrize("name", [None, "other.fewlier"])
@pytest.mark.parametrize("is_piped", [False, True])
def test_update_writes_the_model_that_the_library_would(
    name, is_piped, model, model_bytes, fewlier, tmp_path
):
    table, target = tmp_path / "more.csv", tmp_path / (name or model.name)
    table.write_bytes(csv(MORE))  # with an id, which the model does not know
    source = ["-"] if is_piped else [table]
    output = ["-o", target] if name else []
    done = fewlier("update", model, *source, "--label", "fraud", *output, stdin=table.read_bytes())
    assert done.code == 0
    assert re.fullmatch(r"fewlier: training takes at most about \d+ s\.", done.err)
    updated = AnomalyDetector.load(target)
    assert done.out.decode() == f"{updated.summary_}\nmodel       {target}\n"
    assert model.read_bytes() == model_bytes or name is None
    model.write_bytes(model_bytes)
    expected = AnomalyDetector.load(model).update(MORE[FEATURES], MORE["fraud"])
    rows = payments(40, seed=5)[FEATURES]
    np.testing.assert_array_equal(updated.anomaly_score(rows), expected.anomaly_score(rows))
    assert updated.threshold_ == expected.threshold_
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        {"more.csv", model.name, target.name}
    )


@pytest.mark.slow
def test_update_says_in_json_what_it_did_and_counts_rows_given_again_once(model, fewlier):
    for known in ("200 kept ones of the fit. 1 row was", "229 kept ones of the fit. 30 rows were"):
        done = fewlier("update", model, "-", "--label", "fraud", "--json", stdin=csv(MORE))
        assert (done.code, done.err.startswith("fewlier: training takes")) == (0, True)
        facts = json.loads(done.out)
        summary = AnomalyDetector.load(model).summary_
        assert facts == {"model": str(model), **summary.to_json()}
        counts = facts["n_normal"], facts["n_anomaly"], facts["n_unlabelled"]
        assert counts == (150 + 21, 10 + 2, 40 + 6)  # one normal row is a copy of an old one
        assert any(note.endswith(f"and {known} known already.") for note in facts["notes"])


@pytest.mark.slow
def test_update_reads_text_labels_and_columns_in_any_order(model, fewlier):
    rows = MORE.assign(fraud=MORE["fraud"].map({1: "bad", 0: "fine"}), more="text")
    rows = rows[rows.columns[::-1]]
    arguments = ["update", model, "-", "--label", "fraud", "--anomaly", "bad"]
    assert fewlier(*arguments, stdin=csv(rows)).code == 0
    assert AnomalyDetector.load(model).summary_.n_anomaly == 12
