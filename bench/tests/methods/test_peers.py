"""The methods to compare with: each ranks anomalies, uses labels or not, and repeats itself."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from fewlier.errors import UserError
from fewlier_bench.methods import deep_peers, peers
from fewlier_bench.methods.peers import PEERS, Peer, require, score_with

each_peer = pytest.mark.parametrize("name", PEERS)


def peer_of(name):
    peer = PEERS[name]
    if not peer.is_installed:
        pytest.skip(f"{name} needs the package {peer.module}, which is not installed")
    return peer


def made(seed=0):
    """Return given rows with labels, and test rows, of anomalies that are outside and together."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(500, 4))
    y = (np.arange(500) % 5 == 0).astype(np.int8)
    X[y == 1] = rng.normal([4, 4, 0, 0], 0.5, size=(100, 4))
    return (X[:300], y[:300]), (X[300:], y[300:])


@each_peer
@pytest.mark.filterwarnings("default")  # of the peers' own packages
def test_anomalies_score_high_and_again_the_same(name):
    given, (test, truth) = made()
    before = [array.copy() for array in (*given, test)]
    scores = score_with(peer_of(name), given, test, 0)
    assert scores.shape == (200,)
    assert scores.dtype == np.float64
    assert roc_auc_score(truth, scores) > 0.95
    np.testing.assert_array_equal(score_with(PEERS[name], given, test, 0), scores)
    for array, copy in zip((*given, test), before, strict=True):
        np.testing.assert_array_equal(array, copy)


@each_peer
@pytest.mark.filterwarnings("default")
def test_a_method_uses_labels_if_it_says_so(name):
    peer, ((X, y), (test, _)) = peer_of(name), made()
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


def test_knn_distance_is_the_mean_over_five_normals_none_of_them_the_row_itself():
    (X, y), (test, _) = made()
    normals = X[y == 0]
    scale = normals.std(axis=0)

    def brute(row, others):
        return np.sort(np.linalg.norm((others - row) / scale, axis=1))[:5].mean()

    given, tested = peers._neighbour_distances(X, y, test)
    np.testing.assert_allclose(tested[:20], [brute(row, normals) for row in test[:20]])
    np.testing.assert_allclose(tested, score_with(PEERS["kNN distance"], (X, y), test, 0))
    others = [normals[(normals != row).any(axis=1)] for row in X[:20]]
    expected = [brute(row, rest) for row, rest in zip(X[:20], others, strict=True)]
    np.testing.assert_allclose(given[:20], expected)


def test_a_package_that_is_not_there_is_reported_with_how_to_get_it(monkeypatch):
    absent = Peer("DevNet", True, PEERS["DevNet"].fit_score, "deepod_that_is_not_there")
    monkeypatch.setitem(PEERS, "DevNet", absent)
    with pytest.raises(UserError, match=r"got DevNet without deepod_that.*pip install 'fewlier-be"):
        require(["DevNet", "kNN distance"])
    require(["kNN distance", "extra trees"])


@pytest.mark.parametrize("name", ["DevNet", "DeepSAD", "PReNet", "RoSAS"])
@pytest.mark.filterwarnings("default")
def test_networks_are_checked_to_learn_from_labels(name):
    peer_of(name)
    np_state = np.random.get_state()[1].copy()  # noqa: NPY002
    right, shuffled = deep_peers.learning_aucs(name)
    assert right > 0.9
    assert right - shuffled > 0.2
    np.testing.assert_array_equal(np.random.get_state()[1], np_state)  # noqa: NPY002


@pytest.mark.parametrize("sign", [1, -1])
def test_a_network_that_does_not_learn_from_labels_is_refused(sign, monkeypatch):
    def label_blind(_, __, test, *rest):  # noqa: ARG001
        return sign * test.sum(axis=1)  # right by chance, or wrong

    monkeypatch.setattr(deep_peers, "_fit_score", label_blind)
    deep_peers.learning_aucs.cache_clear()
    (X, y), (test, _) = made()
    with pytest.raises(UserError, match=r"Blind must learn from labels to be compared.*got [01]\."):
        deep_peers.fit_score_deep("Blind", X, test, y, 0)
    deep_peers.learning_aucs.cache_clear()
