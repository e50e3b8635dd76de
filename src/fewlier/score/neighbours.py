"""`Neighbours`: how far a row is from normal rows, against how far from labelled anomalies.

A companion of the density: few labels say more about a row by what lies next to it than they can
teach a network (docs/METHOD.md has the figures).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Bool, Float
from sklearn.metrics import roc_auc_score
from torch import Tensor

from fewlier.density.joint import Rows
from fewlier.errors import FormatError
from fewlier.score.limits import MAX_NEIGHBOURS
from fewlier.score.nearest import (
    LEAST,
    Ints,
    Landmarks,
    column_weights,
    typical_parts,
)
from fewlier.score.space import Numbers, Space, input_owner
from fewlier.table import Encoded, Encoder

N_NORMALS, N_ANOMALIES = 5, 2
"""Nearest rows of each label whose mean squared distance counts."""
MAX_BYTES = 8 * 2**20
"""What the rows of each label take at most, where they are wide."""
_LEAST_SPREAD = 1e-6
# How well the distance from normals tells anomalies, where none is labelled.
_UNTOLD = 0.5
_CHUNK = 1024  # rows measured at a time
_OF_SPACE = ("mean", "scale", "weight")  # in a model file

Floats = npt.NDArray[np.float64]


def n_rows_at_most(n_inputs: int) -> int:
    """Return how many rows of each label are kept at most."""
    return max(N_NORMALS, min(MAX_NEIGHBOURS, MAX_BYTES // (4 * n_inputs)))


@final
@dataclass(frozen=True, eq=False)
class Neighbours:
    r"""The score z(x) = (lean / 2 log(D(x) / D_0) - 1/2 log(A(x) / A_0)) / spread.

    D is the mean squared distance to the nearest normals, A that to the nearest labelled
    anomalies, each coordinate in standard deviations of normal rows, and each column weighing as
    much more as labelled anomalies differ in it from the normals next to them. D_0 and A_0 are
    typical of normal rows, so that z is 0 on average there, and its standard deviation is 1.
    Without labelled anomalies the second term is absent, and columns weigh alike.

    Anomalies of a new kind lie far from normals and from labelled anomalies alike. So z leans
    towards the distance from normals, as far as this alone tells the labelled anomalies: z is the
    sum of two scores, that of both distances, and `alone` times that of the first, each in its
    standard deviation.

    Parameters
    ----------
    share : float
        Its part in the score of a model.
    alone : float
        max(0, 2 AUC - 1) of the labelled anomalies by the distance from normals, columns weighing
        alike; 1/2 without any.
    lean : float
        What the distance from normals counts; that from labelled anomalies counts 1.
    spread : float
        Standard deviation of the numerator on normal rows, none near itself or its copies.
    space : Space
        Where rows lie.
    missable : tensor (d,)
        The columns that miss cells on normal rows.
    normals, anomalies : Landmarks, Landmarks or None
        The rows to compare with.
    """

    share: float
    alone: float
    lean: float
    spread: float
    space: Space
    missable: Bool[Tensor, " d"]
    normals: Landmarks
    anomalies: Landmarks | None

    @classmethod
    def of(
        cls,
        encoder: Encoder,
        encoded: Encoded,
        numbers: tuple[Ints, Ints],
        device: torch.device | str = "cpu",
    ) -> "Neighbours":
        """Compare with those of the encoded rows whose numbers are given: normals, anomalies.

        What its share in a score is, `selection.py` decides by what is found.
        """
        taken = [encoded.take(some) for some in numbers]
        rows, ids = [Rows.of(one, device) for one in taken], [one.ids() for one in taken]
        space = Space.of(encoder, rows[0])
        plain = cls._in(space, encoder, rows, ids)
        if plain.anomalies is None:
            return plain
        normal = plain._all_parts(rows[0], plain.normals, ids[0])
        odd = plain._all_parts(rows[1], plain.normals, None)
        weighed = replace(space, weight=column_weights(odd, plain.normals.typical))
        return cls._in(weighed, encoder, rows, ids, plain._alone(normal, odd))

    @classmethod
    def _in(
        cls,
        space: Space,
        encoder: Encoder,
        rows: Sequence[Rows],
        ids: Sequence[Ints],
        alone: float = _UNTOLD,
    ) -> "Neighbours":
        """Compare with rows in a space: normals, anomalies."""
        least = torch.full_like(space.weight, LEAST / len(space.weight), dtype=torch.float64)
        normals, anomalies = (
            Landmarks(space.place(some), least, least, n_nearest, own)
            for some, n_nearest, own in zip(rows, (N_NORMALS, N_ANOMALIES), ids, strict=True)
        )
        missable = _missable(encoder, space.weight.device)
        beside = anomalies if len(ids[1]) else None
        return cls(1.0, alone, 1.0, 1.0, space, missable, normals, beside)._measured(rows[0])

    @property
    def meaning(self) -> str:
        """What the contribution of a column means, in a sentence."""
        near = ", and nearer to the labelled anomalies," if self.anomalies else ""
        return (
            f"To this adds, as {self.share:.0%} of the score, how much further from the nearest "
            f"normal rows{near} the value is than those of normal rows."
        )

    @property
    def n_rows(self) -> int:
        """How many rows a row is compared with."""
        return sum(len(side.rows) for side, _ in self._sides())

    @property
    def record(self) -> dict[str, float | int]:
        """What the manifest of a model file says of it."""
        sizes = {f"n_{name}": len(side.rows) for name, side in self._named().items()}
        names = ("share", "alone", "lean", "spread")
        return {name: getattr(self, name) for name in names} | {"n_anomalies": 0} | sizes

    @property
    def tensors(self) -> dict[str, Tensor]:
        """Its part of the weights in a model file, by name."""
        tensors = {f"neighbours.{name}": getattr(self.space, name) for name in _OF_SPACE}
        for name, side in self._named().items():
            tensors[f"neighbours.{name}.rows"] = side.rows
            tensors[f"neighbours.{name}.typical"] = side.typical
            tensors[f"neighbours.{name}.outside"] = side.outside
        return tensors

    @classmethod
    def read(
        cls, record: dict[str, Any] | None, tensors: dict[str, Tensor], encoder: Encoder
    ) -> "Neighbours | None":
        """Inverse of `record` and `tensors`; raises `FormatError` for what cannot be."""
        if record is None:
            return None
        mean, scale, weight = (tensors[f"neighbours.{name}"] for name in _OF_SPACE)
        owner, numbers = input_owner(encoder, mean.device), Numbers.of(encoder, mean.device)
        space = Space(mean, scale, weight, owner, numbers)
        sides = {
            name: Landmarks(
                tensors[f"neighbours.{name}.rows"],
                tensors[f"neighbours.{name}.typical"],
                tensors[f"neighbours.{name}.outside"],
                n_nearest,
            )
            for name, n_nearest in (("normals", N_NORMALS), ("anomalies", N_ANOMALIES))
            if record[f"n_{name}"]
        }
        is_inside = all(bool((side.rows.abs() <= space.limit).all()) for side in sides.values())
        is_weight = bool((weight <= len(weight)).all())  # 1 on average
        positive = [scale, weight, *(x for s in sides.values() for x in (s.typical, s.outside))]
        if not (is_inside and is_weight and all(bool((part > 0).all()) for part in positive)):
            raise FormatError("its neighbours lie out of range.")
        return cls(
            record["share"],
            record["alone"],
            record["lean"],
            record["spread"],
            space,
            _missable(encoder, mean.device),
            sides["normals"],
            sides.get("anomalies"),
        )

    def score(self, rows: Rows, ids: Ints | None = None) -> Floats:
        """Return z of n rows, shape (n,), higher is more anomalous.

        With their `ids`, neither a row nor its copies are its neighbours.
        """
        z = torch.zeros(len(rows.inputs), dtype=torch.float64, device=rows.inputs.device)
        for side, weight in self._sides():
            z += weight * side.log_ratio(self._parts(rows, side, ids))
        scores: Floats = (z / self.spread).cpu().numpy()
        return scores

    def contributions(self, rows: Rows) -> Floats:
        """Return what each column adds to z, shape (n, d)."""
        total = torch.zeros(rows.observed.shape, dtype=torch.float64, device=rows.inputs.device)
        for side, weight in self._sides():
            total += weight * side.shares(self._parts(rows, side, None))
        contributions: Floats = (total / self.spread).cpu().numpy()
        return contributions

    def _named(self) -> dict[str, Landmarks]:
        sides = {"normals": self.normals, "anomalies": self.anomalies}
        return {name: side for name, side in sides.items() if side is not None}

    def _sides(self) -> list[tuple[Landmarks, float]]:
        """Return the landmarks, with what distance from them counts."""
        return list(zip(self._named().values(), (self.lean, -1.0), strict=False))

    def _parts(self, rows: Rows, side: Landmarks, ids: Ints | None) -> Float[Tensor, "n d"]:
        """Return the columns' parts in the distance; missing cells cost what is typical.

        Missing where no normal row misses one, a cell is outside the domain. A number outside it
        is at least as far from normals as others outside are, and further where it lies further;
        of anomalies it says nothing. To find neighbours, other cells without a value lie at the
        mean.
        """
        has_value = rows.has_value
        is_beyond = rows.impossible & self.space.is_number
        points = self.space.place(rows) * (has_value | is_beyond)[:, self.space.owner]
        found = side.parts(points, self.space.owner, ids)
        is_usual = ~rows.observed & self.missable
        without = torch.where(is_usual, side.typical, side.outside)
        if side is self.normals:
            unweighed = found / self.space.weight.clamp_max(1)
            without = torch.where(is_beyond, without.maximum(unweighed), without)
        return torch.where(has_value, found, without)

    def _measured(self, normals: Rows) -> "Neighbours":
        """Measure what is typical of normals, and how they spread."""
        has_value = normals.has_value
        # Standardised, an input of two rows differs by a variance of 2. What a column cannot hold
        # is odd, however little labels say of the column.
        usual = 2 * self.space.n_axes * self.space.weight.clamp_min(1)
        sides, logs = [], []
        for side, weight in self._sides():
            found = self._all_parts(normals, side, self.normals.ids)
            typical = typical_parts(found, has_value)
            parts = torch.where(has_value, found, typical)
            outside = torch.maximum(parts.amax(0), usual) if weight > 0 else typical
            sides.append(replace(side, typical=typical, outside=outside))
            logs.append(sides[-1].log_ratio(parts))
        measured = replace(self, normals=sides[0])
        if self.anomalies is None:
            return replace(measured, spread=_spread(logs[0]))
        far, near = logs
        lean = 1 + self.alone * _spread(far - near) / _spread(far)
        spread = _spread(lean * far - near)
        return replace(measured, lean=lean, spread=spread, anomalies=sides[1])

    def _alone(self, normals: Float[Tensor, "n d"], anomalies: Float[Tensor, "m d"]) -> float:
        """Return how well distances from normals tell anomalies, from parts of both."""
        distances = self.normals.log_ratio(torch.cat([normals, anomalies])).cpu()
        is_odd = np.repeat([False, True], [len(normals), len(anomalies)])
        return max(0.0, 2 * float(roc_auc_score(is_odd, distances)) - 1)

    def _all_parts(self, rows: Rows, side: Landmarks, ids: Ints | None) -> Float[Tensor, "n d"]:
        """Return the columns' parts in the distances of many rows, some at a time."""
        chunks = [slice(start, start + _CHUNK) for start in range(0, len(rows.inputs), _CHUNK)]
        own = [None if ids is None else ids[chunk] for chunk in chunks]
        pairs = zip(chunks, own, strict=True)
        return torch.cat([self._parts(rows.take(chunk), side, rest) for chunk, rest in pairs])


def _spread(logs: Float[Tensor, " n"]) -> float:
    """Return the standard deviation of logarithms; 1, their own unit, where all are alike."""
    spread = float(logs.std(correction=0))
    return spread if spread > _LEAST_SPREAD else 1.0


def _missable(encoder: Encoder, device: torch.device | str) -> Bool[Tensor, " d"]:
    """Return which columns miss cells on normal rows."""
    return torch.from_numpy(encoder.missable).to(device)
