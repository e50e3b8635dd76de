"""`Forest`: an isolation forest, which says how soon a row is alone, and which rows are alike."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias, final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fewlier.score.learned.nodes import Nodes
from fewlier.table.arrays import Floats, Ints

if TYPE_CHECKING:
    from sklearn.tree._tree import Tree

_N_TREES, _N_DRAWN = 100, 256

Leaves: TypeAlias = npt.NDArray[np.int32]
"""The leaf where each of n rows ends in each of t trees, shape (t, n)."""


@final
@dataclass(frozen=True, eq=False)
class Forest:
    """Trees that split at random until every row of a small sample is alone.

    Parameters
    ----------
    nodes : Nodes
        The trees; the value of a leaf is minus the expected number of splits to be alone there.
    """

    nodes: Nodes

    @classmethod
    def grow(cls, x: Tensor, seed: int) -> "Forest":
        """Grow trees, each on 256 of the rows x (n, f) (Liu, Ting and Zhou, 2008)."""
        from sklearn.ensemble import IsolationForest  # here, because it loads slowly

        n_drawn = min(_N_DRAWN, len(x))
        forest = IsolationForest(n_estimators=_N_TREES, max_samples=n_drawn, random_state=seed)
        forest.fit(x.numpy())
        trees = [(tree.tree_, -_splits(tree.tree_)) for tree in forest.estimators_]
        return cls(Nodes.from_sklearn(trees, x.device))

    def leaves(self, x: Tensor) -> Leaves:
        """Return the leaf where the rows x (n, f) end in each tree."""
        found: Leaves = self.nodes.ends(x).int().numpy()
        return found

    @property
    def isolation(self) -> Floats:
        """How soon a row that ends at a node is alone, shape (m,); a mean over the trees."""
        found: Floats = self.nodes.value.numpy() / self.nodes.n_trees
        return found

    def with_means(self, at_leaves: Floats, n_rows: Ints) -> Nodes:
        """Return the trees with other values: of inner nodes, the means of the rows below.

        Parameters
        ----------
        at_leaves : array (m,)
            Values of the nodes, of which those of leaves count.
        n_rows : array (m,)
            How many rows end at each leaf.
        """
        total, count = at_leaves * n_rows, n_rows.astype(np.float64)
        for inner, left, right in self._levels:
            total[inner], count[inner] = total[left] + total[right], count[left] + count[right]
        is_leaf = self.nodes.feature.numpy() < 0
        values = np.where(is_leaf, at_leaves, total / np.maximum(count, 1))
        return replace(self.nodes, value=torch.from_numpy(values))

    @cached_property
    def _levels(self) -> Sequence[tuple[Ints, Ints, Ints]]:
        """The inner nodes with their children, level by level, the deepest first."""
        feature, right = self.nodes.feature.numpy(), self.nodes.right.numpy().astype(np.int64)
        here = self.nodes.roots.numpy()
        levels = []
        while len(here := here[feature[here] >= 0]):
            levels.append((here, here + 1, right[here]))
            here = np.concatenate([here + 1, right[here]])
        return levels[::-1]


def add_up(values: Floats, leaves: Leaves) -> Floats:
    """Return the sum over the trees of the values where rows end, shape (n,)."""
    total = np.zeros(leaves.shape[1])
    for ends in leaves:
        total += values[ends]
    return total


def alikeness(some: Leaves, others: Leaves) -> Floats:
    """Return in which share of the trees two rows end together, shape (n, m)."""
    together = np.zeros((some.shape[1], others.shape[1]))
    for ends, other in zip(some, others, strict=True):
        together += ends[:, None] == other
    return together / len(some)


def _splits(tree: "Tree") -> Floats:
    """Return how many splits it takes to be alone, by node: those before it, and more.

    A leaf of m rows would take 2 H(m - 1) - 2 (m - 1) / m more, as many as a random search tree.
    """
    depth = np.zeros(tree.node_count)
    for node, (left, right) in enumerate(zip(tree.children_left, tree.children_right, strict=True)):
        if left >= 0:  # parents come before their children
            depth[[left, right]] = depth[node] + 1
    m = tree.n_node_samples.astype(np.float64)
    more = 2 * (np.log(np.maximum(m - 1, 1)) + np.euler_gamma) - 2 * (m - 1) / m
    return np.asarray(depth + np.where(m > 2, more, m - 1))
