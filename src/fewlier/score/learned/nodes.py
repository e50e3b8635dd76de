"""`Nodes`: decision trees as arrays, and the ways of rows through them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, final

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from fewlier.modelfile.state import State, require
from fewlier.table.arrays import Floats

if TYPE_CHECKING:
    from sklearn.tree._tree import Tree

MAX_NODES = 60_000
"""Nodes of all trees of a model."""
# A tree of 256 rows, two in each leaf, has fewer levels.
_MAX_DEPTH = 128
_MAX_TREES = 1000  # in a file: a row sets out in every tree
_FIELDS = {
    "feature": np.int32,
    "threshold": np.float32,
    "right": np.int32,
    "value": np.float64,
}


class Order(NamedTuple):
    """The t trees, the deepest first.

    `roots` (t,) are their roots, `place` (t,) their places in the order of the nodes, and the first
    `n_deeper[level]` of them have more levels than `level`.
    """

    roots: Int[Tensor, " t"]
    place: Int[Tensor, " t"]
    n_deeper: list[int]


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
        What a row that ends here scores; of a node that splits, what its rows do on average.
    """

    feature: Int[Tensor, " m"]
    threshold: Float[Tensor, " m"]
    right: Int[Tensor, " m"]
    value: Float[Tensor, " m"]

    @classmethod
    def from_sklearn(cls, trees: Sequence[tuple["Tree", Floats]], device: torch.device) -> "Nodes":
        """Put trees of scikit-learn together, whose nodes are in this order, with their values."""
        found, start = [], 0
        for tree, value in trees:
            is_leaf = tree.children_left < 0
            found.append(
                (
                    np.where(is_leaf, -1, tree.feature).astype(np.int32),
                    np.where(is_leaf, 0.0, tree.threshold).astype(np.float32),
                    np.where(is_leaf, 0, tree.children_right + start).astype(np.int32),
                    value,
                )
            )
            start += tree.node_count
        columns = (np.concatenate(part) for part in zip(*found, strict=True))
        return cls(*(torch.from_numpy(column).to(device) for column in columns))

    def __len__(self) -> int:
        """Count the nodes."""
        return len(self.feature)

    @property
    def n_trees(self) -> int:
        """Count the trees, one of each bag."""
        return len(self.order.roots)

    @property
    def roots(self) -> Int[Tensor, " t"]:
        """The roots of the trees, the deepest tree first."""
        return self.order.roots

    def ends(self, x: Float[Tensor, "n f"]) -> Int[Tensor, "t n"]:
        """Return the leaf where each row ends in each tree, the deepest tree first."""
        found = self.roots[:, None].repeat(1, x.shape[0])
        for _, _, end in self._steps(x):
            found[: len(end)] = end
        return found

    def gains(
        self, x: Float[Tensor, "n f"], weights: Float[Tensor, "n t"] | None = None
    ) -> Float[Tensor, "n f"]:
        """Split the scores of rows over the features by which they came from node to node.

        Scores are counted from the roots; with `weights`, trees weigh differently for each row.
        """
        total = torch.zeros(x.shape[1], x.shape[0], dtype=torch.float64, device=x.device)
        for feature, start, end in self._steps(x):
            change = _at(self.value, end) - _at(self.value, start)
            if weights is not None:
                change *= weights.T[self.order.place[: len(start)]]
            total.scatter_add_(0, feature, change)
        return total.T

    def _steps(
        self, x: Float[Tensor, "n f"]
    ) -> Iterator[tuple[Int[Tensor, "k n"], Int[Tensor, "k n"], Int[Tensor, "k n"]]]:
        """Let all rows take a step at a time in the trees that go on, which come first.

        Yield the features by which they go on in k trees, where from, and where to. A row at a leaf
        stays there.
        """
        columns, end = x.T.contiguous(), self.roots[:, None].expand(-1, x.shape[0])
        for k in self.order.n_deeper:
            start = end[:k]
            feature = _at(self.features, start)
            is_above = columns.gather(0, feature) > _at(self.threshold, start)
            end = _at(self.children, 2 * start + is_above)
            yield feature, start, end

    @cached_property
    def features(self) -> Int[Tensor, " m"]:
        """What a node splits by; any feature for a leaf, whose children are itself."""
        return self.feature.clamp_min(0).long()

    @cached_property
    def children(self) -> Int[Tensor, " _"]:
        """The left and the right child of each node; a leaf's are the leaf itself."""
        here = torch.arange(len(self), device=self.feature.device)
        children = torch.stack([here + 1, self.right.long()], 1)
        return torch.where((self.feature < 0)[:, None], here[:, None], children).flatten()

    @cached_property
    def order(self) -> Order:
        """Find the roots, and how deep their trees are."""
        splits = (self.feature >= 0).nonzero().squeeze(-1)
        is_root = torch.ones(len(self), dtype=torch.bool, device=splits.device)
        is_root[splits + 1] = False
        is_root[self.right[splits]] = False
        roots, tree = is_root.nonzero().squeeze(-1), is_root.cumsum(0) - 1
        depth = torch.zeros_like(roots)
        here = splits[is_root[splits]]
        while len(here):
            depth[tree[here]] += 1
            require(bool((depth <= _MAX_DEPTH).all()), f"its trees have over {_MAX_DEPTH} levels.")
            here = torch.cat([here + 1, self.right[here].long()])
            here = here[self.feature[here] >= 0]
        place = depth.argsort(descending=True, stable=True)
        n_deeper = [int((depth > level).sum()) for level in range(int(depth.max()))]
        return Order(roots[place], place, n_deeper)

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
        # The last node can have no child after it.
        is_end = bool(self.feature[-1] < 0)
        require(is_after and is_known and is_end, "its trees are out of range.")
        children = torch.cat([splits + 1, right])
        require(len(children.unique()) == len(children), "a node of its trees has two parents.")
        require(self.n_trees <= _MAX_TREES, f"it has more than {_MAX_TREES} trees.")


def _at(values: Shaped[Tensor, " m"], places: Int[Tensor, "k n"]) -> Shaped[Tensor, "k n"]:
    """Return the values at some places, faster than by brackets."""
    return values.index_select(0, places.flatten()).view(places.shape)
