"""`Supervised`: how much a row looks like the labelled anomalies, by what is learned from them."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypeAlias, final

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float, Int
from torch import Tensor

from fewlier.density.rows import Rows
from fewlier.modelfile.state import State
from fewlier.score.learned.nodes import Nodes
from fewlier.score.learned.steps import Steps
from fewlier.score.neighbours.part import Neighbours
from fewlier.score.neighbours.space import NumericColumns
from fewlier.score.part import AddedPart, HeldOut, Known, exact
from fewlier.table import Encoder
from fewlier.table.arrays import Bools, Floats, Ints

MAX_FEATURE = 1e9
"""Numbers beyond are read as this."""
_MIN_SPREAD = 1e-6
_LINEAR = 3  # standard units up to which a score counts as it is


Learned: TypeAlias = Nodes | Steps
"""Functions of features, one for each bag of rows, that add up to a score."""


class Bag(NamedTuple):
    """Rows to learn from.

    `x` (r, f) are their features, `y` (r,) says which are anomalies, `weight` (r,) weighs anomalies
    and normals the same in all, and what is drawn for it depends on `seed`.
    """

    x: npt.NDArray[np.float32]
    y: Bools
    weight: Floats
    seed: int

    @classmethod
    def of(cls, x: npt.NDArray[np.float32], y: Bools, seed: int) -> "Bag":
        """Weigh rows by their labels."""
        return cls(x, y, len(y) / (2 * np.where(y, y.sum(), (~y).sum())), seed)


@final
@dataclass(frozen=True, eq=False)
class Features:
    """What is read of a row: each number, and last the score of the neighbours.

    Parameters
    ----------
    numbers : NumericColumns
        How rows become numbers.
    owner : tensor (i,)
        The column each number belongs to.
    """

    numbers: NumericColumns
    owner: Int[Tensor, " i"]

    @classmethod
    def from_encoder(cls, encoder: Encoder, device: torch.device) -> "Features":
        """Read rows of an encoder."""
        numbers = NumericColumns.from_encoder(encoder, device)
        return cls(numbers, torch.from_numpy(encoder.input_owner).to(device))

    def __len__(self) -> int:
        """Count the features."""
        return len(self.owner) + 1

    def read(self, rows: Rows, neighbours: Float[Tensor, "n _"]) -> Float[Tensor, "n f"]:
        """Return the features of n rows, given the contributions of their neighbours."""
        last = neighbours.sum(1, keepdim=True).to(rows.inputs.dtype)
        found = torch.cat([self.numbers.points(rows), last], 1)
        return found.clamp(-MAX_FEATURE, MAX_FEATURE)

    def split(
        self, gains: Float[Tensor, "n f"], neighbours: Float[Tensor, "n _"]
    ) -> Float[Tensor, "n d"]:
        """Sum the gains of features for each column, given the contributions of the neighbours.

        What rows gain by the score of their neighbours goes to the columns in proportion to the
        sizes of their contributions to it.
        """
        size = neighbours[:, :-1].abs()
        total = size.sum(1, keepdim=True)
        even = exact(1 / size.shape[1]).to(size.device)
        share = torch.where(total > 0, size / total, even)
        columns = torch.zeros_like(size).index_add(1, self.owner, gains[:, :-1])
        return columns + share * gains[:, -1:]


class Bags(NamedTuple):
    """Which bags hold which rows of the fit, or copies of them.

    `ids` are the distinct rows in order, and `seen` (r, b) says which of b bags hold them.
    """

    ids: Ints
    seen: Bools

    @classmethod
    def from_draws(cls, ids: Ints, draws: Sequence[Ints]) -> "Bags":
        """Write down the rows that each bag holds, given the ids of all rows."""
        distinct, place = np.unique(ids, return_inverse=True)
        seen = np.zeros((len(distinct), len(draws)), dtype=np.bool_)
        for bag, rows in enumerate(draws):
            seen[place[rows], bag] = True
        return cls(distinct, seen)

    def weights(self, ids: Ints) -> Floats:
        """Weigh the bags for n rows, shape (n, b), 1 on average: 0 where a bag holds a row.

        Where all bags hold a row they all weigh 0: nothing that has not seen it speaks of it.
        """
        n_bags = self.seen.shape[1]
        seen = np.zeros((len(ids), n_bags), dtype=np.bool_)
        place = np.searchsorted(self.ids, ids).clip(max=len(self.ids) - 1)
        is_known = self.ids[place] == ids
        seen[is_known] = self.seen[place[is_known]]
        share = (~seen).mean(1, keepdims=True).clip(1 / n_bags)
        return np.asarray(~seen / share)


@dataclass(frozen=True, eq=False)
class Supervised(AddedPart):
    r"""The part z(x) = (\sum_b s_b(x) - mean) / spread, with s_b learned from bag b of the rows.

    s_b is a sum over features, and each feature belongs to a column; contributions are centred on
    normal rows. Where labels are easy to learn, normals hardly spread, and an anomaly would be
    dozens of standard units away: beyond three, z counts logarithmically, and contributions are
    multiplied by the same factor.

    Parameters
    ----------
    features : Features
        What is read of a row.
    learned : Nodes or Steps
        What was learned.
    centre : tensor (f,)
        What each feature contributes on average on normal rows, by bags that do not hold them.
    spread : float
        Standard deviation of the sum on normal rows, by bags that do not hold them.
    bags : Bags or None
        Which bags hold which rows; None in a model that was loaded.
    """

    features: Features
    learned: Learned
    centre: Float[Tensor, " f"]
    spread: float
    bags: Bags | None = None

    reads: ClassVar[tuple[str, ...]] = (Neighbours.name,)
    kind: ClassVar[type[Learned]]
    """What it learns."""
    n_bags: ClassVar[int]
    """How often rows are drawn; an even number."""
    n_drawn: ClassVar[int]
    """Rows of each label that a bag holds at most, and of the normals at most half."""

    @classmethod
    @abstractmethod
    def learn(cls, bags: Iterable[Bag], n_features: int, device: torch.device) -> Learned:
        """Learn to tell the anomalies of each bag from its normals."""

    @classmethod
    def fit(cls, known: Known, before: Mapping[str, Tensor]) -> "Supervised":
        """Learn from rows of the fit, given what neighbours that are not themselves contribute."""
        features = Features.from_encoder(known.encoder, known.rows.inputs.device)
        ids, is_anomaly, seed = known.ids, known.is_anomaly, known.seed
        x = features.read(known.rows.inside, before[Neighbours.name])
        rng = np.random.default_rng(seed)
        draws = list(_draw(ids, is_anomaly, cls.n_bags, cls.n_drawn, rng))
        seeds, numbers = rng.integers(2**31 - 1, size=len(draws)).tolist(), x.cpu().numpy()
        drawn = zip(draws, seeds, strict=True)
        learned = cls.learn(
            (Bag.of(numbers[some], is_anomaly[some], own) for some, own in drawn),
            len(features),
            x.device,
        )
        bags = Bags.from_draws(ids, draws)
        normals = x[torch.from_numpy(~is_anomaly).to(x.device)]
        weights = torch.from_numpy(bags.weights(ids[~is_anomaly])).to(x.device)
        gains = learned.gains(normals, weights)
        spread = float(gains.sum(1).std(correction=0))
        spread = spread if spread > _MIN_SPREAD else 1.0
        return cls(features, learned, gains.mean(0), spread, bags)

    def contributions(
        self, rows: Rows, before: Mapping[str, Tensor], held_out: HeldOut | None = None
    ) -> Float[Tensor, "n _"]:
        """Return what each column adds to z, and a remainder of zeros, shape (n, d + 1)."""
        neighbours = before[Neighbours.name]
        x = self.features.read(rows, neighbours)
        gains = self.learned.gains(x, self._weights(held_out)) - self.centre
        columns = self.features.split(gains / exact(self.spread), neighbours)
        z = columns.sum(1, keepdim=True)
        size = z.abs().clamp_min(_LINEAR)
        columns = columns * ((_LINEAR + (size - _LINEAR).log1p()) / size)
        return torch.cat([columns, torch.zeros_like(z)], 1)

    def _weights(self, held_out: HeldOut | None) -> Float[Tensor, "n b"] | None:
        """Weigh the bags that do not hold rows of the fit; None where all count alike."""
        if held_out is None or self.bags is None:
            return None
        return torch.from_numpy(self.bags.weights(held_out.ids)).to(self.centre.device)

    def state(self) -> State:
        """Return what a model file holds of it."""
        record = {"spread": self.spread, "learned": self.learned.state()}
        return State(record, {"centre": self.centre.cpu().numpy()})

    @classmethod
    def from_state(cls, state: State, encoder: Encoder, device: torch.device) -> "Supervised":
        """Inverse of `state`, checked."""
        features = Features.from_encoder(encoder, device)
        learned = cls.kind.from_state(state.part("learned"), len(features), device)
        centre = torch.from_numpy(state.array("centre", np.float64, (len(features),)))
        return cls(features, learned, centre.to(device), state.positive("spread"))


def _draw(
    ids: Ints, is_anomaly: Bools, n_bags: int, n_drawn: int, rng: np.random.Generator
) -> Iterator[Ints]:
    """Draw the rows of each bag: a few normals, and as many anomalies as there are, with repeats.

    Two bags in turn draw their normals from one half of the distinct rows each: for every row there
    are bags that do not hold it.
    """
    normals, anomalies = np.flatnonzero(~is_anomaly), np.flatnonzero(is_anomaly)
    for _ in range(n_bags // 2):
        shuffled = rng.permutation(normals)
        _, first, place = np.unique(ids[shuffled], return_index=True, return_inverse=True)
        is_first_half = first[place] < np.median(first) if len(first) > 1 else first[place] >= 0
        for half in (is_first_half, ~is_first_half):
            few = shuffled[half][:n_drawn]
            some = few if len(few) else shuffled[:n_drawn]
            yield np.concatenate([some, rng.choice(anomalies, min(len(anomalies), n_drawn))])
