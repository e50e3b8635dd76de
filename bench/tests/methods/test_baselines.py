import numpy as np
import pytest
from sklearn.ensemble import IsolationForest, RandomForestClassifier
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import KNeighborsClassifier, LocalOutlierFactor
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC, OneClassSVM

from fewlier.errors import UserError
from fewlier_bench.methods.baselines import BASELINES, choose, fit_baseline, fit_candidates

each_baseline = pytest.mark.parametrize("name", BASELINES)
WITHOUT_LABELS = ["LOF", "OCSVM", "IF"]


def rows(n_normals, n_anomalies, seed):
    """Return normal rows in a clump and anomalies beside it, normals first."""
    rng = np.random.default_rng(seed)
    X = np.concatenate(
        [rng.normal(0.3, 0.05, (n_normals, 4)), rng.normal(0.7, 0.1, (n_anomalies, 4))]
    )
    return X, np.repeat([0, 1], [n_normals, n_anomalies])


TRAIN, VALIDATE, TEST = rows(120, 5, 0), rows(30, 5, 1), rows(60, 20, 2)


def fit(name, seed=0):
    return fit_baseline(name, *TRAIN, *VALIDATE, seed)


@each_baseline
@pytest.mark.filterwarnings("error")
def test_anomalies_score_higher(name):
    fitted = fit(name)
    scores = fitted.anomaly_score(TEST[0])
    assert scores.shape == (80,)
    assert scores.dtype == np.float64
    assert roc_auc_score(TEST[1], scores) > 0.8
    assert fitted.validation_auc == roc_auc_score(VALIDATE[1], fitted.anomaly_score(VALIDATE[0]))


@pytest.mark.parametrize(
    ("name", "value", "estimator", "method"),
    [
        ("LOF", 15, LocalOutlierFactor(n_neighbors=15, novelty=True), "score_samples"),
        ("OCSVM", 0.1, OneClassSVM(gamma=0.1), "score_samples"),
        ("IF", 10, IsolationForest(n_estimators=10, random_state=4), "score_samples"),
        ("KNN", 3, KNeighborsClassifier(3), "predict_proba"),
        ("SVM", 1.0, SVC(gamma=1.0), "decision_function"),
        ("RF", 20, RandomForestClassifier(20, random_state=4), "predict_proba"),
        ("NN", 50, MLPClassifier((50,), random_state=4), "predict_proba"),
    ],
)
@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
def test_scores_are_scikit_learns(name, value, estimator, method):
    (fitted,) = [c for c in fit_candidates(name, *TRAIN, seed=4) if c.value == value]
    X, y = TRAIN
    estimator.fit(X[y == 0]) if name in WITHOUT_LABELS else estimator.fit(X, y)
    expected = getattr(estimator, method)(TEST[0])
    if method == "score_samples":
        expected = -expected
    elif method == "predict_proba":
        expected = expected[:, 1]
    assert np.array_equal(fitted.anomaly_score(TEST[0]), expected)


@pytest.mark.slow
@each_baseline
def test_the_same_seed_gives_the_same_scores(name):
    assert np.array_equal(fit(name).anomaly_score(TEST[0]), fit(name).anomaly_score(TEST[0]))


def test_the_grids_are_the_papers():
    assert {name: b.grid for name, b in BASELINES.items()} == {
        "LOF": (1, 3, 5, 15, 35),
        "OCSVM": (1e-3, 1e-2, 1e-1, 1),
        "IF": (1, 5, 10, 20, 30),
        "KNN": (1, 3, 5, 15),
        "SVM": (1e-3, 1e-2, 1e-1, 1),
        "RF": (5, 10, 20, 30),
        "NN": (5, 10, 50, 100),
    }
    assert [name for name, b in BASELINES.items() if not b.uses_labels] == WITHOUT_LABELS


@pytest.mark.parametrize("name", WITHOUT_LABELS)
def test_methods_without_labels_see_normal_rows_alone(name):
    X, y = TRAIN
    with_anomalies = fit_candidates(name, X, y, seed=0)
    without = fit_candidates(name, X[y == 0], y[y == 0], seed=0)
    for one, other in zip(with_anomalies, without, strict=True):
        assert np.array_equal(one.anomaly_score(TEST[0]), other.anomaly_score(TEST[0]))


@each_baseline
def test_the_value_with_the_highest_validation_auc_is_chosen_and_ties_go_to_the_first(name):
    candidates = fit_candidates(name, *TRAIN, seed=0)
    aucs = [roc_auc_score(VALIDATE[1], c.anomaly_score(VALIDATE[0])) for c in candidates]
    chosen = choose(candidates, *VALIDATE)
    assert chosen.value == candidates[aucs.index(max(aucs))].value
    assert chosen.estimator is candidates[aucs.index(max(aucs))].estimator
    assert choose([*candidates, *candidates[::-1]], *VALIDATE).estimator is chosen.estimator


@pytest.mark.parametrize(
    ("name", "n_normals", "values"), [("LOF", 6, [1, 3, 5]), ("KNN", 4, [1, 3])]
)
def test_numbers_of_neighbours_that_rows_are_too_few_for_are_left_out(name, n_normals, values):
    X, y = rows(n_normals, 1, 0)
    assert [c.value for c in fit_candidates(name, X, y, seed=0)] == values


@pytest.mark.parametrize(
    ("name", "n_normals", "n_anomalies", "message"),
    [
        ("LOF", 1, 5, "LOF must be trained on 2 or more normal rows; got 1"),
        ("IF", 0, 5, "IF must be trained on 1 or more normal rows; got 0"),
        (
            "SVM",
            9,
            0,
            "SVM must be trained on normal rows and anomalies; got 0 anomalies in 9 rows",
        ),
        ("RF", 0, 9, "RF must be trained on normal rows and anomalies; got 9 anomalies in 9 rows"),
        ("kNN", 9, 9, "one of LOF, OCSVM, IF, KNN, SVM, RF, NN; got 'kNN'"),
    ],
)
def test_training_rows_that_cannot_do_are_an_error(name, n_normals, n_anomalies, message):
    with pytest.raises(UserError, match=message):
        fit_candidates(name, *rows(n_normals, n_anomalies, 0), seed=0)


def test_validation_rows_of_one_class_are_an_error():
    with pytest.raises(UserError, match="choose gamma by AUC must be normal and anomalous; got 0"):
        fit_baseline("SVM", *TRAIN, *rows(5, 0, 1), seed=0)
