import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fewlier.calibration import Calibration
from fewlier.errors import UserError

score_lists = st.lists(st.floats(-50, 50), min_size=1, max_size=60)
few_scores = st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=60)  # many ties
shares = st.floats(0, 1, exclude_min=True, exclude_max=True)


def calibrated(normal_scores, training_scores=(0.0,), threshold=0.0):
    return Calibration(
        np.sort(np.asarray(normal_scores, dtype=float)),
        np.sort(np.asarray(training_scores, dtype=float)),
        threshold,
        "exact",
    )


def p_value_by_definition(normals, score):
    return (1 + sum(normal >= score for normal in normals)) / (len(normals) + 1)


@given(normals=score_lists | few_scores, scores=score_lists | few_scores)
def test_a_p_value_is_the_share_of_normals_at_least_as_odd_the_row_counted_in(normals, scores):
    expected = [p_value_by_definition(normals, score) for score in scores]
    np.testing.assert_allclose(calibrated(normals).p_value(np.array(scores)), expected)


@given(normals=score_lists | few_scores, per_mille=st.integers(1, 999))
def test_a_threshold_flags_exactly_the_scores_whose_p_value_is_at_most_the_rate(normals, per_mille):
    rate = max(Fraction(per_mille, 1000), Fraction(1, len(normals) + 1))
    threshold = calibrated(normals).at_false_alarm_rate(float(rate)).threshold
    for score in {*normals, *(math.nextafter(normal, math.inf) for normal in normals)}:
        n_as_odd = 1 + sum(normal >= score for normal in normals)
        assert (score > threshold) == (Fraction(n_as_odd, len(normals) + 1) <= rate)


@given(normals=score_lists, rate=shares)
def test_a_threshold_is_one_of_the_held_back_scores_and_falls_as_the_rate_rises(normals, rate):
    calibration = calibrated(normals)
    threshold = calibration.at_false_alarm_rate(rate).threshold
    assert threshold in normals
    assert threshold <= calibration.at_false_alarm_rate(rate / 2 or rate).threshold


@pytest.mark.parametrize("share", [0.0, 0.01, 0.05, 0.1])
@pytest.mark.parametrize("rate", [0.02, 0.1])
@pytest.mark.parametrize("shift", [0.0, 1.0, 5.0])
def test_hidden_anomalies_among_the_held_back_rows_only_make_alarms_rarer(share, rate, shift):
    rng, n, alarms = np.random.default_rng(0), 200, []
    for _ in range(1000):
        held_back = rng.normal(size=n) + shift * (rng.random(n) < share)
        threshold = calibrated(held_back).at_false_alarm_rate(rate).threshold
        alarms.append(stats.norm.sf(threshold))
    # Five standard errors of the mean of so many draws.
    assert np.mean(alarms) <= rate + 5 * np.std(alarms) / np.sqrt(len(alarms))


@given(normals=score_lists, hidden=score_lists, scores=score_lists)
def test_hidden_anomalies_above_a_score_raise_its_p_value_and_others_bound_it(
    normals, hidden, scores
):
    score = np.array(scores[:1])
    clean, mixed = (calibrated(rows).p_value(score) for rows in (normals, normals + hidden))
    if min(hidden) >= score[0]:
        assert mixed >= clean
    share = len(hidden) / (len(normals) + len(hidden) + 1)
    assert mixed >= (1 - share) * clean * (1 - 1e-12)


@pytest.mark.parametrize(("n_normals", "smallest"), [(1, 1 / 2), (19, 1 / 20), (99, 1 / 100)])
def test_n_normals_vouch_for_a_rate_of_one_in_n_plus_one(n_normals, smallest):
    calibration = calibrated(np.arange(n_normals))
    assert calibration.smallest_rate == smallest
    for rate in (smallest, smallest / 100):
        assert calibration.at_false_alarm_rate(rate).threshold == n_normals - 1


@pytest.mark.parametrize("m", [7, 40])
def test_p_values_of_fresh_normals_are_never_smaller_than_uniform(m):
    rng = np.random.default_rng(m)
    n_fresh = 20_000
    normals, fresh = rng.gamma(2, size=(n_fresh, m)), rng.gamma(2, size=n_fresh)
    p = np.array(
        [calibrated(row).p_value(one[None])[0] for row, one in zip(normals, fresh, strict=True)]
    )
    for alpha in (0.05, 0.125, 0.3, 0.5, 0.9):
        attained = math.floor(alpha * (m + 1)) / (m + 1)
        n_below = int((p <= alpha).sum())
        assert stats.binomtest(n_below, n_fresh, attained).pvalue > 1e-4


@pytest.mark.parametrize("rate", [0.02, 0.1, 0.3])
def test_fresh_normals_exceed_the_threshold_at_most_as_often_as_asked(rate):
    rng = np.random.default_rng(0)
    thresholds = [
        calibrated(rng.normal(size=60)).at_false_alarm_rate(rate).threshold for _ in range(4000)
    ]
    exceeding = stats.norm.sf(thresholds)  # of each threshold, what a fresh normal does
    attained = math.floor(rate * 61) / 61
    assert np.mean(exceeding) == pytest.approx(
        attained, abs=4 * np.std(exceeding) / math.sqrt(4000)
    )
    assert attained <= rate


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5])
def test_contamination_is_the_share_of_training_scores_above_the_threshold(share):
    training = np.random.default_rng(1).normal(size=1000)
    threshold = calibrated([0.0], training).at_contamination(share).threshold
    assert np.mean(training > threshold) == pytest.approx(share)


@given(normals=score_lists, scores=score_lists, threshold=st.floats(-50, 50))
def test_a_probability_rises_with_the_score_and_is_one_half_at_the_threshold(
    normals, scores, threshold
):
    calibration = calibrated(normals, threshold=threshold)
    probability = calibration.probability(np.sort(scores))
    assert (np.diff(probability) >= 0).all()
    assert ((probability >= 0) & (probability <= 1)).all()
    assert calibration.probability(np.array([threshold])) == 0.5
    assert ((probability > 0.5) <= (np.sort(scores) > threshold)).all()


@pytest.mark.parametrize("score", [-1e300, -1e9, 1e9, 1e300])
def test_a_far_score_has_a_probability(score):
    probability = calibrated([0.0, 1.0]).probability(np.array([score]))
    np.testing.assert_allclose(probability, score > 0, atol=1e-300)


@pytest.mark.parametrize("share", [0, 1, -0.1, 1.5, math.nan, math.inf, "0.1", None])
def test_what_is_no_share_is_refused(share):
    with pytest.raises(UserError, match="'false_alarm_rate' must be a share between 0 and 1; got"):
        calibrated([0.0]).at_false_alarm_rate(share)
    with pytest.raises(UserError, match="'contamination' must be a share between 0 and 1; got"):
        calibrated([0.0]).at_contamination(share)
