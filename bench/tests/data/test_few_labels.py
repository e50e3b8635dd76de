"""Which rows the few-label comparison gives, and which it tests."""

from itertools import pairwise

import numpy as np
import pytest

from fewlier_bench.data.few_labels import (
    HIDDEN,
    MAX_ROWS,
    N_CLUSTERS,
    TOO_FEW,
    TOO_FEW_NORMALS,
    TOO_SMALL,
    clusters,
    cut,
    draw_clean,
    draw_pool,
    make_few_label_split,
    shuffle_rows,
)

KS = (0, 1, 3, 5, 10, 25)


def labels(n_normals=400, n_anomalies=60):
    y = np.repeat([0, 1], [n_normals, n_anomalies]).astype(np.int8)
    return np.random.default_rng(1).permutation(y)


def kinds_of_anomalies(sizes=(20, 20, 20), n_normals=300):
    """Return a table whose anomalies are clusters far from each other, and which each is in."""
    rng = np.random.default_rng(0)
    centres = np.repeat(np.arange(len(sizes)), sizes)
    anomalies = rng.normal(0, 0.1, (len(centres), 3)) + 3 * np.eye(3)[centres]
    X = np.concatenate([rng.normal(size=(n_normals, 3)), anomalies])
    y = (np.arange(len(X)) >= n_normals).astype(np.int8)
    return X, y, np.concatenate([np.full(n_normals, -1), centres])


@pytest.mark.parametrize("number", [0, 7])
def test_splits_are_nested_in_k_and_test_all_that_is_not_given(number):
    y = labels()
    splits = [draw_clean(y, 2 * k, number) for k in KS]
    for k, split in zip(KS, splits, strict=True):
        assert (split.labels == y[split.given]).all()
        assert (split.labels == 1).sum() == 2 * k
        assert (split.labels == 0).sum() == 360
        assert sorted([*split.given, *split.test]) == list(range(len(y)))
    for smaller, larger in pairwise(splits):
        assert set(smaller.given) <= set(larger.given)
    assert set(draw_clean(y, 6, number).given) != set(draw_clean(y, 6, number + 1).given)


def test_the_seed_of_a_split_is_stated():
    y = labels()
    rng = np.random.default_rng(1003)
    normals = rng.permutation(np.flatnonzero(y == 0))
    anomalies = rng.permutation(np.flatnonzero(y == 1))
    for found, expected in zip(
        shuffle_rows(y, 3), (normals[:360], normals[360:], anomalies), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("n_anomalies", "is_run"), [(8, False), (9, True)])
def test_a_cell_is_run_where_three_anomalies_are_left_to_test(n_anomalies, is_run):
    found = draw_clean(labels(n_anomalies=n_anomalies), 6, 0)
    assert (found == TOO_FEW) != is_run
    if is_run:
        assert (labels(n_anomalies=n_anomalies)[found.test] == 1).sum() == 3


@pytest.mark.parametrize("k", [3, 10])
@pytest.mark.parametrize("n_anomalies", [60, 400])
def test_a_contaminated_pool_has_the_stated_share_of_hidden_anomalies(k, n_anomalies):
    y = labels(n_normals=1000, n_anomalies=n_anomalies)
    split = make_few_label_split("contaminated", np.empty((len(y), 1)), y, k, 4)
    pool = split.given[split.labels != 1]
    assert y[pool].mean() == pytest.approx(HIDDEN, abs=1 / len(pool))
    assert y[split.given[split.labels == 1]].all()
    assert (split.labels == 1).sum() == 2 * k
    assert not (split.labels == 0).any()
    assert y[pool].sum() <= (n_anomalies - 2 * k) / 2
    assert not set(split.given) & set(split.test)
    assert (y[split.test] == 1).sum() >= 3


def test_pools_that_are_too_small_are_left_out_with_a_reason():
    assert draw_pool(labels(n_anomalies=11), 6, 0, HIDDEN) == TOO_FEW_NORMALS
    assert draw_pool(labels(n_anomalies=10), 6, 0, HIDDEN) == TOO_FEW
    assert draw_pool(labels(n_anomalies=4), 6, 0, HIDDEN) == TOO_FEW


def test_clusters_are_the_kinds_of_anomalies():
    X, y, kinds = kinds_of_anomalies()
    found = clusters(X, y)
    assert (found[y == 0] == -1).all()
    pairs = set(zip(found[y == 1], kinds[y == 1], strict=True))
    assert len(pairs) == N_CLUSTERS
    np.testing.assert_array_equal(found, clusters(X, y))


def test_no_kind_of_anomaly_is_both_labelled_and_tested():
    X, y, kinds = kinds_of_anomalies()
    labelled_kinds = set()
    for split in range(2 * N_CLUSTERS):
        found = make_few_label_split("unseen", X, y, 3, split)
        labelled = found.given[found.labels == 1]
        assert len(labelled) == 6
        (known,) = set(kinds[labelled])
        labelled_kinds.add(known)
        assert set(kinds[found.test]) == {-1, 0, 1, 2} - {known}
        assert not set(found.given) & set(found.test)
        assert (y[found.test] == 1).sum() == 40
        assert found.number == split // N_CLUSTERS
    assert labelled_kinds == {0, 1, 2}


def test_clusters_that_are_too_small_to_label_are_left_out_with_a_reason():
    X, y, _ = kinds_of_anomalies(sizes=(5, 20, 20))
    found = [make_few_label_split("unseen", X, y, 3, split) for split in range(3)]
    assert sum(split == TOO_SMALL for split in found) == 1
    X, y, _ = kinds_of_anomalies(sizes=(20, 1, 1))
    found = [make_few_label_split("unseen", X, y, 3, split) for split in range(3)]
    assert sorted(found) == sorted([TOO_FEW, TOO_SMALL, TOO_SMALL])
    X[y == 1] = 5.0  # one kind only
    assert make_few_label_split("unseen", X, y, 3, 0) == TOO_SMALL


def test_large_tables_are_cut_by_a_stated_seed():
    X = np.arange(MAX_ROWS + 5.0)[:, None]
    y = np.zeros(len(X), dtype=np.int8)
    rows = np.random.default_rng(0).permutation(len(X))[:MAX_ROWS]
    np.testing.assert_array_equal(cut(X, y)[0], X[rows])
    np.testing.assert_array_equal(cut(X[:MAX_ROWS], y[:MAX_ROWS])[0], X[:MAX_ROWS])
