"""The methods to compare with: each ranks anomalies, uses labels or not, and repeats itself."""

import numpy as np
import pytest
from peer_checks import (
    check_that_anomalies_score_high_and_again_the_same,
    check_that_it_uses_labels_if_it_says_so,
    made,
)

from fewlier.errors import UserError
from fewlier_bench.methods import deep_peers, peers
from fewlier_bench.methods.peers import PEERS, Peer, require, score_with

# Those that need a package are tested in tests/engines/methods.
each_peer = pytest.mark.parametrize("name", [p.name for p in PEERS.values() if not p.module])


@each_peer
@pytest.mark.filterwarnings("default")
def test_anomalies_score_high_and_again_the_same(name):
    check_that_anomalies_score_high_and_again_the_same(name)


@each_peer
@pytest.mark.filterwarnings("default")
def test_a_method_uses_labels_if_it_says_so(name):
    check_that_it_uses_labels_if_it_says_so(name)


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
