"""Values never seen, far away or missing."""

import numpy as np
import pandas as pd
import pytest
from factories import small
from patients import NOTHING, N, patients, typical, with_missing_cells
from sklearn.metrics import roc_auc_score

from fewlier import UserError

# Values never seen


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("height", 1e300),
        ("height", -1e300),
        ("height", 300.0),
        ("weight", 1e300),
        ("visits", 1e300),  # a Poisson
        ("visits", 200.0),
        ("visits", -1.0),
        ("visits", 2.5),
        ("stars", 1e300),  # scored value by value
        ("stars", 6.0),
        ("stars", -1.0),
        ("stars", 2.5),
        ("spend", 1e300),
        ("spend", -1.0),
        ("insured", 2.0),
        ("insured", -1e300),
        ("insured", 0.5),
        ("city", "Paris"),
        ("city", 7.0),
        ("smoker", "perhaps"),
    ],
)
def test_a_value_never_seen_is_more_anomalous_than_a_usual_one(detector, column, value):
    usual, odd = typical(), typical(**{column: value})
    assert np.isfinite(detector.anomaly_score(odd)).all()
    assert np.isfinite(detector.score_samples(odd)).all()
    assert detector.anomaly_score(odd) > detector.anomaly_score(usual)
    assert detector.explain(odd).top(0)[0].column == column


@pytest.mark.parametrize("seen", ["Bern", "Oslo", "Rome"])
def test_an_unseen_category_is_more_anomalous_than_any_seen_one(detector, seen):
    scores = detector.anomaly_score(pd.concat([typical(city="Paris"), typical(city=seen)]))
    assert scores[0] > scores[1]


def test_the_farther_a_value_the_more_anomalous(detector):
    heights = [200.0, 250.0, 1e3, 1e6, 1e30, 1e300]
    scores = detector.anomaly_score(pd.concat([typical(height=height) for height in heights]))
    assert (np.diff(scores) > 0).all()


def test_infinite_cells_are_an_error(detector):
    with pytest.raises(UserError, match="Column 'height' must hold finite numbers"):
        detector.anomaly_score(typical(height=np.inf))


# Missing cells


@pytest.mark.parametrize("column", patients(3).columns)
def test_a_cell_missing_where_training_missed_none_is_surprising(detector, column):
    scores = detector.anomaly_score(pd.concat([typical(**{column: None}), typical()]))
    assert np.isfinite(scores).all()
    assert scores[0] > scores[1]


def test_a_row_without_any_cell_is_no_more_normal_than_the_median_row(detector):
    assert detector.anomaly_score(NOTHING) >= np.median(detector.anomaly_score(patients()))


@pytest.mark.slow
def test_nor_is_it_where_cells_were_missing_in_training(detector_of_gaps):
    scores = detector_of_gaps.anomaly_score(with_missing_cells(patients()))
    assert detector_of_gaps.anomaly_score(NOTHING) >= np.median(scores)


@pytest.mark.slow
def test_cells_left_out_at_random_still_let_anomalies_stand_out(detector_of_gaps):
    fresh = with_missing_cells(patients(seed=1, n_anomalies=60), share=0.1, seed=1)
    scores = detector_of_gaps.anomaly_score(fresh)
    assert np.isfinite(scores).all()
    assert roc_auc_score(np.arange(N) < 60, scores) > 0.8


def test_a_date_a_century_away_is_odd_by_a_bounded_amount_and_one_in_months_is_not():
    rng = np.random.default_rng(0)
    days = pd.date_range("2026-01-01", periods=300, freq="7h").strftime("%Y-%m-%d")
    detector = small().fit(pd.DataFrame({"x": rng.normal(size=300), "when": days}))
    dates = ["2026-02-11", "2026-09-16", "1926-02-10", "2126-02-13", "9999-12-29"]
    score = detector.anomaly_score(pd.DataFrame({"x": 0.0, "when": dates}))
    assert max(score[:2]) + 1 < score[2] < score[0] + 25
    np.testing.assert_allclose(score[3:], score[2], rtol=1e-6)
