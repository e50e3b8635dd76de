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
from fewlier.density.rows import Rows
from fewlier.score import nodes as module
from fewlier.score.model import Scorer
from fewlier.score.nodes import Nodes
from fewlier.score.part import HeldOut
from fewlier.score.selection import shares
from fewlier.score.space import NumericColumns
from fewlier.score.trees import Features, Trees
from fewlier.state import State
from fewlier.table import Table

N, N_ODD = 300, 8


def made(n=N, n_odd=N_ODD, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 6)).astype(np.float32)
    x[:n_odd, 2] += 2
    return x


def encoded(x):
    """Return rows of four columns, the first and the last with two inputs, as tensors."""
    filled = torch.ones(len(x), 4, dtype=torch.bool)
    return Rows(torch.from_numpy(x), torch.zeros(len(x), 4), filled, ~filled)


def features():
    none = torch.zeros(0, dtype=torch.int64)
    numbers = NumericColumns(none, none, none, *(torch.zeros(0, 1), torch.zeros(0), torch.zeros(0)))
    return Features(numbers, torch.tensor([0, 0, 1, 2, 3, 3, 0, 1, 2, 3]))


def nothing(n):
    """Return the contributions of a density that says nothing of n rows."""
    return np.zeros((n, 5))


def planted(seed=0, n_odd=N_ODD):
    labels = np.arange(1000, 1000 + N), np.arange(N) < n_odd
    rows = encoded(made(seed=seed, n_odd=n_odd))
    return Trees.grow(features(), rows, nothing(N), *labels, seed=1)


def contributions(trees, x, ids=None):
    own = None if ids is None else HeldOut(ids)
    found = trees.contributions(encoded(x), {"density": nothing(len(x))}, own)
    assert (found[:, -1] == 0).all()
    return found[:, :-1]


def read(trees, x):
    """Return what trees read of rows."""
    return torch.from_numpy(np.hstack([x, nothing(len(x))[:, :-1]])).float() / trees.scale


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
    monkeypatch.setattr(module, "_SOFT", 1e-9)  # no row lies so close to a threshold
    x, y = made(), np.arange(N) < N_ODD
    fitted = [ExtraTreeClassifier(random_state=s, max_depth=4).fit(x, y) for s in range(5)]
    found = Nodes.from_sklearn(fitted, torch.device("cpu"))
    values = mean_at_the_leaves(found, torch.from_numpy(x), torch.ones(N, 5))
    expected = np.mean([tree.predict_proba(x)[:, 1] for tree in fitted], axis=0)
    np.testing.assert_allclose(values, expected, atol=1e-7)
    np.testing.assert_allclose(found.value[found.roots], N_ODD / N)


def test_all_of_a_row_comes_to_leaves(trees):
    nodes, total, x = trees.nodes, torch.zeros(N), read(trees, made(seed=3))
    for rows, places, parts in nodes.arrivals(x, torch.ones(N, 100)):
        at_leaf = nodes.feature[places] < 0
        total.index_add_(0, rows[at_leaf], parts[at_leaf])
        assert (parts > 0).all()
    np.testing.assert_allclose(total, 100, rtol=1e-5)


def test_contributions_are_the_changes_of_value_along_the_way(trees):
    x = made(seed=3)
    mean = mean_at_the_leaves(trees.nodes, read(trees, x), torch.ones(N, 100))
    expected = (mean - 0.5 - trees.centre.sum().item()) / trees.spread
    np.testing.assert_allclose(contributions(trees, x).sum(1), expected, atol=1e-4)
    assert contributions(trees, x)[:N_ODD].mean(0).argmax() == 1  # the owner of what is planted


def test_normals_scored_by_trees_that_have_not_seen_them_are_standardised(trees):
    x = made()
    z = contributions(trees, x, np.arange(1000, 1000 + N))
    assert z[N_ODD:].sum(1).mean() == pytest.approx(0, abs=1e-6)
    assert z[N_ODD:].sum(1).std() == pytest.approx(1, abs=1e-6)
    np.testing.assert_allclose(z[N_ODD:].mean(0), 0, atol=1e-6)
    seen = contributions(trees, x)
    assert seen[:N_ODD].sum(1).mean() > z[:N_ODD].sum(1).mean()  # those they grew up with
    others = contributions(trees, x, np.arange(N))  # ids of rows that no tree knows
    np.testing.assert_allclose(others, seen, atol=1e-5)


def test_a_row_left_out_is_scored_by_the_trees_that_have_not_seen_it(trees):
    x = made()[:1]
    unseen = ~trees.bags.seen[0]
    assert 0 < unseen.mean() < 1
    weights = torch.from_numpy(unseen / unseen.mean()).float()[None]
    mean = mean_at_the_leaves(trees.nodes, read(trees, x), weights)
    expected = (mean.item() - 0.5 - trees.centre.sum().item()) / trees.spread
    assert contributions(trees, x, np.array([1000])).sum() == pytest.approx(expected, abs=1e-4)


def test_a_small_error_of_a_feature_changes_a_score_little(trees):
    x = made(seed=5)
    change = np.abs(contributions(trees, x + np.float32(1e-6)) - contributions(trees, x)).max()
    assert change < 1e-4


@pytest.mark.slow
def test_the_same_seed_grows_the_same_trees():
    one, same = planted(), planted()
    other = planted(seed=2)
    for name in ("feature", "threshold", "right", "value"):
        assert torch.equal(getattr(one.nodes, name), getattr(same.nodes, name))
    assert len(one.nodes) != len(other.nodes)


def test_trees_count_more_with_more_labels():
    found = [shares(n, novelty=0.0) for n in range(60)]
    assert found[0] == found[1] == found[2] == (pytest.approx(1 / 2), 0.0)
    assert found[6] == (pytest.approx(1 / 3), pytest.approx(1 / 3))
    assert all(a[1] < b[1] for a, b in pairwise(found[2:]))
    assert all(sum(pair) < 1 for pair in found)
    assert shares(6, novelty=1.0) == (pytest.approx(10 / 12), pytest.approx(1 / 12))


def chain(n):
    """Return what a file holds of a tree in which the right child of each of n nodes splits."""
    feature = np.array([0, -1] * n + [-1], dtype=np.int32)
    right = np.where(feature >= 0, np.arange(2 * n + 1) + 2, 0).astype(np.int32)
    threshold = np.zeros(2 * n + 1, dtype=np.float32)
    return {
        "feature": feature,
        "threshold": threshold,
        "right": right,
        "value": np.zeros(2 * n + 1),
    }


def load(arrays):
    return Nodes.from_state(State({}, arrays), 1, torch.device("cpu"))


DAMAGES = {
    "before": ("right", 0, "out of range"),
    "the left child": ("right", 1, "out of range"),
    "beyond": ("right", 7, "out of range"),
    "two parents": ("right", 3, "has two parents"),  # the left child of the right child
    "feature": ("feature", 1, "out of range"),
    "value": ("value", 1.5, "out of range"),
    "not a number": ("value", np.nan, "NaN"),
}


@pytest.mark.parametrize(("name", "value", "message"), DAMAGES.values(), ids=DAMAGES)
def test_nodes_that_cannot_be_trees_are_refused(name, value, message):
    arrays = chain(3)
    assert len(load(arrays)) == 7
    arrays[name][0] = value
    with pytest.raises(FormatError, match=message):
        load(arrays)


def test_trees_too_deep_are_refused():
    load(chain(127))
    with pytest.raises(FormatError, match="deeper than 128 levels"):
        load(chain(128))


def test_too_many_trees_are_refused():
    leaves = {name: np.zeros(1001, array.dtype) for name, array in chain(1).items()}
    leaves["feature"][:] = -1
    with pytest.raises(FormatError, match="more than 1000"):
        load(leaves)


def test_nodes_that_are_not_as_many_as_their_features_are_refused():
    arrays = chain(3)
    with pytest.raises(FormatError, match="1 to 60000 nodes"):
        load(arrays | {"value": arrays["value"][1:]})


def test_a_last_node_that_splits_is_refused():
    arrays = chain(3)
    arrays["feature"][-1] = 0  # its left child would be the next
    with pytest.raises(FormatError, match="out of range"):
        load(arrays)


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
    model = detector.model_
    without = replace(model.scorer, others=model.scorer.others[:1])
    encoded = model.encode(Table.of(fresh))
    both, alone = (roc_auc_score(truth, s.score(encoded)) for s in (model.scorer, without))
    assert both > alone + 0.05
    scores = detector.anomaly_score(fresh)
    np.testing.assert_allclose(detector.explain(fresh).score, scores, rtol=1e-9, atol=1e-9)
    order = rng.permutation(400)[:33]
    np.testing.assert_array_equal(detector.anomaly_score(fresh.iloc[order]), scores[order])
    before = {"density": Scorer(model.encoder, model.ensemble).contributions(encoded)}
    trees = model.parts["trees"].contributions(Rows.of(encoded), before)
    assert trees[:100].mean(0).argmax() == 2
