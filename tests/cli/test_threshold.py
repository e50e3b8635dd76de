"""`fewlier threshold`."""

import json
import re

import pytest
from factories import FEATURES, payments
from processes import plain

from fewlier import AnomalyDetector


@pytest.mark.slow
def test_a_threshold_is_moved_in_place(model, fewlier):
    before = AnomalyDetector.load(model).threshold_
    done = fewlier("threshold", model, "--false-alarm-rate", 0.3, "--json")
    after = AnomalyDetector.load(model).threshold_
    assert after < before
    assert done.err == ""
    found = json.loads(done.out)
    low, high = found.pop("false_alarm_interval")
    assert 0 < low < found["expected_false_alarm_rate"] < high < 1
    assert found == {
        "model": str(model),
        "threshold_before": before,
        "threshold": after,
        "unit": "standard units",
        "rule": AnomalyDetector.load(model).summary_.rule,
        "expected_false_alarm_rate": pytest.approx(0.3, abs=0.05),
    }


@pytest.mark.slow
def test_a_threshold_is_moved_by_costs(model, fewlier):
    done = fewlier("threshold", model, "--cost-miss", 100, "--cost-alarm", 1)
    rule = r"a miss costs 100, an alarm 1; 5 % of the rows are anomalies"
    assert re.fullmatch(
        rf"threshold \S+ -> \S+ standard units \({rule}; 95 % of such thresholds have "
        rf"[\d.]+ to [\d.]+ % false alarms\), in {model}\n",
        done.out.decode(),
    )
    shown = plain(fewlier("inspect", model).out.decode())
    assert rule in shown
    assert "probability from 10 labelled anomalies that were held out, if 5 % of" in shown
    options = ["--cost-miss", 1, "--cost-alarm", 1, "--contamination", 0.2]
    assert fewlier("threshold", model, *options).code == 0
    assert AnomalyDetector.load(model).model_.calibration.prior == 0.2


def test_a_threshold_is_moved_into_another_file(model, fewlier, tmp_path):
    content = model.read_bytes()
    done = fewlier("threshold", model, "--contamination", 0.4, "-o", tmp_path / "new.fewlier")
    assert re.fullmatch(
        r"threshold \S+ -> \S+ standard units \(contamination 40 %; 95 % of such thresholds have "
        rf"[\d.]+ to [\d.]+ % false alarms\), in {tmp_path}/new.fewlier\n",
        done.out.decode(),
    )
    assert model.read_bytes() == content
    moved = AnomalyDetector.load(tmp_path / "new.fewlier")
    rows = payments()[FEATURES]
    assert moved.predict(rows).mean() == pytest.approx(0.4, abs=0.1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "--false-alarm-rate"),
        (["--cost-miss", 5], "--cost-alarm"),
        (["--cost-miss", 5, "--cost-alarm", -1], "--cost-alarm must be a positive number"),
        (["--false-alarm-rate", 0.1, "--contamination", 0.1], "contamination"),
        (["--false-alarm-rate", 2], "2"),
        (["--false-alarm-rate", 0.1, "-o", "absent/m.fewlier"], "absent/m.fewlier"),
        (["--false-alarm-rate", 0.1, "-o", "-"], "standard output"),
    ],
)
def test_a_threshold_that_cannot_be_set_leaves_the_model(
    options, message, model, fewlier, folder, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    before = folder()
    done = fewlier("threshold", model, *options)
    assert (done.code, done.out) == (2, b"")
    assert message in done.err
    assert folder() == before


def test_a_rate_that_cannot_be_had_is_noted(model, fewlier):
    done = fewlier("threshold", model, "--false-alarm-rate", 1e-6)
    assert done.code == 0
    assert done.err.startswith("fewlier: note: ")
    assert "site-packages" not in done.err
