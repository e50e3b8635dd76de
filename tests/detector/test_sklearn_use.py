"""The detector among scikit-learn's tools, and the threshold that makes it a classifier."""

from dataclasses import replace
from functools import partial

import factories
import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fewlier import AnomalyDetector, FewlierWarning, Made, Training, UserError

N, N_ANOMALIES = 300, 12
LABELS = np.repeat([1, 0], [N_ANOMALIES, N - N_ANOMALIES])

small = partial(factories.small, learning_rate=0.01)


def numbers(n=N, seed=0, n_anomalies=N_ANOMALIES):
    """Return normals around the origin; the first rows are anomalies around (3, 3)."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2)) + 3 * (np.arange(n) < n_anomalies)[:, None]


def frame(**changes):
    return pd.DataFrame(numbers(**changes), columns=["left", "right"])


@pytest.fixture(scope="module")
def fitted():
    """Return a detector that tests may not refit, nor move the threshold of."""
    return small().fit(numbers(), LABELS)


# scikit-learn's tools


def test_a_clone_has_the_parameters_and_no_fit(fitted):
    copy = clone(fitted)
    assert repr(copy) == repr(fitted)
    assert copy.density is not fitted.density
    with pytest.raises(NotFittedError):
        copy.anomaly_score(numbers())


@pytest.mark.slow
@pytest.mark.parametrize("memory", [True, False])
def test_a_clone_keeps_rows_as_the_first_would(memory):
    copy = clone(small(keep_rows=memory, max_epochs=1))
    assert copy.get_params()["keep_rows"] is memory
    assert (copy.fit(numbers(), LABELS)._kept_rows is not None) is memory
    copy.set_params(keep_rows=not memory).fit(numbers(), LABELS)
    assert (copy._kept_rows is None) is memory


@pytest.mark.parametrize(
    "method",
    ["anomaly_score", "decision_function", "predict", "predict_proba", "score_samples", "explain"],
)
def test_nothing_can_be_asked_before_fit(method):
    with pytest.raises(NotFittedError, match="AnomalyDetector"):
        getattr(small(), method)(numbers())


def test_it_is_a_binary_classifier(fitted):
    assert is_classifier(fitted)
    np.testing.assert_array_equal(fitted.classes_, [0, 1])


def test_set_params_changes_the_next_fit():
    detector = small(max_epochs=2).set_params(selection="best", training__lambdas=(0, 1, 2))
    assert detector.fit(numbers(), LABELS).score_unit_ == "nats"
    assert [line.lam for line in detector.history_] == [0, 1, 2]


@pytest.mark.slow
def test_it_ends_a_pipeline():
    pipeline = make_pipeline(StandardScaler(), small()).fit(numbers(), LABELS)
    fresh = numbers(seed=1, n_anomalies=50)
    truth = np.arange(N) < 50
    assert roc_auc_score(truth, pipeline.decision_function(fresh)) > 0.9
    assert pipeline.predict(fresh).shape == (N,)
    assert pipeline.score(fresh, truth) > 0.6


def test_a_pipeline_of_data_frames_keeps_the_names():
    pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), small(max_epochs=2))
    pipeline.fit(frame(), LABELS)
    assert pipeline[-1].feature_names_in_.tolist() == ["left", "right"]


@pytest.mark.slow
def test_a_grid_search_by_auc_finds_a_setting():
    grid = {"selection": ["average", "best"], "density__hidden": [(4,), (16,)]}
    search = GridSearchCV(small(max_epochs=5), grid, scoring="roc_auc", cv=2)
    search.fit(numbers(), LABELS)
    assert search.best_score_ > 0.9
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_estimator_.anomaly_score(numbers()).shape == (N,)


@pytest.mark.slow
@pytest.mark.parametrize("scoring", ["roc_auc", "average_precision", "accuracy", "neg_log_loss"])
def test_cross_validation_scores_it(scoring):
    scores = cross_val_score(small(max_epochs=2), frame(), LABELS, scoring=scoring, cv=2)
    assert np.isfinite(scores).all()


# Names and numbers of columns


@pytest.mark.slow
def test_names_and_number_of_columns_are_kept_and_forgotten_at_the_next_fit():
    detector = small(max_epochs=2).fit(frame(), LABELS)
    assert detector.feature_names_in_.tolist() == ["left", "right"]
    assert detector.n_features_in_ == 2
    detector.fit(numbers()[:, :1], LABELS)
    assert not hasattr(detector, "feature_names_in_")
    assert detector.n_features_in_ == 1


def test_an_array_after_a_data_frame_is_read_by_position_with_a_warning():
    detector = small(max_epochs=2).fit(frame(), LABELS)
    with pytest.warns(FewlierWarning, match="does not have valid feature names"):
        scores = detector.anomaly_score(numbers())
    np.testing.assert_array_equal(scores, detector.anomaly_score(frame()))


def test_a_data_frame_after_an_array_is_read_by_position_with_a_warning(fitted):
    with pytest.warns(FewlierWarning, match="fitted without feature names"):
        scores = fitted.anomaly_score(frame())
    np.testing.assert_array_equal(scores, fitted.anomaly_score(numbers()))


def test_an_array_of_another_width_is_an_error(fitted):
    with pytest.raises(UserError, match="X has 1 features, but AnomalyDetector is expecting 2"):
        fitted.anomaly_score(numbers()[:, :1])


# One score, several ways to put it


def test_predictions_probabilities_and_decisions_agree(fitted):
    fresh = numbers(seed=1, n_anomalies=50)
    score, decision = fitted.anomaly_score(fresh), fitted.decision_function(fresh)
    probability, prediction = fitted.predict_proba(fresh), fitted.predict(fresh)
    np.testing.assert_array_equal(decision, score - fitted.threshold_)
    np.testing.assert_array_equal(prediction, decision > 0)
    np.testing.assert_array_equal(prediction, probability[:, 1] > 0.5)
    np.testing.assert_allclose(probability.sum(1), 1)
    by_score = probability[np.argsort(score), 1]
    assert (np.diff(by_score) >= 0).all()
    assert set(prediction) == {0, 1}


def test_a_row_is_predicted_odd_where_its_p_value_is_at_most_the_rate(fitted):
    fresh = numbers(seed=1)
    np.testing.assert_array_equal(fitted.predict(fresh), fitted.p_value(fresh) <= 0.2)


def test_scores_are_double_precision(fitted):
    assert fitted.anomaly_score(numbers()).dtype == np.float64
    assert fitted.score_samples(numbers()).dtype == np.float64


@pytest.mark.parametrize("selection", ["average", "best"])
def test_training_rows_have_decision_scores_and_labels(selection):
    detector = small(selection=selection).fit(numbers(), LABELS)
    assert detector.decision_scores_.shape == (N,)
    np.testing.assert_array_equal(detector.labels_, detector.decision_scores_ > detector.threshold_)
    assert roc_auc_score(LABELS, detector.decision_scores_) > 0.9


@pytest.mark.slow
def test_decision_scores_leave_out_the_folds_that_trained_on_the_row():
    detector = small().fit(numbers(), LABELS)
    assert (detector.decision_scores_ != detector.anomaly_score(numbers())).all()
    # No row is its own neighbour, and no tree that has seen it counts: without these,
    scorer = replace(detector.model_.scorer, others=())
    detector.model_ = replace(detector.model_, scorer=scorer)
    in_sample = detector.anomaly_score(numbers())
    normals = LABELS == 0
    # Of two folds each row trains one.
    assert (detector.decision_scores_ != in_sample).all()
    assert detector.decision_scores_[normals].mean() > in_sample[normals].mean()


# The threshold


@pytest.mark.slow
def test_about_the_asked_share_of_fresh_normals_is_above_the_threshold():
    detector = small().fit(numbers(2000), np.arange(2000) < N_ANOMALIES)
    fresh = numbers(4000, seed=1, n_anomalies=0)
    for rate in (0.05, 0.2):
        detector.set_threshold(false_alarm_rate=rate)
        assert detector.predict(fresh).mean() == pytest.approx(rate, abs=0.6 * rate)


def test_the_threshold_moves_without_refitting():
    detector = small().fit(numbers(), LABELS)
    scores, members = detector.anomaly_score(numbers()), detector.model_.ensemble.members
    thresholds = [
        detector.set_threshold(false_alarm_rate=rate).threshold_ for rate in (0.4, 0.2, 0.1)
    ]
    assert thresholds == sorted(set(thresholds))
    assert detector.model_.ensemble.members is members
    np.testing.assert_array_equal(detector.anomaly_score(numbers()), scores)
    assert detector.predict(numbers()).sum() == (scores > thresholds[-1]).sum()


@pytest.mark.slow
@pytest.mark.parametrize("contamination", [0.05, 0.3])
@pytest.mark.parametrize("selection", ["average", "best"])
def test_contamination_is_the_share_of_new_rows_above_the_threshold(contamination, selection):
    rng, flagged, expected = np.random.default_rng(0), [], []
    for seed in range(10):
        X, y = rng.normal(size=(400, 8)), np.repeat([1.0, np.nan], [4, 396])
        X[:20] += 2  # five in a hundred are anomalies, most of them hidden
        detector = small(selection=selection, random_state=seed, learning_rate=0.01).fit(X, y)
        detector.set_threshold(contamination=contamination)
        new = rng.normal(size=(2000, 8))
        new[:100] += 2
        flagged.append(detector.predict(new).mean())
        expected.append(detector.summary_.decision.flagged)
    scatter = {"average": 400, "best": 20}[selection]  # rows that were held out
    error = 3 * np.sqrt(contamination * (1 - contamination) / scatter / 10)
    assert np.mean(flagged) == pytest.approx(np.mean(expected), abs=error + 0.01)
    assert np.mean(flagged) <= contamination + error


@pytest.mark.parametrize("contamination", [0.04, 0.3])
def test_the_labels_of_training_rows_have_the_contamination(contamination):
    detector = small().fit(numbers(), LABELS).set_threshold(contamination=contamination)
    assert detector.labels_.mean() == pytest.approx(contamination, abs=3 / N)


@pytest.mark.parametrize("both_or_none", [{}, {"false_alarm_rate": 0.1, "contamination": 0.1}])
def test_the_threshold_is_set_by_exactly_one_rule(fitted, both_or_none):
    with pytest.raises(UserError, match=r"'false_alarm_rate'.*'cost_miss'.*; got"):
        fitted.set_threshold(**both_or_none)


@pytest.mark.parametrize("rule", ["false_alarm_rate", "contamination"])
@pytest.mark.parametrize("share", [0, 1, 1.5, -0.1, np.nan])
def test_a_threshold_by_what_is_no_share_is_an_error_that_changes_nothing(fitted, rule, share):
    before = fitted.threshold_
    with pytest.raises(UserError, match=f"'{rule}' must be a share between 0 and 1"):
        fitted.set_threshold(**{rule: share})
    assert fitted.threshold_ == before


def test_a_rate_below_what_the_normals_vouch_for_is_a_warning():
    message = (
        "A false-alarm rate of 0.001 needs at least 999 held-out normal rows; there are 288 "
        "distinct ones, and the threshold stands for 0.0035"
    )
    with pytest.warns(FewlierWarning, match=message):
        detector = small(false_alarm_rate=0.001, max_epochs=2).fit(numbers(), LABELS)
    highest = detector.model_.calibration.normal_scores[-1]
    assert detector.threshold_ == highest
    with pytest.warns(FewlierWarning, match=r"rate of 0\.002 needs at least 499"):
        detector.set_threshold(false_alarm_rate=0.002)
    detector.set_threshold(false_alarm_rate=1 / 289)  # attainable: no warning
    assert detector.threshold_ == highest


@pytest.mark.filterwarnings("error")
def test_the_default_rate_is_attainable_with_a_hundred_normals():
    default = AnomalyDetector().false_alarm_rate
    small(false_alarm_rate=default, max_epochs=1).fit(numbers(100), np.zeros(100))


# Parameters


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("density", "flaw"),
        ("selection", "worst"),
        ("unlabelled", "odd"),
        ("lambdas", ()),
        ("lambdas", 10),
        ("lambdas", (0, -1)),
        ("lambdas", (0, np.inf)),
        ("lambdas", (0, np.nan)),
        ("lambdas", (0, "1")),
        ("hidden", 500),
        ("hidden", (0,)),
        ("hidden", (1.5,)),
        ("hidden", "500"),
        ("n_components", 0),
        ("n_components", 2.5),
        ("n_orderings", 0),
        ("max_epochs", 0),
        ("max_epochs", True),
        ("batch_size", 0),
        ("patience", 0),
        ("patience", 1.5),
        ("learning_rate", 0),
        ("learning_rate", -1e-3),
        ("learning_rate", np.nan),
        ("learning_rate", "fast"),
        ("false_alarm_rate", 0),
        ("false_alarm_rate", 1),
        ("false_alarm_rate", np.nan),
        ("false_alarm_rate", None),
        ("keep_rows", 1),
        ("keep_rows", None),
        ("keep_rows", "no"),
        ("device", "tpu"),
        ("training", 20),
        ("training", Training),
        ("density", Made),
        ("density", 5),
        ("columns", 5),
    ],
)
def test_a_parameter_of_a_wrong_value_is_an_error_that_names_it_before_training(parameter, value):
    def no_epoch(*_):
        raise AssertionError("the fit went on to train")

    detector = small(**{parameter: value})
    with pytest.raises(UserError, match=f"'{parameter}'.* must be .*; got"):
        detector.fit(numbers(), LABELS, progress=no_epoch)
    assert not hasattr(detector, "model_")


def test_a_gpu_that_is_not_there_is_an_error(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(UserError, match="device='cuda' needs a GPU that torch can use"):
        small(device="cuda").fit(numbers(), LABELS)


def test_settings_of_training_are_set_alone_and_searched_through():
    detector = AnomalyDetector().set_params(training__max_epochs=3)
    assert (detector.training.max_epochs, detector.training.patience) == (3, 10)
    assert clone(detector).training is not detector.training
    search = GridSearchCV(small(), {"training__max_epochs": [1, 2]}, scoring="roc_auc", cv=2)
    best = search.fit(numbers(), LABELS).best_estimator_
    assert max(line.epochs[-1] for line in best.history_) == best.training.max_epochs


def test_an_unknown_parameter_is_an_error():
    with pytest.raises(TypeError, match="lambda_"):
        AnomalyDetector(lambda_=1)


@pytest.mark.slow
def test_a_validation_in_two_processes_finds_the_scores_of_one():
    detector, table = small(max_epochs=2), numbers()
    one, two = (
        cross_val_score(detector, table, LABELS, scoring="roc_auc", cv=2, n_jobs=n_jobs)
        for n_jobs in (1, 2)
    )
    np.testing.assert_array_equal(two, one)
