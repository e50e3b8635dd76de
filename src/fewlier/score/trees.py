"""`Trees`: how much a row looks like the labelled anomalies, by trees grown on the labels."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, final

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float, Int
from sklearn.tree import ExtraTreeClassifier
from torch import Tensor

from fewlier.arrays import Bools, Floats, Ints
from fewlier.density.rows import Rows
from fewlier.score.nodes import Nodes
from fewlier.score.part import HeldOut, Part
from fewlier.score.space import NumericColumns
from fewlier.state import State, require
from fewlier.table import Encoder

N_TREES = 100
# Rows of each label that a tree sees at most, and of the normals at most half.
_N_DRAWN = 128
_LARGEST_FEATURE = 1e9
# Arrivals of rows at nodes to hold at a time.
_AT_A_TIME = 2**20
# A feature that spreads less is constant. Contributions of the density have rounding errors.
_LEAST_SPREAD, _LEAST_SPREAD_OF_DENSITY = 1e-6, 1e-4


class Bags(NamedTuple):
    """Which trees have seen which rows of the fit, or copies of them.

    `ids` are the distinct rows in order, and `seen` (r, t) says which of t trees have seen them.
    """

    ids: Ints
    seen: Bools

    @classmethod
    def from_draws(cls, ids: Ints, draws: list[Ints]) -> "Bags":
        """Write down the rows that each tree has drawn, given the ids of all rows."""
        distinct, place = np.unique(ids, return_inverse=True)
        seen = np.zeros((len(distinct), len(draws)), dtype=np.bool_)
        for tree, rows in enumerate(draws):
            seen[place[rows], tree] = True
        return cls(distinct, seen)

    def weights(self, ids: Ints) -> npt.NDArray[np.float32]:
        """Weigh the trees for n rows, shape (n, t), 1 on average: 0 where a tree has seen a row."""
        n_trees = self.seen.shape[1]
        seen = np.zeros((len(ids), n_trees), dtype=np.bool_)
        place = np.searchsorted(self.ids, ids).clip(max=len(self.ids) - 1)
        is_known = self.ids[place] == ids
        seen[is_known] = self.seen[place[is_known]]
        share = (~seen).mean(1, keepdims=True).clip(1 / n_trees)
        return np.asarray(~seen / share, dtype=np.float32)


@final
@dataclass(frozen=True, eq=False)
class Features:
    """What trees read of a row: each number, and what the density contributes to each column.

    Parameters
    ----------
    numbers : NumericColumns
        How rows become numbers.
    owner : tensor (f,)
        The column each feature belongs to.
    """

    numbers: NumericColumns
    owner: Int[Tensor, " f"]

    @classmethod
    def from_encoder(cls, encoder: Encoder, device: torch.device) -> "Features":
        """Read rows of an encoder."""
        owner = np.append(encoder.input_owner, np.arange(encoder.n_columns))
        numbers = NumericColumns.from_encoder(encoder, device)
        return cls(numbers, torch.from_numpy(owner).to(device))

    @property
    def n_columns(self) -> int:
        """How many columns there are; the last features belong to one each."""
        return int(self.owner[-1]) + 1

    def read(self, rows: Rows, density: Floats) -> Float[Tensor, "n f"]:
        """Return the features of n rows, given the density's contributions (n, d + 1)."""
        cells = torch.from_numpy(density[:, : self.n_columns]).to(rows.inputs)
        return torch.cat([self.numbers.points(rows), cells], 1)


@final
@dataclass(frozen=True, eq=False)
class Trees(Part):
    r"""The part z(x) = (mean over trees of the share of anomalies where x ends - mean) / spread.

    On its way down a tree, a row moves from a node to its child. The change in value is a
    contribution of the column that the node splits by, centred on normal rows.

    Parameters
    ----------
    features : Features
        What the trees read.
    nodes : Nodes
        The trees.
    scale : tensor (f,)
        Standard deviations of the features; thresholds are in these.
    centre : tensor (d,)
        What each column contributes to the mean value of normal rows on average.
    spread : float
        Standard deviation of the mean value on normal rows, by trees that have not seen them.
    bags : Bags or None
        Which trees have seen which rows; None in a model that was loaded.
    """

    features: Features
    nodes: Nodes
    scale: Float[Tensor, " f"]
    centre: Float[Tensor, " d"]
    spread: float
    bags: Bags | None = None

    name: ClassVar[str] = "trees"

    @classmethod
    def grow(
        cls,
        features: Features,
        rows: Rows,
        density: Floats,
        ids: Ints,
        is_anomaly: Bools,
        seed: int,
    ) -> "Trees":
        """Grow trees on rows of the fit.

        Parameters
        ----------
        features : Features
            What to read of the rows.
        rows, density : Rows, array (r, d + 1)
            The rows, and the contributions of a density that has not trained on them.
        ids, is_anomaly : array (r,), array of bool (r,)
            Their ids, and which are labelled anomalies.
        seed : int
            What is drawn depends on it alone.
        """
        found = features.read(rows.inside, density)
        normals = torch.from_numpy(~is_anomaly).to(found.device)
        scale = _deviations(found[normals], features.n_columns)
        x = _scaled(found, scale)
        rng = np.random.default_rng(seed)
        drawn = [_draw(ids, is_anomaly, rng) for _ in range(N_TREES)]
        seeds = rng.integers(2**31 - 1, size=N_TREES).tolist()
        read = x.cpu().numpy()
        grown = [_tree(read[r], is_anomaly[r], s) for r, s in zip(drawn, seeds, strict=True)]
        nodes, bags = Nodes.from_sklearn(grown, found.device), Bags.from_draws(ids, drawn)
        gained = _gain(nodes, features, x[normals], bags.weights(ids[~is_anomaly]))
        spread = float(gained.sum(1).cpu().numpy().std())
        spread = spread if spread > _LEAST_SPREAD else 1.0
        centre = torch.from_numpy(gained.cpu().numpy().mean(0)).to(found.device)
        return cls(features, nodes, scale, centre, spread, bags)

    @property
    def meaning(self) -> str:
        """What its contributions mean."""
        return (
            "how much more the trees that split by the column take the row for a labelled anomaly "
            "than they take normal rows"
        )

    def contributions(
        self, rows: Rows, before: Mapping[str, Floats], held_out: HeldOut | None = None
    ) -> Floats:
        """Return what each column adds to z, and a remainder of zeros, shape (n, d + 1)."""
        x = _scaled(self.features.read(rows, before["density"]), self.scale)
        weights = np.ones((len(x), len(self.nodes.roots)), dtype=np.float32)
        if held_out is not None and self.bags is not None:
            weights = self.bags.weights(held_out.ids)
        gained = _gain(self.nodes, self.features, x, weights)
        columns: Floats = ((gained - self.centre) / self.spread).cpu().numpy()
        return np.pad(columns, ((0, 0), (0, 1)))

    def state(self) -> State:
        """Return what a model file holds of it."""
        arrays = {"scale": self.scale.cpu().numpy(), "centre": self.centre.cpu().numpy()}
        return State({"spread": self.spread, "nodes": self.nodes.state()}, arrays)

    @classmethod
    def from_state(cls, state: State, encoder: Encoder, device: torch.device) -> "Trees":
        """Inverse of `state`, checked."""
        features = Features.from_encoder(encoder, device)
        nodes = Nodes.from_state(state.part("nodes"), len(features.owner), device)
        scale = state.array("scale", np.float32, (len(features.owner),))
        require(bool((scale > 0).all()), "a scale of its trees is not positive.")
        centre = state.array("centre", np.float64, (encoder.n_columns,))
        return cls(
            features,
            nodes,
            torch.from_numpy(scale).to(device),
            torch.from_numpy(centre).to(device),
            state.positive("spread"),
        )


def _deviations(features: Float[Tensor, "n f"], n_columns: int) -> Float[Tensor, " f"]:
    """Return the standard deviations of features; 1 where one is constant."""
    scale = features.double().std(0, correction=0).float()
    least = torch.full_like(scale, _LEAST_SPREAD)
    least[-n_columns:] = _LEAST_SPREAD_OF_DENSITY
    return torch.where(scale > least, scale, 1)


def _scaled(features: Float[Tensor, "n f"], scale: Float[Tensor, " f"]) -> Float[Tensor, "n f"]:
    return (features.float() / scale).clamp(-_LARGEST_FEATURE, _LARGEST_FEATURE)


def _draw(ids: Ints, is_anomaly: Bools, rng: np.random.Generator) -> Ints:
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
    tree = ExtraTreeClassifier(min_samples_leaf=2, max_features="sqrt", random_state=seed)
    # As class_weight="balanced" weighs them; its own check of the input takes longer than the tree.
    weight = len(y) / (2 * np.where(y, y.sum(), (~y).sum()))
    return tree.fit(x, y, sample_weight=weight, check_input=False)


def _gain(
    nodes: Nodes, features: Features, x: Float[Tensor, "n f"], weights: npt.NDArray[np.float32]
) -> Float[Tensor, "n d"]:
    """Add up what rows gain on their ways through the trees, for each column."""
    n, d = len(x), features.n_columns
    total = torch.zeros(n * d, device=x.device, dtype=torch.float64)
    amounts = torch.from_numpy(weights).to(x.device)
    gain, column = nodes.gain, features.owner[nodes.reached_by].int()
    # A damaged file may have thresholds so close to each other that a row reaches every leaf.
    size = max(16, _AT_A_TIME // max(len(nodes.roots), len(gain) // 16))
    for start in range(0, n, size):
        here = slice(start, start + size)
        for rows, arrived, parts in nodes.arrivals(x[here], amounts[here]):
            place = (rows + start) * d + column.index_select(0, arrived)
            total.index_add_(0, place, parts * gain.index_select(0, arrived))
    return total.view(n, d)
