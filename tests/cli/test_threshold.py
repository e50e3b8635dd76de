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
    assert found.pop("expected_flagged_share") == pytest.approx(0.33, abs=0.05)
    assert "40 of 190 rows behind the rate are unlabelled" in found.pop("caveat")
    assert found == {
        "model": str(model),
        "threshold_before": before,
        "threshold": after,
        "unit": "standard units",
        "rule": AnomalyDetector.load(model).summary_.rule,
        "expected_false_alarm_rate": pytest.approx(0.3, abs=0.05),
        "costs": None,
    }


@pytest.mark.slow
def test_a_threshold_is_moved_by_costs(model, fewlier):
    costs = "--cost-miss", 100, "--cost-alarm", 1
    refused = fewlier("threshold", model, *costs)
    assert refused.code == 2
    assert "--contamination" in refused.err
    assert "unlabelled" in refused.err
    done = fewlier("threshold", model, *costs, "--contamination", 0.05)
    rule = "a miss costs 100, an alarm 1; 5 % of the rows are anomalies"
    lines = dict(line.split(maxsplit=1) for line in done.out.decode().splitlines())
    assert rule in lines["threshold"]
    assert lines["threshold"].endswith(f", in {model}")
    assert "flagging all costs 950, flagging none 5,000" in lines["expected"]
    assert "% of new rows like the training rows" in lines["flags"]
    shown = plain(fewlier("inspect", model).out.decode())
    assert rule in shown
    assert lines["expected"] in shown
    assert "probability from 10 labelled anomalies that were held out, if 5 % of" in shown
    options = ["--cost-miss", 1, "--cost-alarm", 1, "--contamination", 0.2]
    assert fewlier("threshold", model, *options).code == 0
    assert AnomalyDetector.load(model).model_.calibration.prior == 0.2


def test_a_threshold_is_moved_into_another_file(model, fewlier, tmp_path):
    content = model.read_bytes()
    done = fewlier("threshold", model, "--contamination", 0.4, "-o", tmp_path / "new.fewlier")
    first, flags, *_ = done.out.decode().splitlines()
    assert re.fullmatch(
        r"threshold +\S+ -> \S+ standard units \(contamination 40 %; 95 % of such thresholds have "
        rf"[\d.]+ to [\d.]+ % false alarms\), in {tmp_path}/new.fewlier",
        first,
    )
    assert re.fullmatch(r"flags +about (39|40) % of new rows like the training rows", flags)
    assert model.read_bytes() == content
    moved = AnomalyDetector.load(tmp_path / "new.fewlier")
    assert moved.predict(payments(seed=1)[FEATURES]).mean() == pytest.approx(0.4, abs=0.15)


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
