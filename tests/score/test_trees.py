"""Trees that tell labelled anomalies from normals, beside the density."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import torch
from factories import small
from sklearn.metrics import roc_auc_score
from sklearn.tree import ExtraTreeClassifier

from fewlier import FormatError
from fewlier.density.joint import Rows
from fewlier.score import trees as forest
from fewlier.score.selection import companions_shares
from fewlier.score.trees import Forest, Trees
from fewlier.table import Table

N, N_ODD = 300, 8


def made(n=N, n_odd=N_ODD, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 6)).astype(np.float32)
    x[:n_odd, 2] += 2
    return x


def planted(seed=0, n_odd=N_ODD):
    features = torch.from_numpy(made(seed=seed, n_odd=n_odd))
    owner = torch.tensor([0, 0, 1, 2, 3, 3])
    rows = np.arange(1000, 1000 + N), np.arange(N) < n_odd
    return Forest.of(features, owner, rows, 0.3, seed=1)


@pytest.fixture(scope="module")
def trees():
    return planted()


def mean_at_the_leaves(trees, x, weights):
    """Return the mean over trees of the value where rows end, by the parts that come there."""
    mean = torch.zeros(len(x), dtype=torch.float64)
    for rows, nodes, parts in trees.arrivals(x, weights):
        at_leaf = trees.feature[nodes] < 0
        mean.index_add_(0, rows[at_leaf], (parts * trees.value[nodes])[at_leaf])
    return mean.numpy() / len(trees.roots)


def test_values_are_those_of_scikit_learns_trees(monkeypatch):
    monkeypatch.setattr(forest, "_SOFT", 1e-9)  # no row lies so close to a threshold
    x, y = made(), np.arange(N) < N_ODD
    fitted = [ExtraTreeClassifier(random_state=s, max_depth=4).fit(x, y) for s in range(5)]
    found = Trees.of(fitted)
    found.check(x.shape[1])
    values = mean_at_the_leaves(found, torch.from_numpy(x), torch.ones(N, 5))
    expected = np.mean([tree.predict_proba(x)[:, 1] for tree in fitted], axis=0)
    np.testing.assert_allclose(values, expected, atol=1e-7)
    np.testing.assert_allclose(found.value[found.roots], N_ODD / N)


def test_all_of_a_row_comes_to_leaves(trees):
    nodes, total = trees.trees, torch.zeros(N)
    for rows, places, parts in nodes.arrivals(torch.from_numpy(made(seed=3)), torch.ones(N, 100)):
        at_leaf = nodes.feature[places] < 0
        total.index_add_(0, rows[at_leaf], parts[at_leaf])
        assert (parts > 0).all()
    np.testing.assert_allclose(total, 100, rtol=1e-5)


def test_contributions_are_the_changes_of_value_along_the_way(trees):
    x = torch.from_numpy(made(seed=3))
    mean = mean_at_the_leaves(trees.trees, (x / trees.scale).float(), torch.ones(N, 100))
    expected = (mean - 0.5 - trees.centre.sum().item()) / trees.spread
    np.testing.assert_allclose(trees.contributions(x).sum(1), expected, atol=1e-4)
    np.testing.assert_allclose(trees.contributions(x).sum(1), trees.score(x), atol=1e-12)
    assert trees.contributions(x)[:N_ODD].mean(0).argmax() == 1  # the owner of what is planted


def test_normals_scored_by_trees_that_have_not_seen_them_are_standardised(trees):
    x, numbers = torch.from_numpy(made()), np.arange(1000, 1000 + N)
    z = trees.contributions(x, numbers)
    assert z[N_ODD:].sum(1).mean() == pytest.approx(0, abs=1e-6)
    assert z[N_ODD:].sum(1).std() == pytest.approx(1, abs=1e-6)
    np.testing.assert_allclose(z[N_ODD:].mean(0), 0, atol=1e-6)
    seen = trees.contributions(x)
    assert seen[:N_ODD].sum(1).mean() > z[:N_ODD].sum(1).mean()  # those they grew up with
    others = trees.contributions(x, np.arange(N))  # numbers of rows that no tree knows
    np.testing.assert_allclose(others, seen, atol=1e-5)


def test_a_row_left_out_is_scored_by_the_trees_that_have_not_seen_it(trees):
    x = torch.from_numpy(made())[:1]
    unseen = ~trees.seen[0]
    assert 0 < unseen.mean() < 1
    weights = torch.from_numpy(unseen / unseen.mean()).float()[None]
    mean = mean_at_the_leaves(trees.trees, x / trees.scale, weights)
    expected = (mean.item() - 0.5 - trees.centre.sum().item()) / trees.spread
    assert trees.contributions(x, np.array([1000])).sum() == pytest.approx(expected, abs=1e-4)


def test_a_small_error_of_a_feature_changes_a_score_little(trees):
    x = torch.from_numpy(made(seed=5))
    change = np.abs(trees.contributions(x + 1e-6) - trees.contributions(x)).max()
    assert change < 1e-4


def test_the_same_seed_grows_the_same_trees():
    one, same = planted(), planted()
    other = planted(seed=2)
    for name in forest.NODE_FIELDS:
        assert torch.equal(getattr(one.trees, name), getattr(same.trees, name))
    assert len(one.trees.feature) != len(other.trees.feature)


def test_trees_count_more_with_more_labels():
    shares = [companions_shares(n, alone=0) for n in range(60)]
    assert shares[0] == shares[1] == shares[2] == (pytest.approx(1 / 2), 0.0)
    assert shares[6] == (pytest.approx(1 / 3), pytest.approx(1 / 3))
    assert all(a[1] < b[1] for a, b in pairwise(shares[2:]))
    assert all(sum(pair) < 1 for pair in shares)
    assert companions_shares(6, alone=1) == (pytest.approx(10 / 12), pytest.approx(1 / 12))


def chain(n):
    """Return a tree in which the right child of each of n nodes splits again."""
    feature = torch.tensor([0, -1] * n + [-1], dtype=torch.int32)
    right = torch.where(feature >= 0, torch.arange(2 * n + 1) + 2, 0).int()
    return Trees(feature, torch.zeros(2 * n + 1), right, torch.zeros(2 * n + 1).double())


DAMAGES = {
    "before": ("right", 0, "lie out of range"),
    "the left child": ("right", 1, "lie out of range"),
    "beyond": ("right", 7, "lie out of range"),
    "two parents": ("right", 3, "has two parents"),  # the left child of the right child
    "feature": ("feature", 1, "lie out of range"),
    "value": ("value", 1.5, "lie out of range"),
}


@pytest.mark.parametrize(("name", "value", "message"), DAMAGES.values(), ids=DAMAGES)
def test_nodes_that_cannot_be_trees_are_refused(name, value, message):
    tree = chain(3)
    tree.check(1)
    getattr(tree, name)[0] = value
    with pytest.raises(FormatError, match=message):
        replace(tree).check(1)


def test_trees_too_deep_are_refused():
    chain(127).check(1)
    with pytest.raises(FormatError, match="deeper than 128 levels"):
        chain(128).check(1)


def test_too_many_trees_are_refused():
    leaves = torch.full((1001,), -1, dtype=torch.int32)
    trees = Trees(leaves, torch.zeros(1001), torch.zeros(1001).int(), torch.zeros(1001).double())
    with pytest.raises(FormatError, match="more than 1000"):
        trees.check(1)


def test_a_last_node_that_splits_is_refused():
    tree = chain(3)
    tree.feature[-1] = 0  # its left child would be the next
    with pytest.raises(FormatError, match="lie out of range"):
        tree.check(1)


@pytest.mark.slow
def test_a_detector_with_many_labels_learns_what_only_labels_tell():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(600, 5)), columns=list("abcde"))
    odd = np.arange(600) < 30
    table.loc[odd, "c"] = rng.uniform(0.4, 0.8, 30)  # in the middle of normal rows
    fresh = pd.DataFrame(rng.normal(size=(400, 5)), columns=list("abcde"))
    fresh.loc[:99, "c"] = rng.uniform(0.4, 0.8, 100)
    detector = small(max_epochs=3).fit(table, odd)
    truth = np.arange(400) < 100
    without = replace(detector.model_, forest=None)
    model = detector.model_
    encoded = model.encode(Table.of(fresh))
    both, alone = (roc_auc_score(truth, m.score(encoded)) for m in (model, without))
    assert both > alone + 0.05
    scores = detector.anomaly_score(fresh)
    np.testing.assert_allclose(detector.explain(fresh).score, scores, rtol=1e-9, atol=1e-9)
    order = rng.permutation(400)[:33]
    np.testing.assert_array_equal(detector.anomaly_score(fresh.iloc[order]), scores[order])
    features = model.features(Rows.of(encoded), model.density_parts(encoded))
    assert model.forest.contributions(features)[:100].mean(0).argmax() == 2
