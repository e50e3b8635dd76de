"""What every method to compare with must do, whether its package is here or in tests/engines."""

import numpy as np
from sklearn.metrics import roc_auc_score

from fewlier_bench.methods.peers import PEERS, score_with


def made(seed=0):
    """Return given rows with labels, and test rows, of anomalies that are outside and together."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(500, 4))
    y = (np.arange(500) % 5 == 0).astype(np.int8)
    X[y == 1] = rng.normal([4, 4, 0, 0], 0.5, size=(100, 4))
    return (X[:300], y[:300]), (X[300:], y[300:])


def check_that_anomalies_score_high_and_again_the_same(name):
    given, (test, truth) = made()
    before = [array.copy() for array in (*given, test)]
    scores = score_with(PEERS[name], given, test, 0)
    assert scores.shape == (200,)
    assert scores.dtype == np.float64
    assert roc_auc_score(truth, scores) > 0.95
    np.testing.assert_array_equal(score_with(PEERS[name], given, test, 0), scores)
    for array, copy in zip((*given, test), before, strict=True):
        np.testing.assert_array_equal(array, copy)


def check_that_it_uses_labels_if_it_says_so(name):
    peer, ((X, y), (test, _)) = PEERS[name], made()
    other = y.copy()
    other[np.flatnonzero(y == 1)[:30]] = 0
    if peer.needs_labels:
        assert not np.allclose(
            score_with(peer, (X, y), test, 0), score_with(peer, (X, other), test, 0)
        )
    else:
        normals = X[y == 0], y[y == 0]
        np.testing.assert_allclose(
            score_with(peer, (X, y), test, 0), score_with(peer, normals, test, 0)
        )
