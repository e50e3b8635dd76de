"""The paper's comparison methods that scikit-learn has, with the paper's grids.

VAE and MADE, the other two of its nine, are densities of fewlier.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt
from sklearn.ensemble import IsolationForest, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import KNeighborsClassifier, LocalOutlierFactor
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC, OneClassSVM

from fewlier.errors import UserError

Values: TypeAlias = npt.NDArray[np.float64]
Labels: TypeAlias = npt.NDArray[np.integer[Any]]


@final
@dataclass(frozen=True)
class Baseline:
    """A method of the paper: how to make it, its one hyper-parameter, how to get scores.

    `uses_labels` is false for methods that train on normal rows alone. Their fits do not depend on
    which anomalies are labelled, so one call of `fit_candidates` per split does for all numbers of
    labels; what `choose` makes of it still depends on the validation rows.
    """

    name: str
    uses_labels: bool
    make: Callable[..., Any]
    parameter: str
    grid: tuple[float, ...]
    score: Callable[[Any, Values], Values]


@final
@dataclass(frozen=True, eq=False)
class FittedBaseline:
    """A fitted method with one value of its hyper-parameter, and the AUC it was chosen by."""

    baseline: Baseline
    value: float
    estimator: Any
    validation_auc: float | None = None

    def anomaly_score(self, X: Values) -> Values:
        """Return scores of shape (n,) for rows of shape (n, d); higher is more anomalous."""
        return np.asarray(self.baseline.score(self.estimator, X), dtype=np.float64)


def _rarity(estimator: Any, X: Values) -> Values:  # noqa: ANN401 - scikit-learn ships no types
    return -np.asarray(estimator.score_samples(X))


def _margin(estimator: Any, X: Values) -> Values:  # noqa: ANN401
    return np.asarray(estimator.decision_function(X))


def _probability(estimator: Any, X: Values) -> Values:  # noqa: ANN401
    return np.asarray(estimator.predict_proba(X)[:, 1])


# The paper tunes "the kernel hyperparameter" of RBF kernels.
_GAMMAS = (1e-3, 1e-2, 1e-1, 1.0)
_LOF = partial(LocalOutlierFactor, novelty=True)
# The paper's NN has "three layers", here as in scikit-learn input, hidden and output.
_NN = partial(MLPClassifier, activation="relu")

# Megabytes of kernel values that are kept: more are faster, and change nothing else.
_CACHE = 2000
_OCSVM, _SVM = partial(OneClassSVM, cache_size=_CACHE), partial(SVC, cache_size=_CACHE)

# What is not the hyper-parameter of a grid is scikit-learn's default; there are no class weights.
BASELINES = {
    baseline.name: baseline
    for baseline in (
        Baseline("LOF", False, _LOF, "n_neighbors", (1, 3, 5, 15, 35), _rarity),
        Baseline("OCSVM", False, _OCSVM, "gamma", _GAMMAS, _rarity),
        Baseline("IF", False, IsolationForest, "n_estimators", (1, 5, 10, 20, 30), _rarity),
        Baseline("KNN", True, KNeighborsClassifier, "n_neighbors", (1, 3, 5, 15), _probability),
        Baseline("SVM", True, _SVM, "gamma", _GAMMAS, _margin),
        Baseline("RF", True, RandomForestClassifier, "n_estimators", (5, 10, 20, 30), _probability),
        Baseline("NN", True, _NN, "hidden_layer_sizes", (5, 10, 50, 100), _probability),
    )
}


def fit_baseline(
    name: str, X_train: Values, y_train: Labels, X_val: Values, y_val: Labels, seed: int
) -> FittedBaseline:
    """Fit a method with every value of its grid, and return the best by validation AUC."""
    return choose(fit_candidates(name, X_train, y_train, seed), X_val, y_val)


def fit_candidates(name: str, X: Values, y: Labels, seed: int) -> list[FittedBaseline]:
    """Fit a method with every value of its grid.

    Parameters
    ----------
    name : str
        A key of `BASELINES`.
    X : array of shape (n, d)
        Training rows, normal and anomalous.
    y : array of shape (n,)
        1 for an anomaly, 0 for a normal row. Methods without labels train on the 0 rows alone.
    seed : int
        For methods that draw random numbers; every value of the grid starts from it.

    Returns
    -------
    list of FittedBaseline
        In the order of the grid, without numbers of neighbours that the rows are too few for.
    """
    if name not in BASELINES:
        raise UserError(f"A baseline must be one of {', '.join(BASELINES)}; got {name!r}.")
    baseline = BASELINES[name]
    if not baseline.uses_labels:
        X, y = X[y == 0], y[y == 0]
    elif len(np.unique(y)) < 2:
        raise UserError(
            f"{name} must be trained on normal rows and anomalies; got {(y == 1).sum()} anomalies "
            f"in {len(y)} rows. Label some of both, or use a method without labels."
        )
    values = _possible(baseline, len(X))
    return [FittedBaseline(baseline, v, _fit(baseline, v, X, y, seed)) for v in values]


def choose(candidates: list[FittedBaseline], X: Values, y: Labels) -> FittedBaseline:
    """Return the candidate with the highest AUC on validation rows; ties go to the first."""
    if len(np.unique(y)) < 2:
        raise UserError(
            f"Rows to choose {candidates[0].baseline.parameter} by AUC must be normal and "
            f"anomalous; got {(y == 1).sum()} anomalies in {len(y)} rows. Validate on some of both."
        )
    aucs = [float(roc_auc_score(y, candidate.anomaly_score(X))) for candidate in candidates]
    best = int(np.argmax(aucs))
    return replace(candidates[best], validation_auc=aucs[best])


def _possible(baseline: Baseline, n_rows: int) -> list[float]:
    """Return the grid values that this many rows allow: a row is not its own neighbour."""
    counts_rows = baseline.parameter == "n_neighbors"
    values = [value for value in baseline.grid if not counts_rows or value < n_rows]
    if n_rows < 1 or not values:
        kind = "rows" if baseline.uses_labels else "normal rows"
        raise UserError(
            f"{baseline.name} must be trained on {2 if counts_rows else 1} or more {kind}; got "
            f"{n_rows}. Give more."
        )
    return values


def _fit(baseline: Baseline, value: float, X: Values, y: Labels, seed: int) -> Any:  # noqa: ANN401
    estimator = baseline.make(**{baseline.parameter: value})
    if "random_state" in estimator.get_params():
        estimator.set_params(random_state=seed)
    with warnings.catch_warnings():
        # The paper names no end of NN's training; scikit-learn's 200 epochs are as many as it gets.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return estimator.fit(X, y) if baseline.uses_labels else estimator.fit(X)
