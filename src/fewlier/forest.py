"""`Forest`: trees that tell labelled anomalies from a few normal rows at a time.

A companion of the density, which takes over as labels become more (docs/METHOD.md).
"""

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

N_TREES = 200
# Rows of each label that a tree sees at most, and of the normals at most half.
_N_DRAWN = 128
# A row this close to a threshold, in standard deviations of the feature, goes both ways in part: a
# rounding error of the density, as on another machine, then changes a score as little.
_SOFT = 0.01
_LARGEST_FEATURE = 1e9
# A tree of 256 rows, two in each leaf, has fewer levels.
_DEEPEST = 128
# Numbers to hold at a time: parts of rows in nodes.
_AT_A_TIME = 2**20
_LEAST_SPREAD = 1e-6

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@final
@dataclass(frozen=True, eq=False)
class Trees:
    """The nodes of all trees in one array, each after its parent.

    Parameters
    ----------
    feature : tensor (m,)
        What a node splits by; -1 for a leaf.
    threshold : tensor (m,)
        A row goes left if its feature is not above it.
    left, right : tensor (m,)
        The children; 0 for a leaf.
    value : tensor (m,)
        Share of anomalies among the rows of a node, both labels weighing alike.
    """

    feature: Int[Tensor, " m"]
    threshold: Float[Tensor, " m"]
    left: Int[Tensor, " m"]
    right: Int[Tensor, " m"]
    value: Float[Tensor, " m"]

    @classmethod
    def of(cls, trees: list[ExtraTreeClassifier]) -> "Trees":
        """Put scikit-learn's trees together."""
        found, start = [], 0
        for tree in (fitted.tree_ for fitted in trees):
            is_leaf = tree.children_left < 0
            found.append(
                (
                    np.where(is_leaf, -1, tree.feature),
                    np.where(is_leaf, 0.0, tree.threshold),
                    np.where(is_leaf, 0, tree.children_left + start),
                    np.where(is_leaf, 0, tree.children_right + start),
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
        m, splits = len(self.feature), (self.feature >= 0).nonzero().squeeze(-1)
        children = torch.stack([self.left[splits], self.right[splits]])
        is_after = bool((children > splits).all() and (children < m).all())
        is_known = bool((self.feature >= -1).all() and (self.feature < n_features).all())
        is_share = bool((self.value >= 0).all() and (self.value <= 1).all())
        if not (is_after and is_known and is_share):
            raise FormatError("its trees lie out of range.")
        if len(self.levels) > _DEEPEST:
            raise FormatError(f"its trees are deeper than {_DEEPEST} levels.")
        if bool((children.flatten().bincount(minlength=m) > 1).any()):
            raise FormatError("a node of its trees has two parents.")

    @cached_property
    def parent(self) -> Int[Tensor, " m"]:
        """The parent of each node; of a root itself."""
        parent = torch.arange(len(self.feature), device=self.feature.device)
        splits = (self.feature >= 0).nonzero().squeeze(-1)
        parent[self.left[splits]] = splits
        parent[self.right[splits]] = splits
        return parent

    @cached_property
    def is_root(self) -> Bool[Tensor, " m"]:
        """Which nodes have no parent."""
        return self.parent == torch.arange(len(self.parent), device=self.parent.device)

    @cached_property
    def tree(self) -> Int[Tensor, " m"]:
        """The number of the tree that each node belongs to: trees follow each other."""
        return self.is_root.long().cumsum(0) - 1

    @cached_property
    def levels(self) -> list[Int[Tensor, " k"]]:
        """The nodes that split, by their depth."""
        levels, here = [], self.is_root.nonzero().squeeze(-1)
        while len(here := here[self.feature[here] >= 0]):
            levels.append(here)
            here = torch.cat([self.left[here], self.right[here]])
        return levels

    def reach(self, features: Float[Tensor, "n f"]) -> Float[Tensor, "m n"]:
        """Return the part of each row that comes to each node: 0 or 1 but near thresholds."""
        columns = features.T.contiguous()
        reach = torch.ones(len(self.feature), len(features), device=features.device)
        threshold = self.threshold.to(features.dtype)
        for nodes in self.levels:
            beyond = columns[self.feature[nodes]] - threshold[nodes].unsqueeze(-1)
            right = (beyond / _SOFT + 0.5).clamp(0, 1)
            reach[self.left[nodes]] = reach[nodes] * (1 - right)
            reach[self.right[nodes]] = reach[nodes] * right
        return reach


NODE_FIELDS = ("feature", "threshold", "left", "right", "value")


@final
@dataclass(frozen=True, eq=False)
class Forest:
    r"""The score z(x) = (mean over trees of the share of anomalies where x ends - mean) / spread.

    Features are what the networks read and what the density says of each column, so that each
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
    numbers, seen : array (r,), array (r, trees)
        Rows of the fit by their numbers, and which trees have seen them; empty in a model that was
        loaded or updated.
    """

    share: float
    spread: float
    scale: Float[Tensor, " f"]
    centre: Float[Tensor, " d"]
    owner: Int[Tensor, " f"]
    trees: Trees
    numbers: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
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
        """Fit trees to rows of the fit, given by their numbers and by which are anomalies."""
        numbers, is_anomaly = rows
        normals = torch.from_numpy(~is_anomaly).to(features.device)
        scale = features[normals].double().std(0, correction=0).float()
        scale = torch.where(scale > _LEAST_SPREAD, scale, 1)
        x = _scaled(features, scale).cpu().numpy()
        rng = np.random.default_rng(seed)
        drawn = [_drawn(is_anomaly, rng) for _ in range(N_TREES)]
        seeds = rng.integers(2**31 - 1, size=N_TREES).tolist()
        trees = Trees.of(
            [_tree(x[rows], is_anomaly[rows], s) for rows, s in zip(drawn, seeds, strict=True)]
        )
        seen = np.zeros((len(x), N_TREES), dtype=np.bool_)
        for tree, in_bag in enumerate(drawn):
            seen[in_bag, tree] = True
        centre = torch.zeros(int(owner.max()) + 1, dtype=torch.float64, device=features.device)
        plain = cls(share, 1.0, scale, centre, owner, trees.to(features.device), numbers, seen)
        found = plain.contributions(features[normals], numbers[~is_anomaly])
        spread = float(found.sum(1).std())
        return replace(
            plain,
            spread=spread if spread > _LEAST_SPREAD else 1.0,
            centre=torch.from_numpy(found.mean(0)).to(features.device),
        )

    def contributions(self, features: Float[Tensor, "n f"], numbers: Ints | None = None) -> Floats:
        """Return what each column adds to z, shape (n, d); z is their sum.

        With `numbers`, rows of the fit by their numbers, by the trees that have not seen them.
        """
        weights = None
        if numbers is not None and len(self.numbers):
            weights = torch.from_numpy(self._weights(numbers)).to(features.device)
        by, gain = self._steps
        size = max(16, _AT_A_TIME // len(by))
        total = torch.zeros(len(self.centre), len(features), device=features.device)
        for start in range(0, len(features), size):
            here = slice(start, start + size)
            reach = self.trees.reach(_scaled(features[here], self.scale))
            if weights is not None:
                reach *= weights[:, here][self.trees.tree]
            # Not a product of matrices, whose last bits depend on where a row stands in them.
            total[:, here].index_add_(0, by, reach.mul_(gain))
        contributions: Floats = ((total.T.double() - self.centre) / self.spread).cpu().numpy()
        return contributions

    @cached_property
    def _steps(self) -> tuple[Int[Tensor, " m"], Float[Tensor, "m 1"]]:
        """What a row gains on its way into each node, and in which column: its parent's."""
        trees = self.trees
        gain = (trees.value - trees.value[trees.parent]) / trees.is_root.sum()
        return self.owner[trees.feature[trees.parent]], gain.float().unsqueeze(-1)

    def _weights(self, numbers: Ints) -> npt.NDArray[np.float32]:
        """Weigh trees for rows, shape (trees, n): those that have seen a row do not count."""
        place = {number: i for i, number in enumerate(self.numbers.tolist())}
        seen = np.zeros((self.seen.shape[1], len(numbers)), dtype=np.bool_)
        for i, number in enumerate(numbers.tolist()):
            if number in place:
                seen[:, i] = self.seen[place[number]]
        share = (~seen).mean(0).clip(1 / len(seen))
        return np.asarray(~seen / share, dtype=np.float32)

    def without_numbers(self) -> "Forest":
        """Return the same, no row known by its number: they are not those of the user's table."""
        return replace(self, numbers=self.numbers[:0], seen=self.seen[:0])

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


def _drawn(is_anomaly: Bools, rng: np.random.Generator) -> Ints:
    """Draw the rows of a tree: a few normals, and as many anomalies as there are, with repeats."""
    normals, anomalies = np.flatnonzero(~is_anomaly), np.flatnonzero(is_anomaly)
    few = rng.permutation(normals)[: max(1, min(_N_DRAWN, len(normals) // 2))]
    return np.concatenate([few, rng.choice(anomalies, min(len(anomalies), _N_DRAWN))])


def _tree(x: npt.NDArray[np.float32], y: Bools, seed: int) -> ExtraTreeClassifier:
    tree = ExtraTreeClassifier(
        min_samples_leaf=2, max_features="sqrt", class_weight="balanced", random_state=seed
    )
    return tree.fit(x, y)
