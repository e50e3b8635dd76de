"""Methods in use today to compare with, and the settings of each.

Every peer is given rows (n, d), labels 1 for an anomaly and 0 for all other rows, and test rows,
and returns a score per test row, higher for anomalies. Settings are the package's own defaults but
for what is said here, and all run on one thread. Packages are imported when a peer runs.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from importlib.metadata import packages_distributions
from importlib.util import find_spec
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt
from sklearn.ensemble import ExtraTreesClassifier, IsolationForest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import LocalOutlierFactor, NearestNeighbors
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM
from threadpoolctl import threadpool_limits

from fewlier.errors import UserError
from fewlier_bench.methods.deep_peers import fit_score_deep

Floats: TypeAlias = npt.NDArray[np.float64]
Labels: TypeAlias = npt.NDArray[np.int8]
FitScore: TypeAlias = Callable[[Floats, Labels, Floats, int], Floats]

N_NEIGHBOURS = 5


@final
@dataclass(frozen=True)
class Peer:
    """A method to compare with.

    `needs_labels` is false for methods that use no labelled anomaly, and `module` is the optional
    package that it needs.
    """

    name: str
    needs_labels: bool
    fit_score: FitScore
    module: str = ""

    @property
    def is_installed(self) -> bool:
        """Whether its package is there."""
        return not self.module or find_spec(self.module) is not None

    @property
    def packages(self) -> tuple[str, ...]:
        """The name of its package in the package index; xgboost has two."""
        return tuple(_distributions().get(self.module, ()))


@cache
def _distributions() -> Mapping[str, Sequence[str]]:
    return packages_distributions()


def score_with(peer: Peer, given: tuple[Floats, Labels], X: Floats, seed: int) -> Floats:
    """Fit a peer on the rows given, on one thread, and return scores of the rows X."""
    with threadpool_limits(1):
        return np.asarray(peer.fit_score(*given, X, seed), dtype=np.float64)


def require(names: Collection[str]) -> None:
    """Refuse peers whose packages are not installed, before anything runs."""
    missing = [p for p in PEERS.values() if p.name in names and not p.is_installed]
    if missing:
        needed = dict.fromkeys(p.module for p in missing)
        raise UserError(
            f"Methods must have their packages installed; got {', '.join(p.name for p in missing)} "
            f"without {', '.join(needed)}. Run: pip install 'fewlier-bench[methods]'"
            f"{', then: pip install --no-deps deepod' if 'deepod' in needed else ''}. "
            "Or name other --methods."
        )


def _catboost(X: Floats, y: Labels, test: Floats, seed: int, **settings: Any) -> Floats:  # noqa: ANN401
    model = import_module("catboost").CatBoostClassifier(
        **settings, random_seed=seed, thread_count=1, allow_writing_files=False, verbose=False
    )
    scores: Floats = model.fit(X, y).predict(test, prediction_type="RawFormulaVal")
    return scores


_balanced_catboost = partial(_catboost, iterations=300, auto_class_weights="Balanced")


def _xgboost(X: Floats, y: Labels, test: Floats, seed: int) -> Floats:
    """Weigh anomalies so that both classes weigh the same."""
    weight = (y == 0).sum() / (y == 1).sum()
    model = import_module("xgboost").XGBClassifier(
        scale_pos_weight=weight, random_state=seed, n_jobs=1
    )
    scores: Floats = model.fit(X, y).predict(test, output_margin=True)
    return scores


def _lightgbm(X: Floats, y: Labels, test: Floats, seed: int) -> Floats:
    """Weigh anomalies so that both classes weigh the same."""
    booster = import_module("lightgbm")
    settings = {"objective": "binary", "seed": seed, "num_threads": 1, "verbosity": -1}
    settings["scale_pos_weight"] = (y == 0).sum() / (y == 1).sum()
    # Not its scikit-learn face, which warns of column names that arrays do not have.
    scores: Floats = booster.train(settings, booster.Dataset(X, y)).predict(test, raw_score=True)
    return scores


def _logistic_regression(X: Floats, y: Labels, test: Floats, seed: int) -> Floats:
    """Fit on standardised columns, both classes weighing the same."""
    model = LogisticRegression(class_weight="balanced", max_iter=2000, random_state=seed)
    X, test = _standardised(X, test)
    scores: Floats = model.fit(X, y).decision_function(test)
    return scores


def _extra_trees(X: Floats, y: Labels, test: Floats, seed: int) -> Floats:
    scores: Floats = (
        ExtraTreesClassifier(500, random_state=seed, n_jobs=1).fit(X, y).predict_proba(test)[:, 1]
    )
    return scores


def _stack(X: Floats, y: Labels, test: Floats, seed: int) -> Floats:
    """Give balanced CatBoost two unsupervised scores in addition to the columns, as XGBOD does.

    The neighbours of a row that is given are others than itself; an isolation forest has no such
    need, as each tree sees few of the rows.
    """
    distances = np.concatenate(_neighbour_distances(X, y, test))
    rarity = _isolation_forest(X, y, np.concatenate([X, test]), seed)
    columns = np.column_stack([np.concatenate([X, test]), distances, rarity])
    return _balanced_catboost(columns[: len(X)], y, columns[len(X) :], seed)


def _neighbour_distances(X: Floats, y: Labels, test: Floats) -> tuple[Floats, Floats]:
    """Return mean distances to the nearest other normals, for given rows and for test rows."""
    normals, scaled = _standardised(X[y == 0], X)
    search = NearestNeighbors(n_neighbors=N_NEIGHBOURS).fit(normals)
    distances = search.kneighbors(scaled)[0].mean(axis=1)
    distances[y == 0] = search.kneighbors()[0].mean(axis=1)  # asked for no rows, it leaves one out
    return distances, search.kneighbors(_standardised(X[y == 0], test)[1])[0].mean(axis=1)


def _knn(X: Floats, y: Labels, test: Floats, seed: int) -> Floats:  # noqa: ARG001 - draws nothing
    """Return the mean distance to the nearest five normals, in standardised columns."""
    return _neighbour_distances(X, y, test)[1]


def _isolation_forest(X: Floats, y: Labels, test: Floats, seed: int) -> Floats:
    scores: Floats = -IsolationForest(random_state=seed).fit(X[y == 0]).score_samples(test)
    return scores


def _lof(X: Floats, y: Labels, test: Floats, seed: int) -> Floats:  # noqa: ARG001
    normals, test = _standardised(X[y == 0], test)
    n_neighbours = min(20, len(normals) - 1)  # scikit-learn's default, which warns of few rows
    model = LocalOutlierFactor(n_neighbors=n_neighbours, novelty=True).fit(normals)
    scores: Floats = -model.score_samples(test)
    return scores


def _ocsvm(X: Floats, y: Labels, test: Floats, seed: int) -> Floats:  # noqa: ARG001
    normals, test = _standardised(X[y == 0], test)
    scores: Floats = -OneClassSVM(cache_size=1000).fit(normals).decision_function(test)
    return scores


def _deep(name: str, X: Floats, y: Labels, test: Floats, seed: int) -> Floats:
    return fit_score_deep(name, *_standardised(X, test), y, seed)


def _standardised(X: Floats, test: Floats) -> tuple[Floats, Floats]:
    scaler = StandardScaler().fit(X)
    return scaler.transform(X), scaler.transform(test)


PEERS = {
    peer.name: peer
    for peer in (
        Peer("CatBoost", True, _catboost, "catboost"),
        Peer("CatBoost balanced", True, _balanced_catboost, "catboost"),
        Peer("XGBoost", True, _xgboost, "xgboost"),
        Peer("LightGBM", True, _lightgbm, "lightgbm"),
        Peer("logistic regression", True, _logistic_regression),
        Peer("extra trees", True, _extra_trees),
        Peer("XGBOD-style", True, _stack, "catboost"),
        Peer("kNN distance", False, _knn),
        Peer("isolation forest", False, _isolation_forest),
        Peer("LOF", False, _lof),
        Peer("OCSVM", False, _ocsvm),
        Peer("DevNet", True, partial(_deep, "DevNet"), "deepod"),
        Peer("DeepSAD", True, partial(_deep, "DeepSAD"), "deepod"),
        Peer("PReNet", True, partial(_deep, "PReNet"), "deepod"),
        Peer("RoSAS", True, partial(_deep, "RoSAS"), "deepod"),
    )
}
