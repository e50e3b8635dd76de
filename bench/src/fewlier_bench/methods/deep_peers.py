"""Networks of the package deepod, each checked to learn from labels before it is compared.

A library's detector may ignore its labels, or never train, and still return scores. So each must
first rank a cluster of made-up anomalies better with their labels than with shuffled ones.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from sklearn.metrics import roc_auc_score

from fewlier.errors import UserError

Floats: TypeAlias = npt.NDArray[np.float64]
Labels: TypeAlias = npt.NDArray[np.int8]

MIN_AUC = 0.9  # of made-up anomalies, with their labels
MIN_GAIN = 0.2  # over shuffled ones
N_SHUFFLES = 3


def fit_score_deep(name: str, X: Floats, test: Floats, y: Labels, seed: int) -> Floats:
    """Train a network on standardised rows X (n, d), and return scores of standardised test rows.

    Raises
    ------
    UserError
        If the network does not learn from labels.
    """
    _require_learning(name)
    return _fit_score(name, X, test, y, seed)


def _fit_score(name: str, X: Floats, test: Floats, y: Labels, seed: int) -> Floats:
    with _own_random_numbers():
        detector = getattr(import_module("deepod.models.tabular"), name)
        model = detector(device="cpu", verbose=0, random_state=seed)
        # RoSAS draws its batches without replacement.
        model.batch_size = min(model.batch_size, int((y == 0).sum()))
        scores: Floats = model.fit(X, y).decision_function(test)
    return scores


@cache
def learning_aucs(name: str) -> tuple[float, float]:
    """Return the AUC of made-up anomalies with their labels, and its mean with shuffled ones.

    They are a cluster no farther out than normals are: networks may score what is far out high
    whatever the labels say. They are few, so that shuffled labels are hardly ever theirs.
    """
    rng = np.random.default_rng(0)
    normals, anomalies = rng.normal(size=(500, 4)), rng.normal(0.9, 0.2, size=(60, 4))
    X, test = np.r_[normals[:400], anomalies[:20]], np.r_[normals[400:], anomalies[20:]]
    y, truth = np.arange(len(X)) >= 400, np.arange(len(test)) >= 100

    def auc(labels: npt.NDArray[np.bool_]) -> float:
        return float(roc_auc_score(truth, _fit_score(name, X, test, labels.astype(np.int8), 0)))

    return auc(y), float(np.mean([auc(rng.permutation(y)) for _ in range(N_SHUFFLES)]))


def _require_learning(name: str) -> None:
    right, shuffled = learning_aucs(name)
    if right < max(MIN_AUC, shuffled + MIN_GAIN):
        raise UserError(
            f"{name} must learn from labels to be compared: made-up anomalies must have an AUC of "
            f"{MIN_AUC} with their labels, and {MIN_GAIN} less with shuffled ones; got "
            f"{right:.3f} and {shuffled:.3f}. Install another version of deepod."
        )


@contextmanager
def _own_random_numbers() -> Iterator[None]:
    """Restore the global random state: deepod seeds numpy and torch."""
    state = np.random.get_state()  # noqa: NPY002
    try:
        with torch.random.fork_rng():
            yield
    finally:
        np.random.set_state(state)  # noqa: NPY002
