"""What survives a model file."""

import pickle  # noqa: TID251 - to show that it is refused
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from factories import visits
from model_files import LABELS, N, fitted, parts_of, rewritten, saved_as

from fewlier import AnomalyDetector
from fewlier.density import DENSITIES
from fewlier.modelfile import file
from fewlier.modelfile.container import opened
from fewlier.modelfile.probes import extreme_rows


@pytest.mark.slow
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
    assert repr(loaded) == repr(detector)
    assert loaded.summary_ == detector.summary_
    assert loaded.score_unit_ == detector.score_unit_
    assert loaded.model_.calibration.guarantee == detector.model_.calibration.guarantee
    assert loaded.model_.calibration.rule == detector.model_.calibration.rule != ""
    assert loaded.model_.calibration.decision == detector.model_.calibration.decision
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


@pytest.mark.slow
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
    assert (loaded.training.lambdas, loaded.columns) == ((0, 1), "real")
    assert loaded.density.hidden == (8,)
    assert loaded.false_alarm_rate == 0.25
    assert loaded.random_state is None
    assert loaded.n_features_in_ == 2
    assert not hasattr(loaded, "feature_names_in_")


@pytest.mark.slow
def test_one_column_and_a_column_missing_everywhere_survive(tmp_path):
    for X in (visits()[["city"]], visits()[["age"]].assign(empty=np.nan)):
        detector = fitted(X, false_alarm_rate=0.5)  # few rows are distinct
        loaded = AnomalyDetector.load(saved_as(detector, tmp_path))
        np.testing.assert_array_equal(loaded.anomaly_score(X), detector.anomaly_score(X))


@pytest.mark.slow
def test_a_loaded_model_does_not_keep_its_training_rows(saved):
    loaded = AnomalyDetector.load(saved)
    for name in ("decision_scores_", "labels_"):
        with pytest.raises(AttributeError, match="a loaded model does not keep them"):
            getattr(loaded, name)
    assert {line.status for line in loaded.history_} <= {"kept", "left out"}
    loaded.fit(visits(), LABELS)
    assert loaded.decision_scores_.shape == (N,)


def test_a_model_fitted_on_a_gpu_loads_without_one(saved, folder, monkeypatch):
    manifest, tensors = parts_of(saved)
    manifest["parameters"]["device"] = "cuda"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    loaded = AnomalyDetector.load(rewritten(folder / "cuda.fewlier", manifest, tensors))
    assert loaded.device == "cuda"
    # Five columns, and the rest of a row.
    assert loaded.model_.ensemble.members[0].centre.shape == (6,)


@pytest.mark.parametrize("selection", ["average", "best"])
def test_a_memory_returns_as_it_was(selection, tmp_path):
    detector = fitted(selection=selection, lambdas=(0, 1, 10))
    loaded = AnomalyDetector.load(saved_as(detector, tmp_path))
    found, kept = loaded._kept_rows, detector._kept_rows
    assert len(kept) == N
    for name in ("inputs", "targets", "observed", "impossible"):
        one, other = getattr(found.encoded, name), getattr(kept.encoded, name)
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype
    np.testing.assert_array_equal(found.labels, kept.labels)
    assert found.labels.dtype == kept.labels.dtype == np.int8
    np.testing.assert_array_equal(found.counted, kept.counted)
    np.testing.assert_array_equal(found.roles, kept.roles)
    members = [d.model_.ensemble.members for d in (loaded, detector)]
    assert [m.lam for m in members[0]] == [m.lam for m in members[1]]
    assert len(found.roles) == {"average": 2, "best": 1}[selection]


@pytest.mark.slow
def test_a_file_without_a_memory_is_smaller_by_its_rows_and_scores_the_same(
    detector, saved, tmp_path
):
    without = fitted(keep_rows=False)
    path = saved_as(without, tmp_path)
    manifest, arrays = parts_of(path)
    assert manifest["kept_rows"] is None
    assert not any(name.startswith("kept_rows.") for name in arrays)
    assert saved.stat().st_size - path.stat().st_size > detector._kept_rows.n_bytes
    loaded = AnomalyDetector.load(path)
    assert (loaded.keep_rows, loaded._kept_rows) == (False, None)
    np.testing.assert_array_equal(loaded.anomaly_score(visits()), detector.anomaly_score(visits()))


@pytest.mark.slow
def test_the_memory_of_a_very_wide_table_loads(monkeypatch, tmp_path):
    monkeypatch.setattr(
        "fewlier.fitting.kept_rows.MAX_KEPT_BYTES", 1
    )  # a row for each role and fold
    loaded = AnomalyDetector.load(saved_as(fitted(), tmp_path))
    assert len(loaded._kept_rows) <= 10
    loaded.set_params(false_alarm_rate=0.5).update(visits(1).head(8), LABELS[:8])
    assert loaded.summary_.n_anomaly == 12


def test_a_file_is_opened_without_torch_and_its_probes_are_no_training_rows(saved):
    code = "import sys; from fewlier.modelfile.container import opened\n"
    code += "with opened(sys.argv[1]) as state:\n"
    code += "    is_right = state.part('model').part('ensemble').text('selection') == 'average'\n"
    code += "    sys.exit('torch' in sys.modules or not is_right)"
    assert subprocess.run([sys.executable, "-c", code, str(saved)]).returncode == 0
    probes = parts_of(saved)[0]["probes"]["rows"]
    training = visits().to_numpy().tolist()
    assert not any(row in training for row in probes)
    assert any(None in row for row in probes)


def test_a_file_is_opened_once(saved, monkeypatch):
    seen = []
    monkeypatch.setattr(file, "opened", lambda path: seen.append(path) or opened(path))
    AnomalyDetector.load(saved)
    assert seen == [saved]


def test_loading_unpickles_nothing(saved, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("something was unpickled")

    for name in ("Unpickler", "load", "loads"):
        monkeypatch.setattr(pickle, name, refuse)
    monkeypatch.setattr(torch, "load", refuse)
    monkeypatch.setattr(np, "load", refuse)
    AnomalyDetector.load(saved)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(DENSITIES))
def test_rows_at_the_ends_of_what_can_be_scored_have_finite_scores(name, tmp_path):
    detector = fitted(density=name)
    detector.save(tmp_path / "model.fewlier")  # which reads it back and asks the same
    columns = detector.model_.encoder.schema.names
    rows = pd.DataFrame(extreme_rows(detector.model_.encoder), columns=list(columns))
    assert np.isfinite(detector.anomaly_score(rows)).all()
