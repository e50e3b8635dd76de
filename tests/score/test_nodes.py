"""Decision trees as arrays."""

import numpy as np
import pytest
import torch
from sklearn.tree import DecisionTreeClassifier

from fewlier import FormatError
from fewlier.modelfile.state import State
from fewlier.score.learned.nodes import Nodes

CPU = torch.device("cpu")
N, N_TREES, N_FEATURES = 300, 7, 6


def made(n=N, seed=0):
    return np.random.default_rng(seed).normal(size=(n, N_FEATURES)).astype(np.float32)


def grow(depth, seed):
    """Grow a tree of scikit-learn's that tells rows by two features in combination."""
    x = made(seed=seed)
    y = (x[:, 2] > 0) ^ (x[:, 4] + x[:, 0] > 0.5)
    return DecisionTreeClassifier(max_depth=depth, max_features=0.5, random_state=seed).fit(x, y)


@pytest.fixture(scope="module")
def fitted():
    """Return trees of different depths, the second a leaf alone."""
    depths = (3, None, 8, 1, 5, None, 2)
    trees = [grow(depth, seed) for seed, depth in enumerate(depths)]
    return [trees[0], DecisionTreeClassifier().fit(made(), np.arange(N) < 0), *trees[2:]]


def share(tree):
    """Return the share of anomalies in each node; a tree without anomalies has one class."""
    value = tree.tree_.value[:, 0]
    return value[:, 1] if value.shape[1] == 2 else np.zeros(len(value))


@pytest.fixture(scope="module")
def nodes(fitted):
    return Nodes.from_sklearn([(tree.tree_, share(tree)) for tree in fitted], CPU)


@pytest.fixture(scope="module")
def gained(fitted):
    """Return what each row scores more in each tree than its root, (n, t), by scikit-learn."""
    x = made(seed=9)
    found = [
        tree.predict_proba(x)[:, 1] - share(tree)[0] if tree.n_classes_ == 2 else np.zeros(N)
        for tree in fitted
    ]
    return np.stack(found, 1)


@pytest.fixture(scope="module")
def weights():
    """Return what trees weigh for each row; one of them weighs nothing."""
    found = np.random.default_rng(1).uniform(0, 2, (N, N_TREES))
    found[:, 3] = 0
    return found


def rows():
    return torch.from_numpy(made(seed=9))


def test_scores_are_those_of_scikit_learns_trees(nodes, gained, weights):
    assert nodes.n_trees == N_TREES
    np.testing.assert_allclose(nodes.gains(rows()).sum(1), gained.sum(1), atol=1e-12)
    found = nodes.gains(rows(), torch.from_numpy(weights)).sum(1)
    np.testing.assert_allclose(found, (weights * gained).sum(1), atol=1e-12)


def changes_on_the_way(tree, x):
    """Return the change of value at each feature that a row meets, walking scikit-learn's tree."""
    found, here, value = np.zeros(N_FEATURES), 0, share(tree)
    tree = tree.tree_
    while tree.children_left[here] >= 0:
        feature = tree.feature[here]
        is_left = x[feature] <= tree.threshold[here]
        child = (tree.children_left if is_left else tree.children_right)[here]
        found[feature] += value[child] - value[here]
        here = child
    return found


def test_gains_are_the_changes_of_value_on_the_way(nodes, fitted, weights):
    x = rows()[:40]
    ways = np.array([[changes_on_the_way(tree, row) for tree in fitted] for row in x.numpy()])
    np.testing.assert_allclose(nodes.gains(x), ways.sum(1), atol=1e-12)
    weighed = (weights[:40, :, None] * ways).sum(1)
    found = nodes.gains(x, torch.from_numpy(weights[:40]))
    np.testing.assert_allclose(found, weighed, atol=1e-12)


def test_gains_sum_to_the_values_where_rows_end(nodes):
    gained = (nodes.value[nodes.ends(rows())] - nodes.value[nodes.roots, None]).sum(0)
    np.testing.assert_allclose(nodes.gains(rows()).sum(1), gained, atol=1e-12)


def test_a_value_at_the_threshold_goes_left():
    arrays = chain(1) | {"value": np.array([0.5, 0.0, 1.0])}
    nodes, zero = load(arrays), np.float32(0)
    beside = [zero, np.nextafter(zero, np.float32(1)), np.nextafter(zero, np.float32(-1))]
    found = nodes.gains(torch.tensor(beside)[:, None]).sum(1)
    np.testing.assert_array_equal(found, [-0.5, 0.5, -0.5])


def test_trees_that_are_leaves_alone_score_nothing():
    leaves = {name: array[-1:].repeat(3) for name, array in chain(1).items()}
    nodes = load(leaves | {"value": np.arange(3.0)})
    assert nodes.n_trees == 3
    assert not nodes.gains(torch.ones(5, 1)).any()


def test_trees_come_back_from_a_file(nodes):
    again = Nodes.from_state(State(*nodes.state().flat()), N_FEATURES, CPU)
    assert torch.equal(again.gains(rows()), nodes.gains(rows()))
    assert torch.equal(again.ends(rows()), nodes.ends(rows()))


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
    return Nodes.from_state(State({}, arrays), 1, CPU)


DAMAGES = {
    "before": ("right", 0, "out of range"),
    "the left child": ("right", 1, "out of range"),
    "beyond": ("right", 7, "out of range"),
    "two parents": ("right", 3, "has two parents"),  # the left child of the right child
    "feature": ("feature", 1, "out of range"),
    "no feature": ("feature", -2, "out of range"),
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
    load(chain(128))
    with pytest.raises(FormatError, match="over 128 levels"):
        load(chain(129))


def test_too_many_trees_are_refused():
    leaves = {name: np.zeros(1001, array.dtype) for name, array in chain(1).items()}
    leaves["feature"][:] = -1
    load({name: array[1:] for name, array in leaves.items()})
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
