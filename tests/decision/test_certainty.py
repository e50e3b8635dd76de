"""p-values, false-discovery rates, probabilities and costs, from real fits."""

import numpy as np
import pandas as pd
import pytest
from factories import small

from fewlier import AnomalyDetector, UserError
from fewlier.errors import FewlierWarning

pytestmark = pytest.mark.slow


def correlated(n, rng, odd=0):
    """Return two numbers that follow each other and a count; odd rows break how they do."""
    x = rng.normal(size=n)
    y = x + rng.normal(0, 0.3, n)
    y[:odd] -= 6 * np.sign(x[:odd])
    return pd.DataFrame({"x": x, "y": y, "k": rng.poisson(4, n).astype(float)})


def skewed(n, rng, odd=0):
    """Return an amount and a category; odd rows have amounts far too large."""
    amount = rng.lognormal(0, 1, n)
    amount[:odd] *= 60
    return pd.DataFrame({"amount": amount, "city": rng.choice(["Bern", "Oslo", "Rome"], n)})


def gappy(n, rng, odd=0):
    return correlated(n, rng, odd).mask(rng.random((n, 3)) < 0.15)


TABLES = [correlated, skewed, gappy]


def fitted(table, seed=0, n=600, odd=8, **changes):
    rng = np.random.default_rng(seed)
    quick = {"max_epochs": 8, "false_alarm_rate": 0.1, "random_state": seed}
    labels = np.arange(n) < odd
    return small(**quick | changes).fit(table(n, rng, odd), labels)


FITTED = {}


def one(table):
    """Return one detector for all tests that only look at it."""
    if table not in FITTED:
        FITTED[table] = fitted(table)
    return FITTED[table]


@pytest.mark.parametrize("table", TABLES)
def test_fresh_normals_raise_false_alarms_as_often_as_asked(table):
    rates = []
    for seed in range(8):
        detector = fitted(table, seed, lambdas=(0,), odd=0, max_epochs=3)
        p = detector.p_value(table(1000, np.random.default_rng(1000 + seed)))
        m = len(detector.model_.calibration.normal_scores)
        attained = np.floor(0.2 * (m + 1)) / (m + 1)
        rates.append((p <= 0.2).mean() - attained)
    # A fit's own rate varies as m held-out normals do; over fits it is right on average.
    error = 4 * np.sqrt(0.2 * 0.8 / m / len(rates))
    assert abs(np.mean(rates)) <= error


def normal(columns):
    return lambda n, rng: pd.DataFrame(rng.normal(size=(n, columns)))


def categories(n, rng):
    return pd.DataFrame(rng.choice(list("abcdef"), (n, 10)))


@pytest.mark.long
@pytest.mark.parametrize(
    ("table", "n", "odd", "before"),
    [(normal(5), 20, 0, 0.16), (normal(30), 50, 3, 0.18), (categories, 50, 0, 0.17)],
    ids=["20 x 5", "50 x 30, three labels", "50 x 10 categories"],
)
def test_few_rows_or_many_columns_raise_no_more_false_alarms_than_asked(table, n, odd, before):
    """`before` is what 10 % was where the rows that calibrate set the scales they are placed on."""
    rates = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = table(n + odd, rng)
        if odd:
            X.iloc[:odd] += 5
        y = np.arange(n + odd) < odd if odd else None
        detector = AnomalyDetector(false_alarm_rate=0.1, random_state=seed).fit(X, y)
        rates.append((detector.p_value(table(1000, rng)) <= 0.1).mean())
    error = np.std(rates) / np.sqrt(len(rates))
    assert np.mean(rates) <= 0.1 + 2 * error < before
    assert np.mean(rates) >= 0.05  # nor much rarer


@pytest.mark.parametrize("table", TABLES)
def test_the_labels_make_probabilities_that_agree_with_the_threshold_until_a_share_is_stated(table):
    detector = one(table)
    rows = table(400, np.random.default_rng(5), odd=100)
    proba = detector.predict_proba(rows)
    np.testing.assert_allclose(proba.sum(1), 1)
    assert (proba.argmax(1) == detector.predict(rows)).all()
    assert (np.argsort(proba[:, 1]) == np.argsort(detector.anomaly_score(rows))).mean() > 0.9
    meaning = detector.model_.calibration.meaning
    assert meaning.startswith("from 8 labelled anomalies that were held out, even odds at the")


def test_a_stated_share_makes_probabilities_calibrated(tmp_path):
    detector = fitted(correlated, odd=40, max_epochs=30, n=1500)
    rows = correlated(2000, np.random.default_rng(6), odd=100)
    detector.set_threshold(cost_miss=1, cost_alarm=1, contamination=0.05)
    probability = detector.predict_proba(rows)[:, 1]
    assert probability.mean() == pytest.approx(0.05, abs=0.03)
    assert (detector.predict(rows) == (probability > 0.5)).all()
    detector.save(tmp_path / "m.fewlier")
    loaded = AnomalyDetector.load(tmp_path / "m.fewlier")
    np.testing.assert_array_equal(loaded.predict_proba(rows)[:, 1], probability)
    assert loaded.summary_.rule == "a miss costs 1, an alarm 1; 5 % of the rows are anomalies"
    assert loaded.model_.calibration.prior == 0.05
    loaded.set_threshold(false_alarm_rate=0.1)
    assert loaded.model_.calibration.prior is None


def test_dearer_misses_lower_the_threshold_and_dearer_alarms_raise_it():
    detector = fitted(correlated)
    even, dear_miss, dear_alarm = (
        detector.set_threshold(cost_miss=miss, cost_alarm=alarm).threshold_
        for miss, alarm in ((1, 1), (100, 1), (1, 100))
    )
    assert dear_miss < even < dear_alarm
    assert detector.model_.calibration.prior == 8 / 600
    assert detector.set_threshold(cost_miss=1, cost_alarm=1, contamination=0.4).threshold_ < even


@pytest.mark.parametrize("odd", [0, 1])
def test_without_two_labels_probabilities_are_an_order_and_costs_are_refused(odd):
    detector = fitted(correlated, odd=odd, max_epochs=1)
    assert detector.model_.calibration.meaning.startswith("an order of rows, no frequency")
    with pytest.raises(UserError, match="A threshold by cost needs held-out labelled anomalies"):
        detector.set_threshold(cost_miss=1, cost_alarm=1, contamination=0.1)


@pytest.mark.parametrize(
    "changes",
    [{"cost_miss": 1}, {"cost_alarm": 1}, {"cost_miss": 1, "cost_alarm": 1, "false_alarm_rate": 1}],
)
def test_costs_come_as_two_and_alone(changes):
    with pytest.raises(UserError, match="'cost_miss' and 'cost_alarm'") as caught:
        one(correlated).set_threshold(**changes)
    assert caught.value.parameter in changes


def test_anomalies_that_the_user_chose_to_validate_on_stand_behind_probabilities():
    rng = np.random.default_rng(0)
    held_out = correlated(100, rng, odd=5), np.arange(100) < 5
    detector = small(max_epochs=2).fit(correlated(300, rng), validation=held_out)
    assert len(detector.model_.calibration.anomaly_scores) == 5


def test_an_update_brings_its_anomalies_to_the_probabilities():
    detector = fitted(correlated, max_epochs=2)
    more = correlated(30, np.random.default_rng(9), odd=10)
    detector.update(more, np.arange(30) < 10)
    assert len(detector.model_.calibration.anomaly_scores) == 18
    detector.set_threshold(cost_miss=1, cost_alarm=1)
    assert detector.model_.calibration.prior == 18 / 630


def test_few_of_the_rows_flagged_at_a_false_discovery_rate_are_normal():
    detector = fitted(correlated, n=3000, max_epochs=20)
    shares, found = [], []
    for seed in range(20):
        rows = correlated(300, np.random.default_rng(100 + seed), odd=60)
        flagged = detector.predict(rows, fdr=0.2)
        shares.append(flagged[60:].sum() / max(flagged.sum(), 1))
        found.append(flagged[:60].mean())
    # All batches share the fit's held-out normals, so that the error of those stays.
    assert np.mean(shares) <= 0.2 + 0.05
    assert np.mean(found) > 0.5
    normal = correlated(300, np.random.default_rng(1))
    assert detector.predict(normal, fdr=0.2).mean() < 0.05


def test_a_false_discovery_rate_is_a_share_that_enough_normals_vouch_for():
    detector, rows = one(skewed), skewed(20, np.random.default_rng(3), odd=20)
    with pytest.raises(UserError, match="'fdr' must be a share between 0 and 1; got 2"):
        detector.predict(rows, fdr=2)
    with pytest.warns(FewlierWarning, match="needs at least 999 held-out normal rows; there are"):
        assert not detector.predict(rows, fdr=0.001).any()
