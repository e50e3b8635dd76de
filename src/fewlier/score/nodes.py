"""`Nodes`: decision trees as arrays, and the ways of rows through them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
import torch
from jaxtyping import Float, Int
from sklearn.tree import ExtraTreeClassifier
from torch import Tensor

from fewlier.errors import FormatError
from fewlier.state import State, require

MAX_NODES = 60_000
"""Nodes of all trees of a model."""
# Within half of this from a threshold, in standard deviations of the feature, a row goes both ways
# in part: a rounding error of the density, as on another machine, changes a score little too.
_SOFT = 0.01
# A tree of 256 rows, two in each leaf, has fewer levels.
_MAX_DEPTH = 128
_MAX_TREES = 1000  # in a file: a row sets out in every tree
_FIELDS = {
    "feature": np.int32,
    "threshold": np.float32,
    "right": np.int32,
    "value": np.float64,
}


@final
@dataclass(frozen=True, eq=False)
class Nodes:
    """The nodes of all trees in depth-first order: a node's left child is the next node.

    Parameters
    ----------
    feature : tensor (m,)
        What a node splits by; -1 for a leaf.
    threshold : tensor (m,)
        A row goes left if its feature is not above it.
    right : tensor (m,)
        The right child; 0 for a leaf.
    value : tensor (m,)
        Share of anomalies among the rows of a node, both labels weighing alike.
    """

    feature: Int[Tensor, " m"]
    threshold: Float[Tensor, " m"]
    right: Int[Tensor, " m"]
    value: Float[Tensor, " m"]

    @classmethod
    def from_sklearn(cls, trees: Sequence[ExtraTreeClassifier], device: torch.device) -> "Nodes":
        """Put scikit-learn's trees together, whose nodes are in this order."""
        found, start = [], 0
        for tree in (fitted.tree_ for fitted in trees):
            is_leaf = tree.children_left < 0
            found.append(
                (
                    np.where(is_leaf, -1, tree.feature).astype(np.int32),
                    np.where(is_leaf, 0.0, tree.threshold).astype(np.float32),
                    np.where(is_leaf, 0, tree.children_right + start).astype(np.int32),
                    tree.value[:, 0, 1] / tree.value[:, 0].sum(-1),
                )
            )
            start += tree.node_count
        columns = (np.concatenate(part) for part in zip(*found, strict=True))
        return cls(*(torch.from_numpy(column).to(device) for column in columns))

    def __len__(self) -> int:
        """Count the nodes."""
        return len(self.feature)

    @cached_property
    def parent(self) -> Int[Tensor, " m"]:
        """The parent of each node; of a root the root itself."""
        parent = torch.arange(len(self), device=self.feature.device)
        splits = (self.feature >= 0).nonzero().squeeze(-1)
        parent[splits + 1] = splits
        parent[self.right[splits]] = splits
        return parent

    @cached_property
    def roots(self) -> Int[Tensor, " t"]:
        """The nodes without a parent, one for each tree."""
        is_root = self.parent == torch.arange(len(self), device=self.parent.device)
        return is_root.nonzero().squeeze(-1).int()

    @cached_property
    def gain(self) -> Float[Tensor, " m"]:
        """What the mean value over trees changes by when a row comes to each node."""
        return (self.value - self.value[self.parent]) / len(self.roots)

    @cached_property
    def reached_by(self) -> Int[Tensor, " m"]:
        """The feature that the parent of each node splits by; a root gains nothing by any."""
        return self.feature[self.parent]

    def arrivals(
        self, x: Float[Tensor, "n f"], weights: Float[Tensor, "n t"]
    ) -> Iterator[tuple[Int[Tensor, " k"], Int[Tensor, " k"], Float[Tensor, " k"]]]:
        """Yield k arrivals at a time: which rows, at which nodes, and how much of each row.

        Does for every row and tree what this recursion does, from the root and the row's weight::

            def visit(node, amount):
                arrive(node, amount)
                if node splits:
                    visit(child on the row's side, amount * share)
                    visit(other child, amount * (1 - share))

        Unless the row is close to the threshold, the share is 1 and the other child is left out.
        All rows take a step at a time; second visits wait until all first ones are at a leaf.
        """
        n, width = x.shape
        values = x.flatten()
        rows = torch.arange(n, device=x.device, dtype=torch.int32)
        waiting = [
            (rows.repeat_interleave(len(self.roots)), self.roots.repeat(n), weights.flatten())
        ]
        while waiting:
            rows, nodes, amounts = (torch.cat(part) for part in zip(*waiting, strict=True))
            waiting = []
            while len(rows):
                yield rows, nodes, amounts
                feature = self.feature.index_select(0, nodes)
                going_on = (feature >= 0).nonzero().squeeze(-1)
                rows, nodes, amounts, feature = (
                    part.index_select(0, going_on) for part in (rows, nodes, amounts, feature)
                )
                above = values.index_select(0, rows * width + feature)
                above -= self.threshold.index_select(0, nodes)
                left, right = nodes + 1, self.right.index_select(0, nodes)
                nodes = torch.where(above > 0, right, left)
                near = (above.abs() < _SOFT / 2).nonzero().squeeze(-1)
                if len(near):
                    amount, share = amounts[near], above[near].abs() / _SOFT + 0.5
                    other = torch.where(above[near] > 0, left[near], right[near])
                    waiting.append((rows[near], other, amount * (1 - share)))
                    amounts[near] = amount * share

    def state(self) -> State:
        """Return what a model file holds of them."""
        return State({}, {name: getattr(self, name).cpu().numpy() for name in _FIELDS})

    @classmethod
    def from_state(cls, state: State, n_features: int, device: torch.device) -> "Nodes":
        """Inverse of `state`, checked."""
        arrays = {name: state.array(name, dtype, (None,)) for name, dtype in _FIELDS.items()}
        n_nodes = {len(array) for array in arrays.values()}
        is_count = len(n_nodes) == 1 and 1 <= max(n_nodes) <= MAX_NODES
        require(is_count, f"its trees do not have 1 to {MAX_NODES} nodes.")
        nodes = cls(*(torch.from_numpy(array).to(device) for array in arrays.values()))
        nodes._check(n_features)
        return nodes

    def _check(self, n_features: int) -> None:
        """Raise `FormatError` where these cannot be trees."""
        splits = (self.feature >= 0).nonzero().squeeze(-1)
        right = self.right[splits]
        is_after = bool((right > splits + 1).all() and (right < len(self)).all())
        is_known = bool((self.feature >= -1).all() and (self.feature < n_features).all())
        is_share = bool((self.value >= 0).all() and (self.value <= 1).all())
        # The last node can have no child after it.
        is_end = bool(self.feature[-1] < 0)
        require(is_after and is_known and is_share and is_end, "its trees are out of range.")
        children = torch.cat([splits + 1, right])
        require(len(children.unique()) == len(children), "a node of its trees has two parents.")
        require(len(self.roots) <= _MAX_TREES, f"it has more than {_MAX_TREES} trees.")
        here = self.roots
        for _ in range(_MAX_DEPTH):
            here = here[self.feature[here] >= 0]
            here = torch.cat([here + 1, self.right[here]])
        if len(here):
            raise FormatError(f"its trees are deeper than {_MAX_DEPTH} levels.")
