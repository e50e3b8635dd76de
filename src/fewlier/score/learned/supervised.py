"""`Supervised`: how much a row looks like the labelled anomalies, by what is learned from them."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, final

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float, Int
from torch import Tensor

from fewlier.density.rows import Rows
from fewlier.modelfile.state import State
from fewlier.score.learned.bagged import Bagged
from fewlier.score.neighbours.part import Neighbours
from fewlier.score.neighbours.space import NumericColumns
from fewlier.score.part import HeldOut, Part
from fewlier.table import Encoder
from fewlier.table.arrays import Bools, Floats, Ints

LARGEST_FEATURE = 1e9
_LEAST_SPREAD = 1e-6
LINEAR = 3.0  # standard units up to which a score counts as it is


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

    def read(self, rows: Rows, neighbours: Floats) -> Float[Tensor, "n f"]:
        """Return the features of n rows, given what their neighbours score (n,)."""
        last = torch.from_numpy(neighbours).to(rows.inputs)[:, None]
        found = torch.cat([self.numbers.points(rows), last], 1)
        return found.clamp_(-LARGEST_FEATURE, LARGEST_FEATURE)

    def split(self, gains: Float[Tensor, "n f"], neighbours: Floats) -> Floats:
        """Sum the gains of features for each column, shape (n, d), given (n, d + 1) of neighbours.

        What rows gain by the score of their neighbours goes to the columns in proportion to the
        sizes of their contributions to it.
        """
        size = np.abs(neighbours[:, :-1])
        total = size.sum(1, keepdims=True)
        share = np.where(total > 0, size / np.where(total > 0, total, 1), 1 / size.shape[1])
        columns = torch.zeros(size.shape, dtype=torch.float64, device=gains.device)
        columns.index_add_(1, self.owner, gains[:, :-1])
        found: Floats = columns.cpu().numpy() + share * gains[:, -1:].cpu().numpy()
        return found


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
class Supervised(Part):
    r"""The part z(x) = (\sum_b s_b(x) - mean) / spread, with s_b learned from bag b of the rows.

    s_b is a sum over features, and each feature belongs to a column; contributions are centred on
    normal rows. Where labels are easy to learn, normals hardly spread, and an anomaly would be
    dozens of standard units away: beyond three, z counts logarithmically, and contributions are
    multiplied by the same factor.

    Parameters
    ----------
    features : Features
        What is read of a row.
    learned : Bagged
        What was learned.
    centre : tensor (f,)
        What each feature contributes on average on normal rows, by bags that do not hold them.
    spread : float
        Standard deviation of the sum on normal rows, by bags that do not hold them.
    bags : Bags or None
        Which bags hold which rows; None in a model that was loaded.
    """

    features: Features
    learned: Bagged
    centre: Float[Tensor, " f"]
    spread: float
    bags: Bags | None = None

    kind: ClassVar[type[Bagged]]
    """What it learns."""
    n_bags: ClassVar[int]
    """How often rows are drawn; an even number."""
    n_drawn: ClassVar[int]
    """Rows of each label that a bag holds at most, and of the normals at most half."""

    @classmethod
    @abstractmethod
    def learn(cls, bags: Iterable[Bag], n_features: int, device: torch.device) -> Bagged:
        """Learn to tell the anomalies of each bag from its normals."""

    @classmethod
    def fit(
        cls,
        features: Features,
        rows: Rows,
        neighbours: Floats,
        labels: tuple[Ints, Bools],
        seed: int,
    ) -> "Supervised":
        """Learn from rows of the fit.

        Parameters
        ----------
        features : Features
            What to read of the rows.
        rows, neighbours : Rows, array (r,)
            The rows, and what neighbours score that are not themselves.
        labels : array (r,), array of bool (r,)
            Their ids, and which are labelled anomalies.
        seed : int
            What is drawn depends on it alone.
        """
        ids, is_anomaly = labels
        x = features.read(rows.inside, neighbours)
        rng = np.random.default_rng(seed)
        draws = list(_draw(ids, is_anomaly, cls.n_bags, cls.n_drawn, rng))
        seeds, known = rng.integers(2**31 - 1, size=len(draws)).tolist(), x.cpu().numpy()
        drawn = zip(draws, seeds, strict=True)
        learned = cls.learn(
            (Bag.of(known[some], is_anomaly[some], own) for some, own in drawn),
            len(features),
            x.device,
        )
        bags = Bags.from_draws(ids, draws)
        normals = x[torch.from_numpy(~is_anomaly).to(x.device)]
        weights = torch.from_numpy(bags.weights(ids[~is_anomaly])).to(x.device)
        gains = learned.gains(normals, weights)
        spread = float(gains.sum(1).std(correction=0))
        spread = spread if spread > _LEAST_SPREAD else 1.0
        return cls(features, learned, gains.mean(0), spread, bags)

    def score(
        self, rows: Rows, before: Mapping[str, Floats], held_out: HeldOut | None = None
    ) -> Floats:
        """Return z, shape (n,)."""
        x = self.features.read(rows, before[Neighbours.name])
        found = self.learned.scores(x, self._weights(held_out)) - self.centre.sum()
        z: Floats = (found / self.spread).cpu().numpy()
        return z * _compression(z)

    def contributions(
        self, rows: Rows, before: Mapping[str, Floats], held_out: HeldOut | None = None
    ) -> Floats:
        """Return what each column adds to z, and a remainder of zeros, shape (n, d + 1)."""
        neighbours = before[Neighbours.name]
        x = self.features.read(rows, neighbours.sum(1))
        gains = self.learned.gains(x, self._weights(held_out)) - self.centre
        columns = self.features.split(gains / self.spread, neighbours)
        columns *= _compression(columns.sum(1))[:, None]
        return np.pad(columns, ((0, 0), (0, 1)))

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


def _compression(z: Floats) -> Floats:
    """Return what scores are multiplied by, so that they grow logarithmically beyond three."""
    size = np.abs(z).clip(LINEAR)
    factor: Floats = (LINEAR + np.log1p(size - LINEAR)) / size
    return factor


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
