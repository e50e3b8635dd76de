"""Detectors that learn from more labels after they were fitted."""

import numpy as np
import pandas as pd
import pytest
import torch
from factories import FEATURES, payments, small
from sklearn.metrics import roc_auc_score

from fewlier import AnomalyDetector, FewlierError, UserError
from fewlier.density import DENSITIES
from fewlier.fitting.fit import UPDATE_EPOCHS
from fewlier.table.labels import Labels

pytestmark = pytest.mark.slow

N = 400
KINDS = ("long", "late")
PAYMENTS = payments()
X, Y = PAYMENTS[FEATURES], PAYMENTS["fraud"]
MORE = payments(30, seed=8)
FRESH = payments(60, seed=9)[FEATURES]


def trips(n, seed, n_odd=0, kind="long"):
    """Return trips whose price follows their length; the first are odd, in one of two ways.

    Long ones cost what a short trip does. Late ones start in hours of the night, when there are
    others too, but never in the rain.
    """
    rng = np.random.default_rng(seed)
    odd = np.arange(n) < n_odd
    length = rng.normal(10, 2, n)
    price = 3 * length + rng.normal(0, 1, n)
    hour = np.where(rng.random(n) < 0.5, rng.normal(3, 1, n), rng.normal(15, 1, n))
    rain = np.where(hour > 9, rng.normal(4, 1, n), rng.normal(0, 1, n))
    if kind == "long":
        price = np.where(odd, price - 9, price)
    else:
        rain = np.where(odd, np.where(hour > 9, 0, 4) + rng.normal(0, 1, n), rain)
    return pd.DataFrame({"length": length, "price": price, "hour": hour, "rain": rain})


def auc(detector, kind):
    return roc_auc_score(np.arange(600) < 200, detector.anomaly_score(trips(600, 77, 200, kind)))


@pytest.fixture(scope="module")
def before(tmp_path_factory):
    """The file of a detector that knows one kind of anomaly, and scores it before any update."""
    path = tmp_path_factory.mktemp("models") / "trips.fewlier"
    detector = small(max_epochs=15, learning_rate=0.01)
    detector.fit(trips(N, 0, 8), np.arange(N) < 8).save(path)
    return path


@pytest.fixture(scope="module")
def fraud(tmp_path_factory):
    """The file of a detector of `factories.payments`."""
    path = tmp_path_factory.mktemp("models") / "fraud.fewlier"
    small().fit(X, Y).save(path)
    return path


def more(n=30):
    return MORE[FEATURES].head(n), MORE["fraud"].head(n)


def test_anomalies_of_a_new_kind_are_learned_and_those_of_the_old_kind_not_forgotten(before):
    detector = AnomalyDetector.load(before)
    old = {kind: auc(detector, kind) for kind in KINDS}
    detector.update(trips(24, 5, 12, "late"), np.arange(24) < 12)
    new = {kind: auc(detector, kind) for kind in KINDS}
    assert 1 - new["late"] < (1 - old["late"]) / 2
    assert new["long"] > old["long"] - 0.05


def test_an_update_of_a_saved_detector_is_that_of_the_live_one_bit_for_bit(tmp_path):
    live = small().fit(X, Y)
    live.save(tmp_path / "m.fewlier")
    loaded = AnomalyDetector.load(tmp_path / "m.fewlier")
    for _ in range(2):
        for detector in (live, loaded):
            detector.update(*more())
        np.testing.assert_array_equal(loaded.anomaly_score(FRESH), live.anomaly_score(FRESH))
        assert loaded.threshold_ == live.threshold_
        loaded.save(tmp_path / "m.fewlier")
        loaded = AnomalyDetector.load(tmp_path / "m.fewlier")
    np.testing.assert_array_equal(loaded.p_value(FRESH), live.p_value(FRESH))


def test_the_same_seed_gives_the_same_update_and_another_seed_another(fraud):
    one, same, other = (
        AnomalyDetector.load(fraud).set_params(random_state=seed).update(*more())
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(one.anomaly_score(FRESH), same.anomaly_score(FRESH))
    assert not np.array_equal(one.anomaly_score(FRESH), other.anomaly_score(FRESH))


def test_an_update_changes_scores_and_leaves_the_global_random_numbers_alone(fraud):
    detector = AnomalyDetector.load(fraud)
    scores = detector.anomaly_score(FRESH)
    states = np.random.get_state()[1].tolist(), torch.get_rng_state()  # noqa: NPY002
    detector.update(*more())
    assert np.random.get_state()[1].tolist() == states[0]  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), states[1])
    assert not np.array_equal(detector.anomaly_score(FRESH), scores)


@pytest.mark.parametrize("selection", ["average", "best"])
@pytest.mark.parametrize("name", DENSITIES)
def test_every_density_is_updated_and_stays_what_it_is(name, selection, tmp_path):
    sizes = {"latent": 2, "n_samples": 2, "n_transforms": 2, "max_epochs": 3, "hidden": (6,)}
    detector = small(density=name, selection=selection, **sizes).fit(X, Y)
    schema, encoder = detector.model_.encoder.schema, detector.model_.encoder
    guarantee, template = detector.model_.calibration.guarantee, detector.model_.ensemble.density
    assert detector.update(*more()) is detector
    assert type(detector.model_.ensemble.density) is type(template)
    assert type(template.settings) is DENSITIES[name]
    assert (detector.model_.ensemble.selection, detector.model_.encoder.schema) == (
        selection,
        schema,
    )
    assert detector.model_.encoder is encoder
    assert detector.model_.calibration.guarantee == guarantee
    assert {line.lam for line in detector.history_} == {0, 10}
    assert {m.lam for m in detector.model_.ensemble.members} <= {0, 10}
    assert len(detector.model_.ensemble.members) == len([h for h in detector.history_ if h.weight])
    detector.save(tmp_path / "m.fewlier")
    scores = AnomalyDetector.load(tmp_path / "m.fewlier").anomaly_score(FRESH)
    np.testing.assert_array_equal(scores, detector.anomaly_score(FRESH))
    assert np.isfinite(scores).all()


@pytest.mark.parametrize("selection", ["average", "best"])
@pytest.mark.parametrize("y", [None, np.zeros(len(X)), np.arange(len(X)) == 3])
def test_a_fit_with_few_or_no_labels_is_updated_with_the_first(selection, y):
    detector = small(selection=selection).fit(X, y)
    odd, normal = X[Y == 1].head(6), FRESH.head(6)
    detector.update(pd.concat([odd, normal]), np.repeat([1, 0], 6))
    assert detector.summary_.n_anomaly == 6  # the one that was labelled is among them
    assert {line.n_anomalies > 0 for line in detector.history_} == {True}
    assert {line.lam for line in detector.history_} == {0, 10}
    labels = np.repeat([1, 0], [4, 60])
    scores = detector.anomaly_score(pd.concat([X[Y == 1].tail(4), FRESH]))
    assert roc_auc_score(labels, scores) > 0.7


def test_missing_cells_and_categories_never_seen_are_learned_from(fraud):
    rows, y = more(12)
    rows = rows.assign(city=["Paris", None] * 6).astype({"amount": object})
    rows.iloc[0, 0] = None
    empty = rows.iloc[[1]].astype(object).mask(np.ones((1, 3), dtype=bool), None)
    detector = AnomalyDetector.load(fraud).update(pd.concat([rows, empty]), [*y, 1])
    assert set(detector.model_.encoder.schema.columns[2].levels) == {"Bern", "Oslo", "Rome"}
    assert np.isfinite(detector.anomaly_score(pd.concat([rows, empty, FRESH]))).all()


def test_columns_in_another_order_and_plain_arrays_are_read_as_in_scoring(fraud):
    rows, y = more()
    one = AnomalyDetector.load(fraud).update(rows, y)
    other = AnomalyDetector.load(fraud).update(rows[FEATURES[::-1]], y)
    np.testing.assert_array_equal(one.anomaly_score(FRESH), other.anomaly_score(FRESH))
    with pytest.raises(UserError, match="city"):
        AnomalyDetector.load(fraud).update(rows.drop(columns="city"), y)
    numbers = np.random.default_rng(0).normal(size=(60, 2))
    plain = small(max_epochs=2).fit(numbers).update(numbers[:9] + 0.1, np.arange(9) < 3)
    assert (plain.summary_.n_anomaly, plain.n_features_in_) == (3, 2)


def test_updates_in_a_row_count_each_row_once_and_note_the_last(fraud):
    detector = AnomalyDetector.load(fraud)
    assert detector.summary_.n_anomaly == 10
    for _ in range(3):
        detector.update(*more())
        found = detector.summary_
        rows = found.n_normal, found.n_anomaly, found.n_unlabelled
        assert rows == (150 + 21, 10 + 2, 40 + 6)  # one normal row is a copy of an old one
        assert len(detector._kept_rows) == 229
        assert found.n_compared <= 229
    assert sum("Updated with" in note for note in found.notes) == 1
    assert found.threshold == detector.threshold_


@pytest.mark.parametrize(
    "moved",
    [
        {"contamination": 0.2},
        {"false_alarm_rate": 0.4},
        {"cost_miss": 9, "cost_alarm": 1, "contamination": 0.1},
    ],
)
def test_an_update_says_that_it_moves_a_threshold_back(fraud, tmp_path, moved):
    detector = AnomalyDetector.load(fraud)
    assert not any("moved" in note for note in detector.update(*more()).summary_.notes)
    rule = detector.set_threshold(**moved).summary_.rule
    detector.save(tmp_path / "moved.fewlier")
    found = AnomalyDetector.load(tmp_path / "moved.fewlier").update(*more()).summary_
    assert f"The threshold had been moved ({rule}); move it again." in found.notes
    assert found.rule.startswith("false-alarm rate")


def test_what_an_update_learns_depends_on_the_rows_and_not_on_the_weights_before():
    brief, long = (small(max_epochs=n).fit(X, Y) for n in (1, 9))
    assert not np.array_equal(brief.anomaly_score(FRESH), long.anomaly_score(FRESH))
    for detector in (brief, long):
        detector.set_params(training__max_epochs=2).update(*more())
    np.testing.assert_array_equal(brief.anomaly_score(FRESH), long.anomaly_score(FRESH))
    assert brief.threshold_ == long.threshold_


def test_the_progress_of_an_update_is_told(fraud):
    shares = []
    detector = AnomalyDetector.load(fraud).set_params(training__max_epochs=2)
    detector.update(*more(), progress=shares.append)
    assert shares == pytest.approx(np.linspace(0, 1, 2 * UPDATE_EPOCHS + 1).tolist())


@pytest.mark.parametrize("patience", [1, None])
def test_validation_rows_weigh_members_and_choose_no_epoch(patience, fraud):
    worse = {"training__learning_rate": 100.0, "training__max_epochs": 2}  # from epoch to epoch
    detector = AnomalyDetector.load(fraud).set_params(training__patience=patience, **worse)
    detector.update(*more(3))
    assert {line.best_epoch for line in detector.history_} == {2 * UPDATE_EPOCHS}
    assert any(line.values[-1] < max(line.values) for line in detector.history_)


def test_if_every_member_diverges_the_update_is_an_error_that_changes_nothing(fraud):
    detector = AnomalyDetector.load(fraud).set_params(training__learning_rate=1e30)
    model, kept = detector.model_, detector._kept_rows
    with pytest.raises(UserError, match="Every member diverged in training"):
        detector.update(*more())
    assert (detector.model_, detector._kept_rows) == (model, kept)


@pytest.mark.parametrize("is_loaded", [False, True])
def test_without_a_memory_an_update_says_what_to_do(is_loaded, tmp_path):
    detector = small(keep_rows=False, max_epochs=1).fit(X, Y)
    if is_loaded:
        detector.save(tmp_path / "m.fewlier")
        detector = AnomalyDetector.load(tmp_path / "m.fewlier")
    scores = detector.anomaly_score(FRESH)
    with pytest.raises(UserError, match=r"kept no training rows. Fit again with keep_rows=True"):
        detector.update(*more())
    np.testing.assert_array_equal(detector.anomaly_score(FRESH), scores)


def test_before_a_fit_there_is_nothing_to_update():
    with pytest.raises(ValueError, match="not fitted"):
        small().update(*more())


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([1, 0], "one label per row; got 2 labels for 5 rows"),
        ([2, 0, 0, 0, 0], "y must hold 1 and 0; got .2"),
        ([-1, 1, 1, 1, 1], "must mark normal rows by 0"),
    ],
)
def test_labels_that_cannot_be_leave_the_detector_as_it_was(y, message, fraud):
    detector = AnomalyDetector.load(fraud)
    model, summary = detector.model_, detector.summary_
    with pytest.raises(FewlierError, match=message):
        detector.update(X.head(5), y)
    assert detector.model_ is model
    assert detector.summary_ == summary


@pytest.mark.parametrize(
    ("y", "counts"),
    [
        (None, (0, 0, 5)),
        ([0] * 5, (5, 0, 0)),
        ([1] * 5, (0, 5, 0)),
        ([np.nan] * 4 + [1], (0, 1, 4)),
        ([], (0, 0, 0)),
    ],
    ids=["no y", "normals", "anomalies", "one", "no row"],
)
def test_labels_of_one_kind_or_none_are_enough(y, counts, fraud):
    n = 5 if y is None else len(y)
    detector = AnomalyDetector.load(fraud).update(FRESH.head(n), y)
    found = detector.summary_
    added = found.n_normal - 150, found.n_anomaly - 10, found.n_unlabelled - 40
    assert added == counts
    assert np.isfinite(detector.anomaly_score(FRESH)).all()
    assert len(detector._kept_rows) == 200 + n


def test_rows_that_were_fitted_without_a_label_and_are_labelled_now_count_once():
    detector = small(max_epochs=2).fit(X)
    detector.update(X[Y == 1], Y[Y == 1])
    assert len(detector._kept_rows) == len(X)
    assert (detector._kept_rows.labels == -1).sum() == len(X) - 10
    found = detector.summary_
    assert (found.n_normal, found.n_anomaly, found.n_unlabelled) == (0, 10, len(X) - 10)
    detector.update(X[Y == 1].head(4), np.zeros(4))  # another opinion
    found = detector.summary_
    assert (found.n_normal, found.n_anomaly, found.n_unlabelled) == (4, 6, len(X) - 10)


@pytest.mark.parametrize("unlabelled", ["robust", "normal"])
def test_costs_take_the_share_of_anomalies_from_rows_counted_once(unlabelled):
    detector = small(max_epochs=2, unlabelled=unlabelled).fit(X, np.where(Y == 1, np.nan, 0))
    detector.update(X[Y == 1], Y[Y == 1]).set_threshold(cost_miss=1, cost_alarm=1)
    assert f"{1000 / len(X):.3g} % of the rows are anomalies" in detector.summary_.rule


@pytest.mark.parametrize("unlabelled", ["robust", "normal"])
def test_rows_labelled_anomalies_now_are_not_normals_any_more(unlabelled, tmp_path):
    rows = payments(300, seed=3).assign(amount=lambda table: table["amount"] + np.arange(300) / 99)
    rows, y = rows[FEATURES], np.where(np.arange(300) < 100, 0.0, np.nan)
    detector = small(max_epochs=2, unlabelled=unlabelled).fit(rows, y)
    odd = rows.iloc[[100, 150, 200, 250, 299]]
    for _ in range(2):  # told twice, counted once
        detector.update(odd, np.ones(5)).save(tmp_path / "m.fewlier")
        detector = AnomalyDetector.load(tmp_path / "m.fewlier")
        found = detector.summary_
        assert (found.n_normal, found.n_anomaly, found.n_unlabelled) == (100, 5, 195)
        kept = detector._kept_rows
        assert len(kept) == 300
        told = np.flatnonzero(np.isin(kept.encoded.ids(), encoded_ids(detector, odd)))
        assert len(told) == 5
        for fold in kept.folds:
            assert not np.isin(told, [*fold.normals, *fold.validation_normals]).any()
            assert not np.isin(told, fold.calibration).any()
            assert np.isin(told, [*fold.anomalies, *fold.validation_anomalies]).all()


def encoded_ids(detector, rows):
    return detector.model_.encoder.encode(detector._table(rows)).ids()


def test_a_table_given_again_and_again_adds_no_row():
    rows = payments(300, seed=3).assign(amount=lambda table: table["amount"] + np.arange(300) / 99)
    detector = small(max_epochs=2).fit(rows[FEATURES], rows["fraud"])
    before = detector.summary_
    for _ in range(2):
        detector.update(rows[FEATURES], rows["fraud"])
        found = detector.summary_
        assert len(detector._kept_rows) == 300
        counts = found.n_normal, found.n_anomaly, found.n_unlabelled
        assert counts == (before.n_normal, before.n_anomaly, before.n_unlabelled)
        assert found.n_compared <= 300
        assert "300 rows were known already." in str(found)


def test_kinds_of_rows_given_again_are_counted_once():
    kinds = ("theft", "fake")
    codes, kind_of = np.zeros(len(X), dtype=np.int8), np.full(len(X), -1, dtype=np.int32)
    codes[:6], kind_of[:6] = 1, [0, 0, 0, 0, 1, 1]
    rows = X.assign(amount=X["amount"] + np.arange(len(X)) / 99)
    detector = small(max_epochs=2).fit(rows, Labels(codes, kinds, kind_of))
    codes, kind_of = codes.copy(), kind_of.copy()
    codes[6], kind_of[6] = 1, 1
    for _ in range(2):
        detector.update(rows.head(9), Labels(codes[:9], kinds, kind_of[:9]))
        assert detector.summary_.labelled_kinds == {"theft": 4, "fake": 3}
        assert detector.summary_.n_anomaly == 7


def test_a_small_table_whose_rows_are_all_anomalies_now_must_be_fitted_again():
    detector = small(max_epochs=2).fit(X.head(40))
    model = detector.model_
    with pytest.raises(UserError, match="Fit again with these labels"):
        detector.update(X.head(40), np.ones(40))
    assert detector.model_ is model
