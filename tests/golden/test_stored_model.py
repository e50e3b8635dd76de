"""A model file of an earlier day must load and say what it said."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from factories import visits
from model_files import LABELS, parts_of

from fewlier import AnomalyDetector

FILE = Path(__file__).with_name("version_1.fewlier")
# Nothing is trained, so nothing amplifies rounding: 1e-8 over processors.
TOLERANCE = 1e-6


def test_the_golden_file_loads_and_scores_as_recorded():
    expected = json.loads(FILE.with_suffix(".json").read_text("utf-8"))
    loaded = AnomalyDetector.load(FILE)
    assert parts_of(FILE)[0]["version"] == 1
    table = pd.DataFrame(expected["rows"])
    scores = loaded.anomaly_score(table)
    np.testing.assert_allclose(scores, expected["scores"], rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(loaded.explain(table).score, scores, rtol=1e-12, atol=1e-6)
    proba = loaded.predict_proba(table)[:, 1]
    np.testing.assert_allclose(proba, expected["proba"], rtol=0, atol=TOLERANCE)
    assert loaded.threshold_ == expected["threshold"]
    assert list(loaded.drift(visits().assign(age=70.0)).columns) == expected["drifted"]


@pytest.mark.slow
def test_the_golden_file_can_be_updated():
    loaded = AnomalyDetector.load(FILE)
    before = loaded.anomaly_score(visits())
    loaded.update(visits(3).head(20), LABELS[:20])
    assert loaded.summary_.n_anomaly == 12
    assert not np.array_equal(loaded.anomaly_score(visits()), before)
