"""What a detector promises with every density."""

import copy
import itertools

import numpy as np
import pandas as pd
import pytest
from factories import small
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

from fewlier import AnomalyDetector, UserError
from fewlier.density import DENSITIES
from fewlier.score.scorer import CHUNK

pytestmark = pytest.mark.slow

N, N_ANOMALIES = 300, 6
LABELS = np.arange(N) < N_ANOMALIES

each_density = pytest.mark.parametrize("name", DENSITIES)
each_selection = pytest.mark.parametrize("selection", ["average", "best"])


def orders(n=N, seed=0, gaps=0.1, odd=0):
    """Return columns of every kind, the first `odd` rows of which break how they hang together."""
    rng = np.random.default_rng(seed)
    weight = rng.normal(50, 10, n)
    price = 3 * weight + rng.normal(0, 3, n)
    price[:odd] += 150
    table = pd.DataFrame(
        {
            "weight": weight,
            "price": price,
            "items": rng.poisson(30, n).astype(float),
            "delay": np.where(rng.random(n) < 0.2, 0, rng.lognormal(0, 2, n)),
            "gift": rng.integers(0, 2, n).astype(float),
            "city": rng.choice(["Bern", "Oslo", "Rome"], n),
        }
    )
    return table.mask(rng.random(table.shape) < gaps, None)


def strange_orders():
    """Return normal rows, one with a value never seen in each column, and an empty one."""
    odd = orders(6, seed=2, gaps=0)
    odd.loc[0, "weight"] = 1e300
    odd.loc[1, "price"] = -900.0
    odd.loc[2, "items"] = -1.0
    odd.loc[3, "city"] = "Paris"
    odd.loc[4, "delay"] = 1e30
    odd.loc[5] = None
    return pd.concat([orders(200, seed=1), odd], ignore_index=True)


def quick(name, selection="average", **changes):
    sizes = {"latent": 4, "n_samples": 3, "n_transforms": 2, "max_epochs": 15}
    return small(density=name, selection=selection, **sizes | changes)


FITTED = {}


def fitted(name, selection="average"):
    """Return one detector for all tests that only look at it."""
    if (name, selection) not in FITTED:
        detector = quick(name, selection)
        FITTED[name, selection] = detector.fit(orders(odd=N_ANOMALIES), LABELS)
    return FITTED[name, selection]


@each_density
@each_selection
def test_scores_of_strange_rows_are_numbers_and_above_those_of_normal_rows(name, selection):
    scores = fitted(name, selection).anomaly_score(strange_orders())
    assert np.isfinite(scores).all()
    assert (scores[200:205] > np.median(scores)).all()


@each_density
def test_it_finds_rows_like_the_labelled_ones(name):
    fresh = orders(seed=3, odd=100)
    assert roc_auc_score(np.arange(N) < 100, fitted(name).anomaly_score(fresh)) > 0.85


@each_density
@each_selection
def test_columns_and_remainder_add_up_to_the_score(name, selection):
    detector, table = fitted(name, selection), strange_orders()
    explanation, score = detector.explain(table), detector.anomaly_score(table)
    total = explanation.contributions.sum(1) + explanation.remainder
    np.testing.assert_allclose(total, score - explanation.baseline, rtol=1e-12, atol=1e-6)
    density = detector.model_.ensemble.density
    assert explanation.remainder_name == density.remainder
    alone, rest = explanation.meaning == density.meaning, " of the score is how much further"
    assert explanation.meaning.startswith(density.meaning)
    assert alone if selection == "best" else rest in explanation.meaning
    if explanation.remainder_name == "(none)":
        assert not explanation.remainder.any()
    lines = explanation.to_frame()
    n_remainders = (lines["column"] == explanation.remainder_name).sum()
    assert n_remainders == (explanation.remainder != 0).sum()


@each_density
def test_a_planted_corruption_is_the_first_reason(name):
    table = orders(20, seed=4, gaps=0).assign(price=-300.0)
    explanation = fitted(name).explain(table)
    first = [explanation.top(row, 1)[0].column for row in range(20)]
    assert first.count("price") >= 18


@each_density
@each_selection
def test_the_expected_range_holds_about_nine_tenths_of_fresh_normals(name, selection):
    fresh = orders(400, seed=7)
    found = fitted(name, selection).explain(fresh).expected
    numbers = fresh[["weight", "price", "items", "delay"]].to_numpy(dtype=float)
    low, high = (end.reshape(400, 6)[:, :4] for end in (found.low, found.high))
    known = ~np.isnan(numbers)
    inside = ((numbers >= low) & (numbers <= high))[known]
    # A fit of a second is no better calibrated; the mean is over columns that differ.
    assert 0.8 <= inside.mean() <= 0.995
    assert (low <= high).all()


@each_density
@each_selection
def test_a_value_planted_far_away_lies_outside_what_was_expected(name, selection):
    detector = fitted(name, selection)
    for column, value in {"weight": 1e4, "price": -3000.0, "items": 900.0, "delay": 1e9}.items():
        table = orders(20, seed=4, gaps=0).assign(**{column: value})
        for row in detector.explain(table).tops(n=6):
            (reason,) = (reason for reason in row if reason.column == column)
            assert reason.expected_low <= reason.expected <= reason.expected_high
            assert not reason.expected_low <= value <= reason.expected_high
    for row in detector.explain(orders(20, seed=4, gaps=0).assign(city="Paris")).tops(n=6):
        (reason,) = (reason for reason in row if reason.column == "city")
        assert set(reason.expected_categories) == {"Bern", "Oslo", "Rome"}
        assert sum(reason.expected_categories.values()) == pytest.approx(1)


@each_density
def test_what_was_expected_is_the_same_one_row_at_a_time(name):
    explanation = fitted(name).explain(strange_orders())
    whole, d = explanation.tops(n=6), len(explanation.columns)
    for row in (0, 120, 201, 205):
        for one, other in zip(explanation.top(row, 6), whole[row], strict=True):
            cell = row * d + explanation.columns.index(one.column)
            assert one[:3] == other[:3]
            for *_, categories, missing in (other[3:8], explanation.expected.at(cell)[:5]):
                assert one.expected_categories == pytest.approx(categories)
                assert one.expected_missing == pytest.approx(missing)
            for numbers in (other[3:6], explanation.expected.at(cell)[:3]):
                assert one[3:6] == pytest.approx(numbers)


@each_density
def test_a_gap_is_expected_as_often_as_there_are_gaps(name):
    table = orders(gaps=0.0)
    table.loc[::4, "price"] = None
    detector = quick(name, lambdas=(0,), max_epochs=30).fit(table)
    found = detector.explain(table).expected.missing.reshape(len(table), 6)
    assert found[:, 1].mean() == pytest.approx(0.25, abs=0.05)
    assert (found[:, [0, 2, 3, 4, 5]] == 0).all()  # never missing in training


@each_density
def test_nothing_is_expected_of_a_column_that_had_no_value(name):
    table = orders(60, gaps=0.0).assign(weight=np.nan)
    explanation = (
        quick(name, max_epochs=1, lambdas=(0,)).fit(table).explain(table.assign(weight=1.0))
    )
    (reason,) = (r for r in explanation.top(0, 6) if r.column == "weight")
    assert reason[3:8] == (None, None, None, None, 1.0)
    assert str(reason).startswith("weight = 1, expected missing (100 %): ")


@each_density
@each_selection
def test_a_saved_detector_says_the_same_bit_for_bit(name, selection, tmp_path):
    detector, table = fitted(name, selection), strange_orders()
    detector.save(tmp_path / "model.fewlier")
    loaded = AnomalyDetector.load(tmp_path / "model.fewlier")
    np.testing.assert_array_equal(loaded.anomaly_score(table), detector.anomaly_score(table))
    one, other = loaded.explain(table), detector.explain(table)
    np.testing.assert_array_equal(one.contributions, other.contributions)
    np.testing.assert_array_equal(one.remainder, other.remainder)
    assert one.tops() == other.tops()
    assert str(loaded.get_params()) == str(detector.get_params())
    assert loaded.summary_ == detector.summary_
    loaded.save(tmp_path / "again.fewlier")
    again = (tmp_path / "again.fewlier").read_bytes()
    assert again == (tmp_path / "model.fewlier").read_bytes()


@each_density
@each_selection
def test_a_row_scores_the_same_alone_in_any_batch_and_across_chunks(name, selection):
    detector, n = fitted(name, selection), CHUNK["cpu"] + 17
    table = orders(n, seed=5)
    scores, explanation = detector.anomaly_score(table), detector.explain(table)
    order = np.random.default_rng(0).permutation(n)
    np.testing.assert_array_equal(detector.anomaly_score(table.iloc[order]), scores[order])
    for rows in ([7], [n - 1, 3], range(40, 60)):
        part = table.iloc[list(rows)]
        np.testing.assert_array_equal(detector.anomaly_score(part), scores[list(rows)])
        contributions = detector.explain(part).contributions
        np.testing.assert_array_equal(contributions, explanation.contributions[list(rows)])


@each_density
def test_the_same_seed_gives_the_same_scores(name):
    table = orders(120, odd=4)
    one, other = (
        quick(name, max_epochs=2, lambdas=(10,)).fit(table, np.arange(120) < 4) for _ in range(2)
    )
    np.testing.assert_array_equal(one.anomaly_score(table), other.anomaly_score(table))
    changed = clone(one).set_params(random_state=1).fit(table, np.arange(120) < 4)
    assert (changed.anomaly_score(table) != one.anomaly_score(table)).any()


@pytest.mark.parametrize(
    ("name", "column"), [*itertools.product(DENSITIES, ["weight", "city"]), ("made", "delay")]
)
def test_one_column_is_enough(name, column):
    table = orders(100, gaps=0.0)[[column]]
    # Three cities are three distinct rows.
    detector = quick(name, max_epochs=3, false_alarm_rate=0.5).fit(table, np.arange(100) < 4)
    explanation = detector.explain(table)
    np.testing.assert_allclose(explanation.score, detector.anomaly_score(table), atol=1e-6)


@pytest.mark.parametrize(
    ("name", "selection", "n_labels"),
    [*itertools.product(DENSITIES, ["average"], [0, 1]), ("made", "best", 0), ("made", "best", 1)],
)
def test_it_fits_with_few_labels_or_none(name, selection, n_labels):
    table = orders(100)
    detector = quick(name, selection, max_epochs=3).fit(table, np.arange(100) < n_labels)
    assert np.isfinite(detector.anomaly_score(table)).all()


@each_density
def test_leaving_out_all_cells_is_no_way_to_look_normal(name):
    detector = quick(name, "average", lambdas=(0,)).fit(orders(gaps=0.3))
    normal = detector.anomaly_score(orders(seed=1, gaps=0.3))
    (empty,) = detector.anomaly_score(orders(1).astype(object).mask(np.ones((1, 6), bool), None))
    assert empty > np.quantile(normal, 0.3)


@each_density
def test_only_densities_speak_of_nats_and_have_a_log_density(name):
    detector, table = fitted(name, "best"), orders(50, seed=6)
    assert fitted(name).score_unit_ == "standard units"
    if detector.model_.ensemble.density.is_probabilistic:
        assert detector.score_unit_ == "nats"
        np.testing.assert_allclose(detector.score_samples(table), -detector.anomaly_score(table))
        return
    assert detector.score_unit_ == detector.explain(table).unit == "reconstruction error"
    assert "nats" not in str(detector.summary_)
    for model in (detector, fitted(name)):
        with pytest.raises(UserError, match="an autoencoder has only reconstruction errors"):
            model.score_samples(table)


@each_density
def test_without_labels_the_summary_has_what_chose_the_epoch(name):
    detector = quick(name, max_epochs=2).fit(orders(100))
    expected = (
        "likelihood" if detector.model_.ensemble.density.is_probabilistic else "reconstruction"
    )
    assert detector.summary_.criterion == expected


@each_density
def test_a_fitted_detector_can_be_copied(name):
    detector, table = fitted(name), orders(20)
    copied = copy.deepcopy(detector)
    np.testing.assert_array_equal(copied.anomaly_score(table), detector.anomaly_score(table))


@each_density
def test_sizes_are_the_densitys_own_unless_given(name):
    table = orders(60)
    own = small(max_epochs=1, lambdas=(0,)).set_params(density=name).fit(table)
    assert own.model_.ensemble.density.settings.get_params() == DENSITIES[name]().get_params()
    given = quick(name, hidden=[7, 5], max_epochs=1, lambdas=(0,)).fit(table)
    assert given.model_.ensemble.density.settings.hidden == (7, 5)


@pytest.mark.gpu
@each_density
def test_a_gpu_gives_what_a_cpu_gives(name):
    table = orders(120, odd=4)
    labels = np.arange(120) < 4
    scores = [
        quick(name, device=device, max_epochs=2).fit(table, labels).anomaly_score(table)
        for device in ("cpu", "cuda")
    ]
    np.testing.assert_allclose(*scores, rtol=0.05, atol=0.05)
