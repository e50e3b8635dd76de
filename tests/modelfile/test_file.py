"""The model file: what survives it, and what a damaged one does."""

import io
import json
import os
import pickle  # noqa: TID251 - to show that it is refused
import re
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import safetensors.numpy
import torch
from factories import visits
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fewlier import AnomalyDetector, FormatError, UserError
from fewlier.density import DENSITIES
from fewlier.memory import ROLES
from fewlier.modelfile.container import MANIFEST, MAX_BYTES, WEIGHTS
from fewlier.modelfile.file import load_model, save_model
from fewlier.modelfile.manifest import extreme_rows, read_manifest

GOLDEN = Path(__file__).parents[1] / "golden"
N = 120
LABELS = np.repeat([1, 0], [6, N - 6])


def fitted(X=None, **changes):
    small = {"hidden": (8,), "lambdas": (0, 10), "n_orderings": 2, "n_masks": 3, "max_epochs": 3}
    small |= {"false_alarm_rate": 0.2, "random_state": 0}
    return AnomalyDetector(**small | changes).fit(visits() if X is None else X, LABELS)


@pytest.fixture(scope="module")
def detector():
    return fitted()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def saved(detector, folder):
    path = folder / "saved.fewlier"
    detector.save(path)
    return path


def parts_of(path):
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read(MANIFEST)), safetensors.numpy.load(archive.read(WEIGHTS))


def zipped(path, parts, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in parts:
            archive.writestr(name, content)
    return path


def rewritten(path, manifest, tensors):
    """Write parts as they are, right or wrong, with checksums that fit."""
    content = manifest if isinstance(manifest, bytes) else json.dumps(manifest).encode()
    weights = tensors if isinstance(tensors, bytes) else safetensors.numpy.save(tensors)
    return zipped(path, [(MANIFEST, content), (WEIGHTS, weights)])


def replace_at(document, path, value):
    *above, last = path
    for key in above:
        document = document[key]
    document[last] = value


@pytest.mark.parametrize("selection", ["average", "best"])
def test_everything_survives_a_round_trip_bit_for_bit(selection, tmp_path):
    detector = fitted(selection=selection, hidden=(8, 5))
    detector.save(tmp_path / "a.fewlier")
    loaded = AnomalyDetector.load(str(tmp_path / "a.fewlier"))
    X = visits(seed=1)
    for method in (
        "anomaly_score",
        "decision_function",
        "predict_proba",
        "score_samples",
        "p_value",
    ):
        np.testing.assert_array_equal(getattr(loaded, method)(X), getattr(detector, method)(X))
    assert loaded.get_params() == detector.get_params()
    assert loaded.summary_ == detector.summary_
    assert loaded.score_unit_ == detector.score_unit_
    assert loaded.model_.calibration.guarantee == detector.model_.calibration.guarantee
    assert loaded.model_.calibration.rule == detector.model_.calibration.rule != ""
    assert loaded.model_.calibration.at == detector.model_.calibration.at
    assert str(loaded.summary_) == str(detector.summary_)
    np.testing.assert_array_equal(loaded.classes_, [0, 1])
    np.testing.assert_array_equal(loaded.feature_names_in_, detector.feature_names_in_)
    loaded.save(tmp_path / "b.fewlier")
    assert (tmp_path / "a.fewlier").read_bytes() == (tmp_path / "b.fewlier").read_bytes()


def test_a_moved_threshold_survives_and_can_be_moved_again(detector, tmp_path):
    moved = AnomalyDetector.load(saved_as(detector, tmp_path)).set_threshold(contamination=0.3)
    loaded = AnomalyDetector.load(saved_as(moved, tmp_path))
    assert loaded.threshold_ == moved.threshold_ != detector.threshold_
    assert loaded.summary_.threshold == moved.threshold_
    assert loaded.set_threshold(false_alarm_rate=0.2).threshold_ == detector.threshold_


def saved_as(detector, tmp_path):
    detector.save(tmp_path / "model.fewlier")
    return tmp_path / "model.fewlier"


def test_parameters_of_any_number_type_and_tables_without_names_survive(tmp_path):
    X = visits()[["age", "visits"]].to_numpy(dtype=float)
    changes = {
        "hidden": [8],
        "lambdas": np.array([0, 1]),
        "false_alarm_rate": np.float32(0.25),
        "columns": "real",
        "random_state": np.random.RandomState(0),
    }
    detector = fitted(X, **changes)
    loaded = AnomalyDetector.load(saved_as(detector, tmp_path))
    np.testing.assert_array_equal(loaded.anomaly_score(X), detector.anomaly_score(X))
    assert (loaded.hidden, loaded.lambdas, loaded.columns) == ((8,), (0, 1), "real")
    assert loaded.false_alarm_rate == 0.25
    assert loaded.random_state is None
    assert loaded.n_features_in_ == 2
    assert not hasattr(loaded, "feature_names_in_")


def test_one_column_and_a_column_missing_everywhere_survive(tmp_path):
    for X in (visits()[["city"]], visits()[["age"]].assign(empty=np.nan)):
        detector = fitted(X, false_alarm_rate=0.5)  # few rows are distinct
        loaded = AnomalyDetector.load(saved_as(detector, tmp_path))
        np.testing.assert_array_equal(loaded.anomaly_score(X), detector.anomaly_score(X))


def test_a_loaded_model_does_not_keep_its_training_rows(saved):
    loaded = AnomalyDetector.load(saved)
    for name in ("decision_scores_", "labels_"):
        with pytest.raises(AttributeError, match="a loaded model does not keep them"):
            getattr(loaded, name)
    assert not hasattr(loaded, "history_")
    loaded.fit(visits(), LABELS)
    assert loaded.decision_scores_.shape == (N,)


def test_a_model_fitted_on_a_gpu_loads_without_one(saved, folder, monkeypatch):
    manifest, tensors = parts_of(saved)
    manifest["extra"]["parameters"]["device"] = "cuda"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    loaded = AnomalyDetector.load(rewritten(folder / "cuda.fewlier", manifest, tensors))
    assert loaded.device == "cuda"
    assert loaded.model_.members[0].centre.shape == (6,)  # five columns, and the rest of a row


def test_the_model_and_what_came_with_it_return(detector, tmp_path):
    save_model(detector.model_, tmp_path / "m.fewlier", extra={"note": [1, "two"]})
    model, memory, extra = load_model(tmp_path / "m.fewlier")
    assert (memory, extra) == (None, {"note": [1, "two"]})
    assert model.passes_per_row == detector.model_.passes_per_row


@pytest.mark.parametrize("selection", ["average", "best"])
def test_a_memory_returns_as_it_was(selection, tmp_path):
    detector = fitted(selection=selection, lambdas=(0, 1, 10))
    loaded = AnomalyDetector.load(saved_as(detector, tmp_path))
    found, kept = loaded._memory, detector._memory
    for name in ("inputs", "targets", "observed", "impossible"):
        one, other = getattr(found.encoded, name), getattr(kept.encoded, name)
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype
    np.testing.assert_array_equal(found.labels, kept.labels)
    assert found.labels.dtype == kept.labels.dtype == np.int8
    np.testing.assert_array_equal(found.counted, kept.counted)
    np.testing.assert_array_equal(found.roles, kept.roles)
    assert [m.lam for m in loaded.model_.members] == [m.lam for m in detector.model_.members]
    assert read_manifest(tmp_path / "model.fewlier")["memory"] == {
        "n_rows": N,
        "n_folds": {"average": 2, "best": 1}[selection],
    }


def test_a_best_member_has_no_companions(saved, folder):
    path = folder / "best.fewlier"
    fitted(selection="best").save(path)
    assert read_manifest(path)["neighbours"] is None
    manifest, tensors = parts_of(path)
    for name, message in (("forest", "no neighbours beside"), ("neighbours", "its best member")):
        damaged = manifest | {name: read_manifest(saved)[name]}
        with pytest.raises(FormatError, match=message):
            AnomalyDetector.load(rewritten(path, damaged, tensors))


def test_a_file_without_a_memory_is_smaller_by_its_rows_and_scores_the_same(
    detector, saved, tmp_path
):
    without = fitted(memory=False)
    path = saved_as(without, tmp_path)
    assert read_manifest(path)["memory"] is None
    assert not any(name.startswith("memory.") for name in parts_of(path)[1])
    assert saved.stat().st_size - path.stat().st_size > detector._memory.n_bytes
    loaded = AnomalyDetector.load(path)
    assert (loaded.memory, loaded._memory) == (False, None)
    np.testing.assert_array_equal(loaded.anomaly_score(visits()), detector.anomaly_score(visits()))


def test_the_memory_of_a_very_wide_table_loads(monkeypatch, tmp_path):
    monkeypatch.setattr("fewlier.memory.MAX_BYTES", 1)  # a row for each role and fold
    loaded = AnomalyDetector.load(saved_as(fitted(), tmp_path))
    assert len(loaded._memory) <= 10
    loaded.set_params(false_alarm_rate=0.5).update(visits(1).head(8), LABELS[:8])
    assert loaded.summary_.n_anomaly == 12


def test_the_golden_file_loads_and_scores_as_recorded():
    expected = json.loads((GOLDEN / "version_1.json").read_text("utf-8"))
    loaded = AnomalyDetector.load(GOLDEN / "version_1.fewlier")
    assert read_manifest(GOLDEN / "version_1.fewlier")["version"] == 1
    table = pd.DataFrame(expected["rows"])
    scores = loaded.anomaly_score(table)
    np.testing.assert_allclose(scores, expected["scores"], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(loaded.explain(table).score, scores, rtol=1e-12, atol=1e-6)
    np.testing.assert_allclose(loaded.predict_proba(table)[:, 1], expected["proba"], rtol=1e-3)
    assert loaded.threshold_ == expected["threshold"]
    assert list(loaded.drift(visits().assign(age=70.0)).columns) == expected["drifted"]
    assert loaded.model_.neighbours.record == expected["neighbours"]
    assert loaded.model_.forest.record == expected["forest"]
    assert [list(member.passes) for member in loaded.model_.members] == expected["passes"]


def test_the_golden_file_can_be_updated():
    loaded = AnomalyDetector.load(GOLDEN / "version_1.fewlier")
    before = loaded.anomaly_score(visits())
    loaded.update(visits(3).head(20), LABELS[:20])
    assert loaded.summary_.n_anomaly == 12
    assert not np.array_equal(loaded.anomaly_score(visits()), before)


def test_the_manifest_is_read_without_torch_and_names_no_training_row(saved):
    code = "import sys; from fewlier.modelfile.manifest import read_manifest; "
    code += "m = read_manifest(sys.argv[1]); "
    code += "sys.exit('torch' in sys.modules or m['selection'] != 'average')"
    assert subprocess.run([sys.executable, "-c", code, str(saved)]).returncode == 0
    probes = read_manifest(saved)["probes"]["rows"]
    training = visits().to_numpy().tolist()
    assert not any(row in training for row in probes)
    assert any(None in row for row in probes)


def test_loading_unpickles_nothing(saved, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("something was unpickled")

    for name in ("Unpickler", "load", "loads"):
        monkeypatch.setattr(pickle, name, refuse)
    monkeypatch.setattr(torch, "load", refuse)
    monkeypatch.setattr(np, "load", refuse)
    AnomalyDetector.load(saved)


IN_MANIFEST = {
    "another format": (("format",), "onnx", "names another format"),
    "newer version": (("version",), 5, "version is 5, newer than 1.*Upgrade fewlier"),
    "no version": (("version",), "1", "format version is no positive integer"),
    "true as version": (("version",), True, "format version is no positive integer"),
    "more keys": (("code",), "import os", "manifest must be a record of"),
    "versions": (("versions", "torch"), 2, "versions are no texts"),
    "selection": (("selection",), "worst", "selection is unknown"),
    "extra": (("extra",), [], "no record"),
    "encoder": (("encoder", "stats"), [], "statistics for each column"),
    "kind": (("encoder", "schema", "columns", 0, "kind"), "date", "must have a known kind"),
    "density": (("density", "name"), "os.system", "density is unknown"),
    "density type": (("density", "name"), ["made"], "no text"),
    "hidden": (("density", "hidden"), [0], "sizes of its density are wrong"),
    "wide": (("density", "hidden"), [10**9], "smaller than its manifest implies"),
    "deep": (("density", "hidden"), [8] * 10**5, "passes more than 20000 layers"),
    "orderings": (("density", "n_orderings"), 10**9, "passes more than 20000 layers"),
    "more orderings": (("density", "n_orderings"), 1000, "smaller than|not what its manifest"),
    "components": (("density", "n_components"), 10**9, "smaller than its manifest implies"),
    "huge": (("density", "n_masks"), 2**40, "sizes of its density are wrong"),
    "one wider": (("density", "hidden"), [9], "smaller than|not what its manifest implies"),
    "one narrower": (("density", "hidden"), [7], "not what its manifest implies"),
    "flow": (("density", "flow"), "rnvp", "flow of its density is unknown"),
    "latent": (("density", "latent"), 0, "sizes of its density are wrong"),
    "no member": (("members",), [], "no list of members"),
    "fewer members": (
        ("members",),
        [{"weight": 1.0, "lam": 0.0, "fold": 0, "scale": 1.0, "passes": [0]}],
        "implies",
    ),
    "passes": (("members", 0, "passes"), [], "passes of a member are no ascending numbers"),
    "true pass": (("members", 0, "passes"), [True], "passes of a member are no ascending"),
    "passes twice": (("members", 0, "passes"), [1, 1], "passes of a member are no ascending"),
    "far pass": (("members", 0, "passes"), [0, 3], "a pass that is not there"),
    "other pass": (("members", 0, "passes"), [0, 2], "must score .* they score"),
    "neighbours": (("neighbours",), [], "neighbours must be a record"),
    "no neighbours": (("neighbours",), None, "its forest has no neighbours beside it"),
    "share": (("neighbours", "share"), 1.0, "share of its neighbours is none"),
    "share type": (("neighbours", "share"), "1", "share of its neighbours is none"),
    "other share": (("neighbours", "share"), 0.1, "must score .* they score"),
    "spread": (("neighbours", "spread"), 0.0, "spread of its neighbours is not positive"),
    "lean": (("neighbours", "lean"), 0.5, "lean to no side there is"),
    "lean type": (("neighbours", "lean"), None, "lean to no side there is"),
    "alone": (("neighbours", "alone"), 1.5, "lean to no side there is"),
    "other lean": (("neighbours", "lean"), 9.5, "must score .* they score"),
    "no normal": (("neighbours", "n_normals"), 0, "not 1 to 5000 rows of a label"),
    "true normal": (("neighbours", "n_normals"), True, "not 1 to 5000 rows of a label"),
    "many normals": (("neighbours", "n_normals"), 5001, "not 1 to 5000 rows of a label"),
    "more normals": (("neighbours", "n_normals"), 5000, "not what its manifest implies"),
    "no anomaly": (("neighbours", "n_anomalies"), 0, "not what its manifest implies"),
    "anomalies": (("neighbours", "n_anomalies"), -1, "not 0 to 5000 rows of a label"),
    "forest": (("forest",), [], "its forest must be a record"),
    "no forest": (("forest",), None, "not what its manifest implies"),
    "forest share": (("forest", "share"), 0.6, "share of its forest is none"),
    "forest share type": (("forest", "share"), None, "share of its forest is none"),
    "other forest share": (("forest", "share"), 0.01, "must score .* they score"),
    "forest spread": (("forest", "spread"), -1.0, "spread of its forest is not positive"),
    "no node": (("forest", "n_nodes"), 0, "not 1 to 60000 nodes"),
    "many nodes": (("forest", "n_nodes"), 10**6, "not 1 to 60000 nodes"),
    "more nodes": (("forest", "n_nodes"), 60_000, "not what its manifest implies"),
    "no lambda": (("members",), [{"weight": 1.0, "fold": 0, "scale": 1.0}], "must be a record"),
    "lambda": (("members", 0, "lam"), -1.0, "lambda of a member is no number >= 0"),
    "lambda type": (("members", 0, "lam"), "0", "lambda of a member is no number >= 0"),
    "memory": (("memory",), [], "memory must be a record"),
    "memory keys": (("memory",), {"n_rows": 9}, "memory must be a record"),
    "no folds": (("memory", "n_folds"), 0, "memory has no positive sizes"),
    "more folds": (("memory", "n_folds"), 3, "not what its manifest implies"),
    "folds without end": (("memory", "n_folds"), 65, "more than 64 folds"),
    "no row": (("memory", "n_rows"), 0, "memory has no positive sizes"),
    "true rows": (("memory", "n_rows"), True, "memory has no positive sizes"),
    "more rows": (("memory", "n_rows"), N + 1, "not what its manifest implies"),
    "fewer rows": (("memory", "n_rows"), N - 1, "not what its manifest implies"),
    "far more rows": (("memory", "n_rows"), 2**31 - 1, "not what its manifest implies"),
    "forgotten": (("memory",), None, "not what its manifest implies"),
    "weight": (("members", 0, "weight"), -0.5, "weight of a member is not positive"),
    "no weight": (("members", 0, "weight"), 0.0, "weight of a member is not positive"),
    "weight sum": (("members", 0, "weight"), 0.9, "do not sum to 1"),
    "weight type": (("members", 0, "weight"), "1", "weight of a member is not positive"),
    "fold": (("members", 0, "fold"), -1, "fold of a member"),
    "far fold": (("members", 0, "fold"), 64, "fold of a member"),
    "scale": (("members", 0, "scale"), 0.0, "scale of a member is not positive"),
    "threshold": (("calibration", "threshold"), None, "threshold is no finite number"),
    "guarantee": (("calibration", "guarantee"), 1, "guarantee is no text"),
    "rule": (("calibration", "rule"), None, "the rule of its threshold is no text"),
    "above": (("calibration", "n_above"), -1, "no number of rows above the threshold"),
    "others above": (("calibration", "n_above"), 10**6, "lies elsewhere among the held-back rows"),
    "counts": (("calibration", "n_normal_scores"), 0, "no positive numbers of rows"),
    "more scores": (("calibration", "n_normal_scores"), 10**9, "not what its manifest implies"),
    "probe count": (("probes", "rows"), [], "other than 3 probe rows"),
    "probe cell": (("probes", "rows", 0, 0), "old", "does not fit its columns"),
    "probe row": (("probes", "rows", 0), [1.0], "does not fit its columns"),
    "probe value": (("probes", "rows", 0, 0), 900.0, "must score .* they score"),
    "probe score": (("probes", "scores", 1), 1e6, "must score .* they score"),
    "probe text": (("probes", "scores", 1), "high", "no finite number"),
    "statistics": (("encoder", "stats", 1, "mean_target"), 1e300, "must score .* they score"),
}


@pytest.mark.parametrize(("path", "value", "message"), IN_MANIFEST.values(), ids=IN_MANIFEST)
def test_a_wrong_manifest_is_refused(path, value, message, saved, folder):
    manifest, tensors = parts_of(saved)
    replace_at(manifest, path, value)
    damaged = rewritten(folder / "damaged.fewlier", manifest, tensors)
    with pytest.raises(FormatError, match=f"damaged.fewlier' must .*(?:{message})"):
        AnomalyDetector.load(damaged)


IN_EXTRA = {
    "parameters": (("parameters",), {}, "parameters must be a record"),
    "hidden": (("parameters", "hidden"), 8, "'hidden' is no list"),
    "density": (("parameters", "density"), [], "'density' is no text"),
    "selection": (("parameters", "selection"), "worst", "'average' or 'best'"),
    "unlabelled": (("parameters", "unlabelled"), "odd", "'robust' or 'normal'"),
    "device": (("parameters", "device"), ["cpu"], "'device' is unknown"),
    "flow": (("parameters", "flow"), "rnvp", "'flow' parameter"),
    "samples": (("parameters", "n_samples"), 0, "'n_samples' parameter"),
    "columns": (("parameters", "columns"), {"age": 1}, "'columns' is no record"),
    "seed": (("parameters", "random_state"), 1.5, "'random_state' is no integer"),
    "memory": (("parameters", "memory"), 1, "'memory' parameter .* must be True or False"),
    "names": (("has_column_names",), 1, "no truth value"),
    "summary": (("summary",), None, "summary must be a record"),
    "rows": (("summary", "n_normal"), -1, "no number of rows"),
    "seconds": (("summary", "seconds"), None, "'seconds' is no number"),
    "unit": (("summary", "unit"), 1, "'unit' is no text"),
    "kinds": (("summary", "kinds"), [], "'kinds' is no record"),
    "notes": (("summary", "notes"), [1], "no lists"),
    "weights": (("summary", "lambda_weights"), [[1.0]], "no lists"),
}


@pytest.mark.parametrize(("path", "value", "message"), IN_EXTRA.values(), ids=IN_EXTRA)
def test_a_wrong_description_of_the_detector_is_refused(path, value, message, saved, folder):
    manifest, tensors = parts_of(saved)
    replace_at(manifest["extra"], path, value)
    damaged = rewritten(folder / "extra.fewlier", manifest, tensors)
    with pytest.raises(FormatError, match=f"extra.fewlier' must describe a detector.*{message}"):
        AnomalyDetector.load(damaged)


NO_JSON = {
    "deep": (b"[" * 10**6, "no valid JSON"),
    "huge integer": (b'{"version": ' + b"9" * 5000 + b"}", "integer beyond 64 bits"),
    "long integer": (b'{"version": -' + b"9" * 20 + b"}", "integer beyond 64 bits"),
    "many values": (b'{"a": [' + b"[]," * 10**6 + b"1]}", "more than 1000000 values"),
    "NaN": (b'{"version": NaN}', "NaN is no number"),
    "infinity": (b'{"version": -Infinity}', "-Infinity is no number"),
    "overflow": (b'{"version": 1e999}', "beyond float64"),
    "key twice": (b'{"version": 1, "version": 2}', "a key twice"),
    "a list": (b"[]", "no JSON object"),
    "latin-1": (b'{"format": "\xe9"}', "no valid JSON"),
    "nothing": (b"", "no valid JSON"),
}


@pytest.mark.parametrize(("content", "message"), NO_JSON.values(), ids=NO_JSON)
def test_a_manifest_that_is_no_json_is_refused(content, message, saved, folder):
    damaged = rewritten(folder / "json.fewlier", content, parts_of(saved)[1])
    with pytest.raises(FormatError, match=f"json.fewlier' .*{message}"):
        AnomalyDetector.load(damaged)


def changed(name, change):
    """Return a change of the tensors: one of them, copied and changed in place."""

    def apply(tensors):
        array = tensors[name].copy()
        change(array)
        return tensors | {name: array}

    return apply


def put(index, value):
    return lambda array: array.__setitem__(index, value)


def without_role(name):
    """Return a change of roles: in the last fold nobody plays this one."""
    return lambda roles: roles.__setitem__(-1, roles[-1] & ~np.uint8(1 << ROLES.index(name)))


def renamed(tensors, old, new):
    return {new if name == old else name: value for name, value in tensors.items()}


FIRST = "member.0.parameters.network.weights.0"
NORMALS = "neighbours.normals.rows"
IN_WEIGHTS = {
    "NaN": (changed(FIRST, put((0, 0), np.nan)), "holds NaN or infinity"),
    "infinity": (changed("member.0.anchors.floor", put((0, 0), np.inf)), "holds NaN or infinity"),
    "ordering": (changed("density.positions", put((0, 0), 9)), "no permutation"),
    "twice": (changed("density.positions", put((0, slice(2)), 0)), "no permutation"),
    "degree": (changed("density.degrees_0", put((0, 0), -1)), "degrees out of range"),
    "degrees": (changed("density.degrees_0", put((0, 0), 4)), "degrees out of range"),
    "unsorted": (changed("calibration.normal_scores", put(0, 1e9)), "not sorted"),
    "others": (changed(FIRST, put(slice(None), 3.0)), "must score .* they score"),
    "neighbour": (changed(NORMALS, put((0, 0), 99.0)), "neighbours lie out of range"),
    "neighbour NaN": (changed(NORMALS, put((0, 0), np.nan)), "holds NaN or infinity"),
    "neighbour's shape": (lambda t: t | {NORMALS: t[NORMALS].T.copy()}, "normals.rows' is"),
    "typical": (changed("neighbours.normals.typical", put(0, 0.0)), "neighbours lie out of range"),
    "outside": (
        changed("neighbours.anomalies.outside", put(0, -1.0)),
        "neighbours lie out of range",
    ),
    "input scale": (changed("neighbours.scale", put(0, 0.0)), "neighbours lie out of range"),
    "no weight": (changed("neighbours.weight", put(0, 0.0)), "neighbours lie out of range"),
    "all weight": (changed("neighbours.weight", put(0, 1e3)), "neighbours lie out of range"),
    "weights": (
        changed("neighbours.weight", lambda w: put(slice(None), w[::-1].copy())(w)),
        "out of range|must score",
    ),
    "input mean": (changed("neighbours.mean", put(0, 3e38)), "must score .* they score"),
    "child": (changed("forest.right", put(0, 0)), "trees lie out of range"),
    "tree's feature": (changed("forest.feature", put(0, 99)), "trees lie out of range"),
    "tree's value": (changed("forest.value", put(0, 2.0)), "trees lie out of range"),
    "tree's threshold": (changed("forest.threshold", put(0, np.nan)), "holds NaN or infinity"),
    "feature scale": (changed("forest.scale", put(0, 0.0)), "trees have no positive scale"),
    "exchanged": (lambda t: exchanged(t), "must score .* they score"),
    "shape": (lambda t: t | {FIRST: t[FIRST].T.copy()}, "weights.0' is"),
    "type": (lambda t: t | {FIRST: t[FIRST].view(np.int32)}, "is \\('I32'"),
    "name": (lambda t: {n.replace("centre", "center"): v for n, v in t.items()}, "unexpected"),
    "more": (lambda t: t | {"more": np.zeros(3)}, "not what its manifest implies"),
    "fewer": (lambda t: {n: t[n] for n in list(t)[1:]}, "implies"),
    "NaN in memory": (changed("memory.inputs", put((0, 0), np.nan)), "holds NaN or infinity"),
    "infinite memory": (changed("memory.targets", put((3, 1), np.inf)), "holds NaN or infinity"),
    "flag": (changed("memory.observed", put((0, 0), 2)), "memory.observed' is no truth value"),
    "flags": (
        changed("memory.impossible", put((2, 1), 255)),
        "memory.impossible' is no truth value",
    ),
    "count": (changed("memory.counted", put(5, 2)), "memory.counted' is no truth value"),
    "label": (changed("memory.labels", put(5, 2)), "memory.labels' is no label"),
    "labels": (changed("memory.labels", put(slice(None), 0)), "anomalies that are not labelled so"),
    "no role": (changed("memory.roles", put(slice(None), 0)), "memory lacks rows"),
    "no normals": (changed("memory.roles", without_role("normals")), "memory lacks rows"),
    "no choice": (changed("memory.roles", without_role("validation_normals")), "memory lacks"),
    "no calibration": (changed("memory.roles", without_role("calibration")), "memory lacks rows"),
    "more memory": (lambda t: t | {"memory.more": t["memory.roles"]}, "manifest implies"),
    "less memory": (lambda t: {n: t[n] for n in t if n != "memory.roles"}, "manifest implies"),
    "other memory": (lambda t: renamed(t, "memory.roles", "memory.rules"), "unexpected"),
    "turned memory": (lambda t: t | {"memory.roles": t["memory.roles"].T.copy()}, "roles' is"),
    "code beyond": (changed("memory.targets", put((slice(None), 4), 9.0)), "codes beyond"),
    "part of a code": (changed("memory.targets", put((slice(None), 4), 0.5)), "codes beyond"),
    "third of two": (changed("memory.targets", put((slice(None), 3), 2.0)), "codes beyond"),
    "negative count": (changed("memory.targets", put((slice(None), 1), -3.0)), "below 0"),
    "negative bins": (changed("reference.counts", put(0, -1)), "negative counts"),
    "endless bins": (changed("reference.counts", put(slice(3), 2**62)), "count the same rows"),
    "more in a bin": (changed("reference.counts", lambda n: put(0, n[0] + 1)(n)), "same rows"),
    # No probe row has the first category, nor gaps in the second column and the last two.
    "huge for a level": (changed(FIRST, put([4, 8], 3e38)), "not finite"),
    "huge for gaps": (changed(FIRST, put([10, 11], 3e38)), "not finite"),
    "empty": (lambda _: b"", "smaller than its manifest implies"),
    "noise": (lambda _: b"\xff" * 10**5, "not what its manifest implies"),
    "text": (lambda t: bytes_with_header(t, b"{"), "header of its weights is no valid JSON"),
    "offsets": (lambda t: with_equal_offsets(t), "no safetensors"),
}


def exchanged(tensors):
    """Give the first member the weights of the second, and the other way round."""
    other = FIRST.replace("member.0", "member.1")
    return tensors | {FIRST: tensors[other], other: tensors[FIRST]}


def bytes_with_header(tensors, header):
    content = safetensors.numpy.save(tensors)
    (n,) = struct.unpack("<Q", content[:8])
    return content[:8] + header.ljust(n) + content[8 + n :]


def with_equal_offsets(tensors):
    content = safetensors.numpy.save(tensors)
    (n,) = struct.unpack("<Q", content[:8])
    header = re.sub(rb'"data_offsets":\[\d+,', b'"data_offsets":[0,', content[8 : 8 + n])
    return bytes_with_header(tensors, header)


@pytest.mark.parametrize(("change", "message"), IN_WEIGHTS.values(), ids=IN_WEIGHTS)
def test_wrong_weights_are_refused(change, message, saved, folder):
    manifest, tensors = parts_of(saved)
    damaged = rewritten(folder / "weights.fewlier", manifest, change(tensors))
    with pytest.raises(FormatError, match=f"weights.fewlier' .*{message}"):
        AnomalyDetector.load(damaged)


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([MANIFEST], "it has 1 parts in .*, not 2"),
        ([MANIFEST, WEIGHTS, "code.py"], "it has 3 parts in .*, not 2"),
        ([MANIFEST, WEIGHTS, WEIGHTS], "it has 3 parts in .*, not 2"),
        ([MANIFEST, MANIFEST], "its parts are"),
        ([MANIFEST, "/" + WEIGHTS], "its parts are"),
        ([MANIFEST, "../" + WEIGHTS], "its parts are"),
        ([str(i) for i in range(70_000)], "does not end as a zip"),
    ],
    ids=["one", "three", "twice", "manifests", "absolute", "above", "many"],
)
def test_other_parts_are_refused(names, message, folder):
    path = zipped(folder / "parts.fewlier", [(name, b"{}") for name in names])
    with pytest.raises(FormatError, match=f"parts.fewlier' .*{message}"):
        AnomalyDetector.load(path)


def test_a_directory_larger_than_it_says_is_refused_unread(folder):
    path = zipped(folder / "lying.fewlier", [(str(i), b"") for i in range(1000)])
    content = bytearray(path.read_bytes())
    content[-14:-10] = struct.pack("<HH", 2, 2)
    path.write_bytes(content)
    with pytest.raises(FormatError, match=r"2 parts in a directory of \d+ bytes"):
        AnomalyDetector.load(path)


def test_parts_longer_than_the_file_are_refused(saved, folder):
    content = bytearray(saved.read_bytes())
    record = content.rindex(b"PK\x01\x02")  # the weights' place in the directory
    content[record + 20 : record + 28] = struct.pack("<LL", 2**31, 2**31)
    path = folder / "claims.fewlier"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=r"its parts claim \d+ of its \d+ bytes"):
        AnomalyDetector.load(path)


def test_a_message_quotes_little_of_a_damaged_file(saved, folder):
    manifest, tensors = parts_of(saved)
    many = {f"key {i}": 1 for i in range(10**4)}
    for place in (manifest, manifest["extra"]):
        before = dict(place)
        place |= many
        path = rewritten(folder / "long.fewlier", manifest, tensors)
        with pytest.raises(FormatError, match=r"must be a record of .* \.\.\.") as caught:
            AnomalyDetector.load(path)
        assert len(str(caught.value)) < 1000
        place.clear()
        place |= before


def test_swapped_parts_are_refused(saved, folder):
    with zipfile.ZipFile(saved) as archive:
        parts = [(MANIFEST, archive.read(WEIGHTS)), (WEIGHTS, archive.read(MANIFEST))]
    with pytest.raises(FormatError, match="manifest is no valid JSON"):
        AnomalyDetector.load(zipped(folder / "swapped.fewlier", parts))


def test_compressed_parts_are_refused_before_they_grow(folder):
    parts = [(MANIFEST, b"0" * 10**7), (WEIGHTS, b"0" * 10**7)]
    bomb = zipped(folder / "bomb.fewlier", parts, zipfile.ZIP_DEFLATED)
    with pytest.raises(FormatError, match="is compressed"):
        AnomalyDetector.load(bomb)


def test_a_manifest_too_large_is_refused_unread(folder, monkeypatch):
    path = zipped(folder / "large.fewlier", [(MANIFEST, b" " * 100), (WEIGHTS, b"")])
    monkeypatch.setitem(MAX_BYTES, MANIFEST, 99)
    with pytest.raises(FormatError, match="is larger than 99 bytes"):
        read_manifest(path)


def test_a_model_of_too_many_categories_is_not_written(detector, folder, monkeypatch):
    monkeypatch.setattr("fewlier.modelfile.container.MAX_VALUES", 9)
    with pytest.raises(UserError, match="describe its columns in 9 values"):
        detector.save(folder / "unwritten.fewlier")


def test_what_could_not_be_loaded_takes_the_place_of_nothing(tmp_path):
    path, detector = tmp_path / "model.fewlier", fitted()
    detector.save(path)
    before = path.read_bytes()
    detector.max_epochs = 2**31
    with pytest.raises(UserError, match=r"can be loaded; read back, .*'max_epochs'.*Nothing was"):
        detector.save(path)
    detector.max_epochs = 3
    detector._memory.encoded.targets[:, 4] = 9
    with pytest.raises(UserError, match="read back, its memory has codes beyond"):
        detector.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", sorted(DENSITIES))
def test_rows_at_the_ends_of_what_can_be_scored_have_finite_scores(name, tmp_path):
    detector = fitted(density=name)
    detector.save(tmp_path / "model.fewlier")  # which reads it back and asks the same
    columns = detector.model_.encoder.schema.names
    rows = pd.DataFrame(extreme_rows(detector.model_.encoder), columns=list(columns))
    assert np.isfinite(detector.anomaly_score(rows)).all()


def test_a_model_of_too_many_layers_is_not_written(detector, folder, monkeypatch):
    monkeypatch.setattr("fewlier.modelfile.file.MAX_LAYERS", 9)
    with pytest.raises(UserError, match=r"through at most 9 layers, .*; got \d+. Fit with fewer"):
        detector.save(folder / "unwritten.fewlier")
    assert not (folder / "unwritten.fewlier").exists()


def test_a_model_too_large_is_not_written(detector, folder, monkeypatch):
    monkeypatch.setitem(MAX_BYTES, WEIGHTS, 99)
    with pytest.raises(UserError, match=r"'weights.safetensors' .* at most 99 bytes"):
        detector.save(folder / "unwritten.fewlier")
    assert not (folder / "unwritten.fewlier").exists()


@pytest.mark.parametrize(
    "content",
    [b"", b"PK", pickle.dumps({"a": 1}), np.random.default_rng(0).bytes(10_000)],
    ids=["nothing", "two bytes", "pickle", "noise"],
)
def test_what_is_no_zip_is_refused(content, folder):
    path = folder / "other.fewlier"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=r"other.fewlier' must .*(no zip|end as a zip)"):
        AnomalyDetector.load(path)


def test_a_torch_file_is_refused(folder):
    torch.save({"a": torch.zeros(2)}, folder / "torch.fewlier")
    with pytest.raises(FormatError, match=r"as a zip|parts"):
        AnomalyDetector.load(folder / "torch.fewlier")


def test_a_file_that_is_not_there_is_the_users_error(tmp_path):
    for path in (tmp_path / "absent.fewlier", tmp_path):
        with pytest.raises(UserError, match="must be a file that can be read") as caught:
            AnomalyDetector.load(path)
        assert not isinstance(caught.value, FormatError)


def loads_or_is_refused(path):
    try:
        return AnomalyDetector.load(path)
    except FormatError as error:
        message = str(error)
    assert path.name in message
    return None


@given(st.data())
@settings(max_examples=150)
def test_flipped_bytes_are_refused_or_change_no_score(detector, saved, folder, data):
    content = bytearray(saved.read_bytes())
    # Half of them in the zip's own records, at the end, which no checksum covers.
    places = st.integers(0, len(content) - 1) | st.integers(len(content) - 150, len(content) - 1)
    for place in data.draw(st.lists(places, min_size=1, max_size=4, unique=True)):
        content[place] ^= data.draw(st.integers(1, 255))
    path = folder / "flipped.fewlier"
    path.write_bytes(content)
    loaded = loads_or_is_refused(path)
    if loaded is not None:
        np.testing.assert_array_equal(
            loaded.anomaly_score(visits()), detector.anomaly_score(visits())
        )


@given(st.floats(0, 1, exclude_max=True), st.binary(max_size=30))
@settings(max_examples=50)
def test_truncated_files_are_refused(saved, folder, share, rest):
    content = saved.read_bytes()
    truncated = content[: int(share * len(content))] + rest
    assume(truncated != content)
    path = folder / "truncated.fewlier"
    path.write_bytes(truncated)
    assert loads_or_is_refused(path) is None


@given(st.data())
@settings(max_examples=150)
def test_changed_parts_with_right_checksums_raise_nothing_but_format_errors(saved, folder, data):
    with zipfile.ZipFile(saved) as archive:
        parts = [bytearray(archive.read(name)) for name in (MANIFEST, WEIGHTS)]
    part = data.draw(st.sampled_from(parts))
    place = data.draw(st.integers(0, len(part) - 1))
    part[place] = data.draw(st.integers(0, 255))
    loads_or_is_refused(rewritten(folder / "changed.fewlier", *map(bytes, parts)))


def nodes(document, path=()):
    """List the path of every value in a JSON document."""
    items = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in items:
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from nodes(value, (*path, key))


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
JSON = SCALARS | st.lists(SCALARS, max_size=3) | st.dictionaries(st.text(), SCALARS, max_size=2)


@given(st.data())
@settings(max_examples=300)
def test_any_other_value_in_the_manifest_raises_nothing_but_a_format_error(saved, folder, data):
    manifest, tensors = parts_of(saved)
    place = data.draw(st.sampled_from(list(nodes(manifest))))
    replace_at(manifest, place, data.draw(JSON))
    loads_or_is_refused(rewritten(folder / "value.fewlier", manifest, tensors))


@pytest.fixture(scope="module", params=sorted(set(DENSITIES) - {"made"}))
def other(request, folder):
    """The file of a detector with each of the other densities."""
    sizes = {"latent": 2, "n_samples": 3, "n_transforms": 2}
    path = folder / f"{request.param}.fewlier"
    fitted(density=request.param, **sizes).save(path)
    return path


@pytest.mark.parametrize("name", ["hidden", "latent", "n_samples", "n_transforms", "n_components"])
def test_sizes_beyond_the_file_are_refused_before_they_are_allocated(other, folder, name):
    manifest, tensors = parts_of(other)
    largest = 2**31 - 1
    manifest["density"][name] = [largest] if name == "hidden" else largest
    # A density that has no use for a size takes no harm from it.
    loads_or_is_refused(rewritten(folder / "sizes.fewlier", manifest, tensors))
    if name == "hidden":
        with pytest.raises(FormatError, match="smaller than its manifest implies"):
            AnomalyDetector.load(folder / "sizes.fewlier")


@given(st.data())
@settings(max_examples=40)
def test_other_densities_too_raise_nothing_but_a_format_error(other, folder, data):
    manifest, tensors = parts_of(other)
    place = data.draw(st.sampled_from(list(nodes(manifest["density"]))))
    replace_at(manifest["density"], place, data.draw(JSON | st.integers(1, 2**31 - 1)))
    loads_or_is_refused(rewritten(folder / "other.fewlier", manifest, tensors))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("density.flow.positions", "no permutation"),
        ("density.flow.degrees_0", "degrees out of range"),
        ("density.others.degrees_0", "degrees out of range"),
    ],
)
def test_a_flow_whose_columns_would_see_themselves_is_refused(name, message, folder):
    path = folder / "flow.fewlier"
    fitted(visits()[["age", "spend", "city"]].assign(income=visits(1)["age"]), density="flow").save(
        path
    )
    manifest, tensors = parts_of(path)
    first = (0,) * tensors[name].ndim
    damaged = rewritten(path, manifest, changed(name, put(first, 9))(tensors))
    with pytest.raises(FormatError, match=message):
        AnomalyDetector.load(damaged)


def test_saving_over_a_file_replaces_it_and_leaves_nothing_else(detector, saved, tmp_path):
    path = tmp_path / "model.fewlier"
    path.write_text("old")
    detector.save(path)
    assert path.read_bytes() == saved.read_bytes()
    assert os.listdir(tmp_path) == ["model.fewlier"]  # noqa: PTH208 - hidden files too


@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_save_that_fails_leaves_the_old_file_and_nothing_else(
    failure, detector, tmp_path, monkeypatch
):
    path = tmp_path / "model.fewlier"
    path.write_text("old")

    def fail(_):
        raise failure

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises((UserError, KeyboardInterrupt)):
        detector.save(path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_place_that_cannot_be_written_is_the_users_error(detector, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    for name in ("absent/m.fewlier", "folder", "file/m.fewlier", 300 * "m"):
        path = tmp_path / name
        with pytest.raises(UserError, match="must be saved where files can be written"):
            detector.save(path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


def test_a_detector_that_is_not_fitted_cannot_be_saved(tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        AnomalyDetector().save(tmp_path / "m.fewlier")


def test_a_parameter_that_json_cannot_hold_is_the_users_error(detector, tmp_path):
    strange = AnomalyDetector.load(saved_as(detector, tmp_path)).set_params(columns=object())
    with pytest.raises(UserError, match="must be text, numbers or lists; got <object"):
        strange.save(tmp_path / "strange.fewlier")


def test_the_zip_is_plain_and_any_tool_opens_it(saved):
    with zipfile.ZipFile(io.BytesIO(saved.read_bytes())) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == [MANIFEST, WEIGHTS]
