"""The graph that `fewlier export` writes, in onnxruntime and in JavaScript."""

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
from factories import FEATURES, payments, small, visits
from graphs import MODELS, fresh, inputs_for, labels, stars
from medians import registered

from fewlier import AnomalyDetector
from fewlier.errors import UserError
from fewlier.export.onnx.check import check, compare, feed, run
from fewlier.export.onnx.export import export
from fewlier.table import Table

HERE = Path(__file__).parent
ROWS = payments(seed=7)[FEATURES].head(60)
WEB = "onnxruntime-web@1.22.0"


def rows_of(model):
    """Return fresh rows, among them gaps and a city never seen, as inputs of the graph."""
    rows = ROWS.copy()
    rows.loc[3:6, "city"] = ["Paris", "NA", "", " null "]
    rows.loc[4, "visits"] = -1.5
    matched = model.encoder.schema.match(Table.of(rows))
    return rows, feed(model.encoder, matched, {})


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A model of payments, and what the command has written and printed."""
    folder = tmp_path_factory.mktemp("graph")
    bills = payments()
    small().fit(bills[FEATURES], bills["fraud"]).save(folder / "pay.fewlier")
    words = ["export", folder / "pay.fewlier", "-o", folder / "pay.onnx", "--check", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "fewlier", *map(str, words)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert [line.split()[:2] for line in done.stderr.splitlines()] == [
        ["fewlier:", "writing"],
        ["fewlier:", "scoring"],
    ]
    (folder / "pay.json").write_text(done.stdout)
    return folder


@pytest.fixture(scope="module")
def detector(exported):
    return AnomalyDetector.load(exported / "pay.fewlier")


def test_a_graph_says_what_the_library_says(exported, detector):
    rows, columns = rows_of(detector.model_)
    session = onnxruntime.InferenceSession(exported / "pay.onnx")
    score, p_value, is_anomaly = session.run(None, columns)
    np.testing.assert_allclose(score, detector.anomaly_score(rows), atol=1e-4)
    calibration = detector.model_.calibration
    np.testing.assert_array_equal(p_value, calibration.p_value(score))
    np.testing.assert_array_equal(is_anomaly, detector.predict(rows) == 1)
    for n in (1, 7):
        alone = session.run(None, {name: cells[:n] for name, cells in columns.items()})[0]
        np.testing.assert_allclose(alone, score[:n], atol=1e-6)


@pytest.fixture(scope="module")
def graphs(tmp_path_factory):
    """Each detector by name with its graph, fitted and written when a test first asks for it."""
    folder = tmp_path_factory.mktemp("graphs")

    @cache
    def make(name):
        detector, path = MODELS[name](), folder / f"{name}.onnx"
        assert export(detector.model_, path, is_checked=True).is_close
        return detector, path

    return make


@pytest.mark.parametrize("name", sorted(MODELS.keys() - {"payments"}))  # which is exported above
def test_a_graph_of_any_model_says_what_the_library_says(name, graphs):
    detector, path = graphs(name)
    rows = fresh(name)
    table, columns = inputs_for(detector.model_, rows)
    found = run(path, columns)
    assert compare(detector.model_, table, found).is_close
    scores = detector.anomaly_score(rows)
    np.testing.assert_allclose(found["anomaly_score"], scores, rtol=1e-4, atol=1e-4)


def test_where_many_rows_are_as_near_a_graph_takes_the_same_neighbours(graphs):
    detector, path = graphs("stars")
    rows = stars(seed=1, n=3000).astype(float)
    rows = rows.mask(np.random.default_rng(0).random(rows.shape) < 0.05)
    table, columns = inputs_for(detector.model_, rows)
    assert compare(detector.model_, table, run(path, columns)).score <= 1e-4


def test_a_graph_has_a_part_that_was_added(tmp_path):
    with registered():
        model = small(lambdas=(10,)).fit(visits(), labels(120)).model_
        assert "medians" in model.parts
        assert export(model, tmp_path / "medians.onnx", is_checked=True).is_close


def test_the_file_is_sound_and_says_what_its_inputs_are(exported, detector):
    model = onnx.load(exported / "pay.onnx")
    onnx.checker.check_model(model, full_check=True)
    (facts,) = [json.loads(p.value) for p in model.metadata_props if p.key == "fewlier"]
    assert [one.name for one in model.graph.input] == [one["name"] for one in facts["inputs"]]
    assert [one.name for one in model.graph.output] == ["anomaly_score", "p_value", "is_anomaly"]
    assert facts["threshold"] == detector.threshold_
    assert set(facts["inputs"][2]["codes"]) == {"Bern", "Oslo", "Rome"}
    printed = json.loads((exported / "pay.json").read_text())
    assert printed["inputs"] == facts["inputs"]
    assert printed["check"]["score"] < 1e-4


def test_a_graph_of_another_model_is_refused(exported):
    bills = payments(seed=3)
    other = small(random_state=1).fit(bills[FEATURES], bills["fraud"])
    with pytest.raises(UserError, match="made-up rows as the model does"):
        check(other.model_, exported / "pay.onnx")


def test_javascript_gives_the_same_scores(exported, detector, tmp_path):
    rows, _ = rows_of(detector.model_)
    subprocess.run(["npm", "install", "--no-audit", "--no-fund", WEB], cwd=tmp_path, check=True)
    given = json.loads(rows.astype(object).where(pd.notna(rows), None).to_json(orient="records"))
    for row in given[::2]:  # a cell that is missing may be null, or not there
        for name in [name for name, cell in row.items() if cell is None]:
            del row[name]
    assert any("city" not in row for row in given)
    script = tmp_path / "score.mjs"
    script.write_text((HERE / "score.mjs").read_text())
    done = subprocess.run(
        ["node", script, exported / "pay.onnx", exported / "pay.json"],
        input=json.dumps(given),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    scores = [row["anomaly_score"] for row in found]
    np.testing.assert_allclose(scores, detector.anomaly_score(rows), atol=1e-4)
    assert [row["is_anomaly"] for row in found] == (detector.predict(rows) == 1).tolist()
