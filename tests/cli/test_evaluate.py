"""`fewlier evaluate`."""

import json
import re

import numpy as np
import pytest
from factories import FEATURES, payments
from processes import plain
from sklearn.metrics import average_precision_score, roc_auc_score

from fewlier import AnomalyDetector

ROWS = payments(150, seed=1)
IS_FRAUD = ROWS["fraud"] == 1
WORDS = np.where(ROWS["fraud"].isna(), "", np.where(IS_FRAUD, "bad", "fine"))


def csv(labels=ROWS["fraud"]):
    return ROWS.assign(fraud=labels).to_csv(index=False).encode()


LABELS = {
    "1.0 and 0.0": (csv(), []),
    "1 and 0": (csv(ROWS["fraud"].astype("Int8")), []),
    "True and False": (csv(ROWS["fraud"].astype("boolean")), []),
    "TRUE": (csv(ROWS["fraud"].map({1: "TRUE", 0: "FALSE"})), []),
    "true": (csv(ROWS["fraud"].map({1: " true", 0: "false "})), []),
    "words": (csv(WORDS), ["--anomaly", "bad"]),
    "missing words": (csv(np.where(WORDS == "", "NA", WORDS)), ["--anomaly", "bad"]),
    "a number": (csv(ROWS["fraud"].map({1: 7, 0: 3})), ["--anomaly", "7"]),
    "parquet float": (ROWS.to_parquet(), []),
    "parquet int": (ROWS.astype({"fraud": "Int8"}).to_parquet(), []),
    "parquet bool": (ROWS.astype({"fraud": "boolean"}).to_parquet(), []),
    "parquet words": (ROWS.assign(fraud=WORDS).to_parquet(), ["--anomaly", "bad"]),
    "-1 for unlabelled": (csv(ROWS["fraud"].fillna(-1).astype(int)), []),
}


@pytest.mark.parametrize(("content", "options"), LABELS.values(), ids=LABELS)
def test_labels_may_be_written_in_many_ways(content, options, model, fewlier):
    done = fewlier(
        "evaluate", "-", "-m", model, "--label", "fraud", "--json", *options, stdin=content
    )
    assert done.code == 0
    assert ("Values not named as anomalies count as normal" in done.err) == bool(options)
    detector = AnomalyDetector.load(model)
    is_labelled = ROWS["fraud"].notna()
    scores, truth = detector.anomaly_score(ROWS[FEATURES])[is_labelled], IS_FRAUD[is_labelled]
    above = scores > detector.threshold_
    found = json.loads(done.out)
    assert len(found.pop("by_kind")) == len(options) / 2
    assert found == {
        "n_normal": int((~truth).sum()),
        "n_anomaly": int(truth.sum()),
        "n_unlabelled": int((~is_labelled).sum()),
        "compared_with": "normal",
        "auc": pytest.approx(roc_auc_score(truth, scores)),
        "average_precision": pytest.approx(average_precision_score(truth, scores)),
        "threshold": detector.threshold_,
        "precision": pytest.approx(truth[above].mean()),
        "recall": pytest.approx(above[truth].mean()),
        "false_alarm_rate": pytest.approx(above[~truth].mean()),
        "unit": detector.score_unit_,
    }


def test_an_evaluation_does_not_depend_on_batches(model, fewlier, monkeypatch):
    def found():
        return fewlier("evaluate", "-", "-m", model, "--label", "fraud", stdin=csv()).out

    whole = found()
    monkeypatch.setattr("fewlier.files.text.BLOCK_BYTES", 2000)
    assert found() == whole


def test_a_strange_label_is_counted_over_batches(model, fewlier, monkeypatch):
    monkeypatch.setattr("fewlier.files.text.BLOCK_BYTES", 2000)
    labels = ROWS["fraud"].astype(object)
    labels[140] = "maybe"
    done = fewlier("evaluate", "-", "-m", model, "--label", "fraud", stdin=csv(labels))
    assert done.code == 2
    assert re.search(r"standard input: .*'fraud'.*got 'maybe' \(first at row 140\)", done.err)


def test_an_evaluation_reads_as_lines(model, fewlier):
    shown = plain(
        fewlier("evaluate", "-", "-m", model, "--label", "fraud", stdin=csv()).out.decode()
    )
    assert re.search(
        r"rows \d+ normal, \d+ anomalous, 30 unlabelled and left out AUC [01]\.\d+", shown
    )
    assert re.search(r"recall \d+\.\d% of the anomalies are above it false alarms \d", shown)


def test_an_evaluation_says_when_no_row_is_above_the_threshold(model, fewlier):
    detector = AnomalyDetector.load(model)
    normal = ROWS[detector.predict(ROWS[FEATURES]) == 0].head(20)
    content = normal.assign(fraud=[1, 0] * 10).to_csv(index=False).encode()
    options = ["evaluate", "-", "-m", model, "--label", "fraud"]
    assert "precision no row is above it" in plain(fewlier(*options, stdin=content).out.decode())
    found = json.loads(fewlier(*options, "--json", stdin=content).out)
    assert (found["precision"], found["recall"], found["false_alarm_rate"]) == (None, 0, 0)
