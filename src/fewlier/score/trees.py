"""`Forest`: trees that tell labelled anomalies from a few normal rows at a time.

A companion of the density, which takes over as labels become more (docs/METHOD.md).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, final

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Bool, Float, Int
from sklearn.tree import ExtraTreeClassifier
from torch import Tensor

from fewlier.errors import FormatError

N_TREES = 100
# Rows of each label that a tree sees at most, and of the normals at most half.
_N_DRAWN = 128
# Within half of this from a threshold, in standard deviations of the feature, a row goes both ways
# in part: a rounding error of the density, as on another machine, changes a score little too.
_SOFT = 0.01
_LARGEST_FEATURE = 1e9
# A tree of 256 rows, two in each leaf, has fewer levels.
_DEEPEST = 128
_MOST_TREES = 1000  # of a file: a row sets out in every one
# Numbers to hold at a time: parts of rows in nodes.
_AT_A_TIME = 2**20
# A feature that spreads less is constant. What the density says has errors of rounding.
_LEAST_SPREAD, _LEAST_SPREAD_SAID = 1e-6, 1e-4

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@final
@dataclass(frozen=True, eq=False)
class Trees:
    """The nodes of all trees in one array, each before its left child and all that is below it.

    Parameters
    ----------
    feature : tensor (m,)
        What a node splits by; -1 for a leaf.
    threshold : tensor (m,)
        A row goes left, to the next node, if its feature is not above it.
    right : tensor (m,)
        The other child; 0 for a leaf.
    value : tensor (m,)
        Share of anomalies among the rows of a node, both labels weighing alike.
    """

    feature: Int[Tensor, " m"]
    threshold: Float[Tensor, " m"]
    right: Int[Tensor, " m"]
    value: Float[Tensor, " m"]

    @classmethod
    def of(cls, trees: list[ExtraTreeClassifier]) -> "Trees":
        """Put scikit-learn's trees together, which it grows in this order."""
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
        return cls(*(torch.from_numpy(np.concatenate(part)) for part in zip(*found, strict=True)))

    def to(self, device: torch.device | str) -> "Trees":
        """Return the same on a device."""
        return Trees(*(getattr(self, name).to(device) for name in NODE_FIELDS))

    def check(self, n_features: int) -> None:
        """Raise `FormatError` where these cannot be trees."""
        splits = (self.feature >= 0).nonzero().squeeze(-1)
        right = self.right[splits]
        is_after = bool((right > splits + 1).all() and (right < len(self.right)).all())
        is_known = bool((self.feature >= -1).all() and (self.feature < n_features).all())
        is_share = bool((self.value >= 0).all() and (self.value <= 1).all())
        # The last node can have no child after it.
        if not (is_after and is_known and is_share and self.feature[-1] < 0):
            raise FormatError("its trees lie out of range.")
        children = torch.cat([splits + 1, right])
        if len(children.unique()) < len(children):
            raise FormatError("a node of its trees has two parents.")
        if len(self.roots) > _MOST_TREES:
            raise FormatError(f"its trees are more than {_MOST_TREES}.")
        here = self.roots
        for _ in range(_DEEPEST):
            here = here[self.feature[here] >= 0]
            here = torch.cat([here + 1, self.right[here]])
        if len(here):
            raise FormatError(f"its trees are deeper than {_DEEPEST} levels.")

    @cached_property
    def parent(self) -> Int[Tensor, " m"]:
        """The parent of each node; of a root itself."""
        parent = torch.arange(len(self.feature), device=self.feature.device)
        splits = (self.feature >= 0).nonzero().squeeze(-1)
        parent[splits + 1] = splits
        parent[self.right[splits]] = splits
        return parent

    @cached_property
    def roots(self) -> Int[Tensor, " t"]:
        """The nodes without a parent, one for each tree."""
        is_root = self.parent == torch.arange(len(self.parent), device=self.parent.device)
        return is_root.nonzero().squeeze(-1).int()

    def arrivals(
        self, x: Float[Tensor, "n f"], weights: Float[Tensor, "n t"]
    ) -> Iterator[tuple[Int[Tensor, " k"], Int[Tensor, " k"], Float[Tensor, " k"]]]:
        """Yield k arrivals at a time: which rows, at which nodes, and which part of each row.

        A row sets out from every root, as much of it as its weight in the tree. Near a threshold it
        goes both ways: the smaller part waits there until all others have come to a leaf.
        """
        n, width = x.shape
        values = x.flatten()
        rows = torch.arange(n, device=x.device, dtype=torch.int32)
        todo = [(rows.repeat_interleave(len(self.roots)), self.roots.repeat(n), weights.flatten())]
        while todo:
            rows, nodes, parts = (torch.cat(arrays) for arrays in zip(*todo, strict=True))
            todo = []
            while len(rows):
                yield rows, nodes, parts
                feature = self.feature.index_select(0, nodes)
                rows, nodes, parts, feature = _only(feature >= 0, rows, nodes, parts, feature)
                beyond = values.index_select(0, rows * width + feature)
                beyond -= self.threshold.index_select(0, nodes)
                left, right = nodes + 1, self.right.index_select(0, nodes)
                nodes = torch.where(beyond > 0, right, left)
                near = (beyond.abs() < _SOFT / 2).nonzero().squeeze(-1)
                if len(near):
                    part, share = parts[near], beyond[near].abs() / _SOFT + 0.5
                    other = left[near] + right[near] - nodes[near]
                    todo.append((rows[near], other, part * (1 - share)))
                    parts[near] = part * share


NODE_FIELDS = ("feature", "threshold", "right", "value")


@final
@dataclass(frozen=True, eq=False)
class Forest:
    r"""The score z(x) = (mean over trees of the share of anomalies where x ends - mean) / spread.

    Features are the coordinates of a row and what the density says of each column, so that each
    belongs to one. On its way down, a row changes from the value of a node to that of its child;
    the change is the contribution of the column that the node splits by, centred on normal rows.

    Parameters
    ----------
    share : float
        Its part in the score of a model.
    spread : float
        Standard deviation of the mean value on normal rows, by trees that have not seen them.
    scale : tensor (f,)
        Standard deviations of the features; thresholds are in these.
    centre : tensor (d,)
        What each column contributes to the mean value of normal rows on average.
    owner : tensor (f,)
        The column each feature belongs to.
    trees : Trees
        The trees.
    ids, seen : array (r,), array (r, trees)
        Rows of the fit (see `Encoded.ids`), in order, and which trees have seen them or a copy;
        empty in a model that was loaded.
    """

    share: float
    spread: float
    scale: Float[Tensor, " f"]
    centre: Float[Tensor, " d"]
    owner: Int[Tensor, " f"]
    trees: Trees
    ids: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    seen: Bools = field(default_factory=lambda: np.empty((0, 0), dtype=np.bool_))

    @classmethod
    def of(
        cls,
        features: Float[Tensor, "r f"],
        owner: Int[Tensor, " f"],
        rows: tuple[Ints, Bools],
        share: float,
        seed: int,
    ) -> "Forest":
        """Fit trees to rows of the fit: their ids, and which are anomalies."""
        ids, is_anomaly = rows
        normals = torch.from_numpy(~is_anomaly).to(features.device)
        n_columns = int(owner.max()) + 1  # the last features are what the density says of each
        scale = features[normals].double().std(0, correction=0).float()
        least = torch.full_like(scale, _LEAST_SPREAD)
        least[-n_columns:] = _LEAST_SPREAD_SAID
        scale = torch.where(scale > least, scale, 1)
        x = _scaled(features, scale).cpu().numpy()
        rng = np.random.default_rng(seed)
        drawn = [_drawn(ids, is_anomaly, rng) for _ in range(N_TREES)]
        seeds = rng.integers(2**31 - 1, size=N_TREES).tolist()
        trees = Trees.of(
            [_tree(x[rows], is_anomaly[rows], s) for rows, s in zip(drawn, seeds, strict=True)]
        )
        distinct, place = np.unique(ids, return_inverse=True)
        seen = np.zeros((len(distinct), N_TREES), dtype=np.bool_)
        for tree, in_bag in enumerate(drawn):
            seen[place[in_bag], tree] = True
        centre = torch.zeros(n_columns, dtype=torch.float64, device=features.device)
        plain = cls(share, 1.0, scale, centre, owner, trees.to(features.device), distinct, seen)
        found = plain.contributions(features[normals], ids[~is_anomaly])
        spread = float(found.sum(1).std())
        return replace(
            plain,
            spread=spread if spread > _LEAST_SPREAD else 1.0,
            centre=torch.from_numpy(found.mean(0)).to(features.device),
        )

    def score(self, features: Float[Tensor, "n f"], ids: Ints | None = None) -> Floats:
        """Return z of n rows, shape (n,), higher is more anomalous.

        With their `ids`, by the trees that have seen neither the row nor a copy of it.
        """
        z: Floats = self._gained(features, ids, by_column=False).squeeze(1).cpu().numpy()
        return z

    def contributions(self, features: Float[Tensor, "n f"], ids: Ints | None = None) -> Floats:
        """Return what each column adds to z, shape (n, d)."""
        contributions: Floats = self._gained(features, ids, by_column=True).cpu().numpy()
        return contributions

    def _gained(
        self, features: Float[Tensor, "n f"], ids: Ints | None, *, by_column: bool
    ) -> Float[Tensor, "n c"]:
        """Add up what rows gain on their ways, for each column or for all together."""
        n, n_columns = len(features), len(self.centre) if by_column else 1
        total = torch.zeros(n * n_columns, device=features.device, dtype=torch.float64)
        weights = torch.from_numpy(self._weights(ids, n)).to(features.device)
        column, gain = self._gains
        # On all thresholds at once, as in no tree that was grown, a row would come to every leaf.
        size = max(16, _AT_A_TIME // max(self.n_trees, len(gain) // 16))
        for start in range(0, n, size):
            here = slice(start, start + size)
            x = _scaled(features[here], self.scale)
            for rows, nodes, parts in self.trees.arrivals(x, weights[here]):
                place = rows + start
                if by_column:
                    place = place * n_columns + column.index_select(0, nodes)
                total.index_add_(0, place, parts * gain.index_select(0, nodes))
        centre = self.centre if by_column else self.centre.sum()
        return (total.view(n, n_columns) - centre) / self.spread

    @property
    def n_trees(self) -> int:
        """How many trees there are."""
        return len(self.trees.roots)

    @cached_property
    def _gains(self) -> tuple[Int[Tensor, " m"], Float[Tensor, " m"]]:
        """In which column a row gains what when it comes to each node: its parent splits by it."""
        trees = self.trees
        gain = (trees.value - trees.value[trees.parent]) / self.n_trees
        return self.owner[trees.feature[trees.parent]].int(), gain

    def _weights(self, ids: Ints | None, n: int) -> npt.NDArray[np.float32]:
        """Weigh the trees for n rows, shape (n, t): those that have seen a row do not count."""
        if ids is None or not len(self.ids):
            return np.ones((n, self.n_trees), dtype=np.float32)
        seen = np.zeros((n, self.n_trees), dtype=np.bool_)
        place = np.searchsorted(self.ids, ids).clip(max=len(self.ids) - 1)
        is_known = self.ids[place] == ids
        seen[is_known] = self.seen[place[is_known]]
        share = (~seen).mean(1, keepdims=True).clip(1 / self.n_trees)
        return np.asarray(~seen / share, dtype=np.float32)

    @property
    def meaning(self) -> str:
        """What the contribution of a column means, in a sentence."""
        return (
            f"And, as {self.share:.0%} of the score, how much more trees that split by the column "
            "take the row for a labelled anomaly than they do normal rows."
        )

    @property
    def record(self) -> dict[str, float | int]:
        """What the manifest of a model file says of it."""
        return {"share": self.share, "spread": self.spread, "n_nodes": len(self.trees.feature)}

    @property
    def tensors(self) -> dict[str, Tensor]:
        """Its part of the weights in a model file, by name."""
        nodes = {f"forest.{name}": getattr(self.trees, name) for name in NODE_FIELDS}
        return nodes | {"forest.scale": self.scale, "forest.centre": self.centre}

    @classmethod
    def read(
        cls, record: dict[str, Any] | None, tensors: dict[str, Tensor], owner: Int[Tensor, " f"]
    ) -> "Forest | None":
        """Inverse of `record` and `tensors`; raises `FormatError` for what cannot be."""
        if record is None:
            return None
        trees = Trees(*(tensors[f"forest.{name}"] for name in NODE_FIELDS))
        trees.check(len(owner))
        scale = tensors["forest.scale"]
        if not bool((scale > 0).all()):
            raise FormatError("the features of its trees have no positive scale.")
        return cls(record["share"], record["spread"], scale, tensors["forest.centre"], owner, trees)


def _scaled(features: Float[Tensor, "n f"], scale: Float[Tensor, " f"]) -> Float[Tensor, "n f"]:
    return (features.float() / scale).clamp(-_LARGEST_FEATURE, _LARGEST_FEATURE)


def _drawn(ids: Ints, is_anomaly: Bools, rng: np.random.Generator) -> Ints:
    """Draw the rows of a tree: a few normals, and as many anomalies as there are, with repeats.

    The normals are of at most half of the distinct rows: every row has trees that have not seen it.
    """
    normals, anomalies = np.flatnonzero(~is_anomaly), np.flatnonzero(is_anomaly)
    shuffled = rng.permutation(normals)
    _, first, place = np.unique(ids[shuffled], return_index=True, return_inverse=True)
    is_drawn = first[place] <= np.sort(first)[max(0, len(first) // 2 - 1)]
    few = shuffled[is_drawn][:_N_DRAWN]
    return np.concatenate([few, rng.choice(anomalies, min(len(anomalies), _N_DRAWN))])


def _tree(x: npt.NDArray[np.float32], y: Bools, seed: int) -> ExtraTreeClassifier:
    tree = ExtraTreeClassifier(
        min_samples_leaf=2, max_features="sqrt", class_weight="balanced", random_state=seed
    )
    return tree.fit(x, y)


def _only(mask: Bool[Tensor, " k"], *arrays: Tensor) -> tuple[Tensor, ...]:
    """Return of each array what a mask is true for."""
    places = mask.nonzero().squeeze(-1)
    return tuple(array.index_select(0, places) for array in arrays)
