import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fewlier.decision.calibration import Calibration
from fewlier.decision.threshold import Promise
from fewlier.errors import UserError

score_lists = st.lists(st.floats(-50, 50), min_size=1, max_size=60)
few_scores = st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=60)  # many ties
shares = st.floats(0, 1, exclude_min=True, exclude_max=True)


def calibrated(normal_scores, training_scores=(0.0,), threshold=0.0, anomalies=(), prior=None):
    return Calibration(
        np.sort(np.asarray(normal_scores, dtype=float)),
        np.sort(np.asarray(training_scores, dtype=float)),
        threshold,
        Promise.EXACT,
        anomaly_scores=np.sort(np.asarray(anomalies, dtype=float)),
        prior=prior,
    )


def flagged(calibration, scores, fdr):
    scores = np.asarray(scores, dtype=float)
    return scores > calibration.at_discovery_rate(fdr, calibration.counts(scores)).threshold


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
def test_a_threshold_is_one_of_the_held_out_scores_and_falls_as_the_rate_rises(normals, rate):
    calibration = calibrated(normals)
    threshold = calibration.at_false_alarm_rate(rate).threshold
    assert threshold in normals
    assert threshold <= calibration.at_false_alarm_rate(rate / 2 or rate).threshold


@pytest.mark.parametrize("share", [0.0, 0.01, 0.05, 0.1])
@pytest.mark.parametrize("rate", [0.02, 0.1])
@pytest.mark.parametrize("shift", [0.0, 1.0, 5.0])
def test_hidden_anomalies_among_the_held_out_rows_only_make_alarms_rarer(share, rate, shift):
    rng, n, alarms = np.random.default_rng(0), 200, []
    for _ in range(1000):
        held_out = rng.normal(size=n) + shift * (rng.random(n) < share)
        threshold = calibrated(held_out).at_false_alarm_rate(rate).threshold
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
@pytest.mark.parametrize("labelled", [0, 0.01, 0.2])
def test_contamination_is_the_share_of_new_rows_above_the_threshold(share, labelled):
    rng, flagged = np.random.default_rng(1), []
    for _ in range(300):
        anomalies = rng.normal(3, 1, round(500 * labelled))
        known = calibrated([0.0], rng.normal(size=500 - len(anomalies)), anomalies=anomalies)
        at = replace(known, labelled_share=labelled).at_contamination(share).decision
        new = rng.normal(3 * (rng.random(500) < labelled), 1)
        flagged.append((new > at.value).mean())
        assert at.flagged == pytest.approx(share, abs=0.003)
        assert at.flagged <= share
    error = 4 * np.std(flagged) / np.sqrt(len(flagged))
    assert np.mean(flagged) == pytest.approx(share, abs=error + 0.002)


def test_a_contamination_too_small_for_the_rows_flags_as_few_as_can_be_known():
    at = calibrated([0.0], np.arange(9.0)).at_contamination(0.001).decision
    assert (at.value, at.flagged) == (8, 0.1)
    assert ("flags", "about 10 % of new rows like the training rows") in at.facts


def test_costs_are_told_beside_those_of_flagging_all_rows_or_none():
    rng = np.random.default_rng(0)
    normals = rng.normal(size=2000)
    good = calibrated(normals, anomalies=rng.normal(4, 1, 50)).at_costs(20, 1, 0.05).decision.costs
    assert (good.flag_all, good.flag_none) == pytest.approx((0.95, 1.0))
    fresh, odd = rng.normal(size=10**5), rng.normal(4, 1, 10**5)
    at = calibrated(normals, anomalies=rng.normal(4, 1, 50)).at_costs(20, 1, 0.05).decision
    true = 0.05 * 20 * (odd <= at.value).mean() + 0.95 * (fresh > at.value).mean()
    assert at.costs.expected == pytest.approx(true, abs=0.1)
    assert good.expected < 0.4
    assert "no better" not in good.meaning
    useless = calibrated(normals, anomalies=rng.normal(0, 1, 50)).at_costs(1000, 1, 0.05).decision
    assert useless.costs.expected >= useless.costs.flag_all
    assert "no better than flagging all" in dict(useless.facts)["expected"]
    none = calibrated(normals, anomalies=rng.normal(1, 1, 5)).at_costs(1, 1000, 0.01).decision.costs
    assert none.expected == none.flag_none
    assert "no better than flagging none" in none.meaning
    assert "rough" in none.meaning


@given(normals=score_lists | few_scores, scores=score_lists | few_scores, rate=shares)
def test_a_discovery_rate_flags_what_benjamini_and_hochberg_reject(normals, scores, rate):
    calibration = calibrated(normals)
    adjusted = stats.false_discovery_control(calibration.p_value(np.array(scores)))
    if np.isclose(adjusted, rate, rtol=1e-9).any():
        return  # either answer is right
    assert (flagged(calibration, scores, rate) == (adjusted <= rate)).all()


@pytest.mark.parametrize("share", [0.0, 0.05, 0.3])
@pytest.mark.parametrize("fdr", [0.05, 0.2])
def test_the_realised_false_discovery_rate_is_as_asked(share, fdr):
    rng, n, m = np.random.default_rng(0), 200, 500
    is_odd = np.arange(n) < share * n
    false, found = [], []
    for _ in range(1500):
        calibration = calibrated(rng.normal(size=m))
        marked = flagged(calibration, rng.normal(size=n) + 4 * is_odd, fdr)
        false.append((marked & ~is_odd).sum() / max(marked.sum(), 1))
        found.append(marked[is_odd].mean() if share else 0)
    # The theory says fdr times the share of normal rows, exactly but for ties.
    error = 5 * np.std(false) / np.sqrt(len(false))
    assert np.mean(false) <= (1 - share) * fdr + error
    if share >= 0.05:
        assert np.mean(found) > 0.3


def test_no_batch_flags_a_row_where_nothing_is_odd_enough_or_nothing_is_there():
    calibration = calibrated(np.arange(9.0))  # no p-value is below 1 / 10
    moved = calibration.at_discovery_rate(0.05, calibration.counts(np.array([99.0] * 5)))
    assert moved.threshold == math.inf
    assert calibration.at_discovery_rate(0.5, calibration.counts(np.empty(0))).threshold == math.inf
    assert flagged(calibration, [99.0] * 5, 0.11).all()


@pytest.mark.parametrize("prior", [0.02, 0.3])
def test_with_many_labels_a_probability_is_the_share_of_anomalies(prior):
    rng = np.random.default_rng(0)
    calibration = calibrated(rng.normal(size=2000), anomalies=rng.normal(2.5, 1, 400), prior=prior)
    is_odd = rng.random(100_000) < prior
    scores = rng.normal(size=100_000) + 2.5 * is_odd
    odds = np.log(prior / (1 - prior)) + stats.norm.logpdf(scores, 2.5) - stats.norm.logpdf(scores)
    ours, best = calibration.probability(scores), 1 / (1 + np.exp(-odds))
    assert ours.mean() == pytest.approx(prior, rel=0.15)
    brier = [np.mean((probability - is_odd) ** 2) for probability in (ours, best)]
    assert brier[0] < 1.05 * brier[1]
    for low in (0.0, 0.25, 0.5, 0.75):  # of rows given so much, about so many are anomalies
        rows = (ours >= low) & (ours < low + 0.25)
        assert is_odd[rows].mean() == pytest.approx(ours[rows].mean(), abs=0.12)
    assert "400 labelled anomalies" in calibration.meaning
    assert "rough" not in calibration.meaning


@pytest.mark.parametrize("k", [1, 3, 10])
def test_few_labels_make_no_certainty(k):
    rng = np.random.default_rng(k)
    calibration = calibrated(rng.normal(size=300), anomalies=np.full(k, 8.0), prior=0.5)
    assert calibration.probability(np.array([8.0])) <= (k + 1) / (k + 2) + 1e-3
    assert calibration.probability(np.array([0.0])) < 0.2
    assert calibration.meaning.endswith(
        "50 % of the rows are anomalies; rough, because they are few"
    )


def test_labels_that_contradict_the_score_leave_probabilities_that_rise():
    rng = np.random.default_rng(0)
    calibration = calibrated(rng.normal(size=300), anomalies=rng.normal(-5, 1, 20), prior=0.1)
    assert (np.diff(calibration.probability(np.linspace(-10, 10, 50))) > 0).all()


@pytest.mark.parametrize(("miss", "alarm"), [(1, 1), (100, 1), (1, 20)])
@pytest.mark.parametrize("share", [0.05, 0.3])
def test_a_threshold_by_cost_is_about_the_cheapest(miss, alarm, share):
    rng = np.random.default_rng(1)
    calibration = calibrated(rng.normal(size=2000), anomalies=rng.normal(2.5, 1, 400))

    def cost(threshold):
        missed = share * stats.norm.cdf(threshold, 2.5)
        return miss * missed + alarm * (1 - share) * stats.norm.sf(threshold)

    moved = calibration.at_costs(miss, alarm, share)
    cheapest = min(map(cost, np.linspace(-4, 8, 500)))
    assert cost(moved.threshold) <= 1.15 * cheapest
    assert moved.prior == share
    even = moved.probability(np.array([moved.threshold]))
    assert even == pytest.approx(alarm / (alarm + miss))
    assert moved.rule.startswith(f"a miss costs {miss}, an alarm {alarm}; ")


@pytest.mark.parametrize(
    ("miss", "alarm", "n_flagged", "end"),
    [
        (1e308, 1e-308, 420, "; every known row is flagged"),
        (1e-308, 1e308, 0, "; no known row is flagged"),
    ],
)
def test_a_threshold_beyond_all_known_scores_says_so_and_has_few_digits(
    miss, alarm, n_flagged, end
):
    rng = np.random.default_rng(1)
    normal, anomalous = rng.normal(size=400), rng.normal(2.5, 1, 20)
    moved = calibrated(normal, anomalies=anomalous).at_costs(miss, alarm, 0.1)
    assert (np.concatenate([normal, anomalous]) > moved.threshold).sum() == n_flagged
    assert moved.rule.endswith(end)
    assert abs(moved.threshold) < 1e7


def test_costs_need_anomalies_and_must_be_positive():
    with pytest.raises(UserError, match="A threshold by cost needs held-out labelled anomalies"):
        calibrated([0.0]).at_costs(1, 1, 0.1)
    labelled = calibrated([0.0, 1.0], anomalies=[3.0])
    for cost in (0, -1, math.nan, math.inf, "1"):
        with pytest.raises(UserError, match="'cost_miss' must be a positive number; got"):
            labelled.at_costs(cost, 1, 0.1)
        with pytest.raises(UserError, match="'cost_alarm' must be a positive number; got"):
            labelled.at_costs(1, cost, 0.1)
    with pytest.raises(UserError, match="'contamination' must be a share"):
        labelled.at_costs(1, 1, 0)
    with pytest.raises(UserError, match="'fdr' must be a share"):
        labelled.at_discovery_rate(1.5, labelled.counts(np.zeros(1)))


@given(
    normals=score_lists,
    scores=score_lists,
    threshold=st.floats(-50, 50),
    anomalies=st.lists(st.floats(-60, 1e6), max_size=5),
)
def test_a_probability_rises_with_the_score_and_is_one_half_at_the_threshold(
    normals, scores, threshold, anomalies
):
    calibration = calibrated(normals, threshold=threshold, anomalies=anomalies)
    probability = calibration.probability(np.sort(scores))
    assert (np.diff(probability) >= 0).all()
    assert ((probability >= 0) & (probability <= 1)).all()
    assert calibration.probability(np.array([threshold])) == 0.5
    assert ((probability > 0.5) <= (np.sort(scores) > threshold)).all()


@pytest.mark.parametrize("score", [-1e300, -1e9, 1e9, 1e300])
def test_a_far_score_has_a_probability(score):
    probability = calibrated([0.0, 1.0]).probability(np.array([score]))
    np.testing.assert_allclose(probability, score > 0, atol=1e-300)
    for prior in (None, 0.5):
        labelled = calibrated([0.0, 1.0], anomalies=[5.0, 9.0], prior=prior)
        assert (labelled.probability(np.array([score])) > 0.5) == (score > 0)


@pytest.mark.parametrize("share", [0, 1, -0.1, 1.5, math.nan, math.inf, "0.1", None])
def test_what_is_no_share_is_refused(share):
    with pytest.raises(UserError, match="'false_alarm_rate' must be a share between 0 and 1; got"):
        calibrated([0.0]).at_false_alarm_rate(share)
    with pytest.raises(UserError, match="'contamination' must be a share between 0 and 1; got"):
        calibrated([0.0]).at_contamination(share)


@pytest.mark.parametrize(("m", "rate"), [(200, 0.01), (300, 0.05), (19, 0.05)])
def test_95_percent_of_thresholds_have_a_false_alarm_rate_in_the_interval(m, rate):
    rng = np.random.default_rng(0)
    inside, rates = [], []
    for _ in range(2000):
        held_out = np.sort(rng.random(m))  # of a uniform score, the rate above x is 1 - x
        at = Calibration(held_out, held_out, 0.0, Promise.EXACT).at_false_alarm_rate(rate).decision
        low, high = at.interval
        inside.append(low <= 1 - at.value <= high)
        rates.append(1 - at.value)
    assert np.mean(inside) == pytest.approx(0.95, abs=0.02)
    assert np.mean(rates) == pytest.approx(at.rate, rel=0.1)


def test_a_threshold_says_its_rule_and_the_scatter_of_its_false_alarms():
    scores = np.linspace(0, 1, 999)
    promised = Calibration(scores, scores, 0.0, Promise.EXACT).at_false_alarm_rate(0.01).decision
    assert promised.meaning == (
        "false-alarm rate 1 %; 95 % of such thresholds have 0.5 to 1.7 % false alarms"
    )
    by_share = Calibration(scores, scores, 0.0, Promise.EXACT).at_contamination(0.1).decision
    assert by_share.meaning.startswith("contamination 10 %; 95 % of such thresholds have 8.")
    reused = Calibration(scores, scores, 0.0, Promise.NOTHING).at_false_alarm_rate(0.01).decision
    assert (reused.meaning, reused.interval) == ("false-alarm rate 1 %", None)
    assert reused.to_json()["false_alarm_interval"] is None
    few = Calibration(scores[:28], scores, 0.0, Promise.NOTHING).at_false_alarm_rate(0.01).decision
    assert few.meaning == "false-alarm rate 3.4 %; 1 % was asked for"
