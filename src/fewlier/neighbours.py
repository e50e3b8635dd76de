"""`Neighbours`: how far a row is from normal rows, against how far from labelled anomalies.

A companion of the density: few labels say more about a row by what lies next to it than they can
teach a network (docs/METHOD.md has the figures).
"""

from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Bool, Float, Int
from sklearn.metrics import roc_auc_score
from torch import Tensor

from fewlier.conditionals.joint import Rows
from fewlier.errors import FormatError
from fewlier.landmarks import LEAST, NO_NUMBERS, Ints, Landmarks
from fewlier.manifest import MAX_NEIGHBOURS
from fewlier.points import Number, find_numbers, points_of
from fewlier.table import Encoded, Encoder

N_NORMALS, N_ANOMALIES = 5, 2
"""Nearest rows of each label whose mean squared distance counts."""
MAX_BYTES = 8 * 2**20
"""What the rows of each label take at most, where they are wide."""
LIMIT = 8.0
"""Standard deviations from the mean beyond which an input lies no further away."""
# An input that varies less is constant, and its differences count as they are.
_CONSTANT = 1e-9
_LEAST_SPREAD = 1e-6
# Normals measured at a time, and rounds until what is typical of gaps and of rows agree.
_CHUNK, _ITERATIONS = 1024, 50

Floats = npt.NDArray[np.float64]


def n_rows_at_most(n_inputs: int) -> int:
    """Return how many rows of each label are kept at most."""
    return max(N_NORMALS, min(MAX_NEIGHBOURS, MAX_BYTES // (4 * n_inputs)))


@final
@dataclass(frozen=True, eq=False)
class Neighbours:
    r"""The score z(x) = (lean / 2 log(D(x) / D_0) - 1/2 log(A(x) / A_0)) / spread.

    D is the mean squared distance to the nearest normals, A that to the nearest labelled
    anomalies, each coordinate in standard deviations of normal rows. D_0 and A_0 are typical of
    normal rows, so that z is 0 on average there, and its standard deviation is 1. Without labelled
    anomalies the second term is absent.

    Anomalies of a new kind lie far from normals and from labelled anomalies alike. So z leans
    towards the distance from normals, as far as this alone tells the labelled anomalies: z is the
    sum of two scores, that of both distances, and `alone` times that of the first, each in its
    standard deviation.

    Parameters
    ----------
    share : float
        Its part in the score of a model.
    alone : float
        max(0, 2 AUC - 1) of the labelled anomalies by the distance from normals; 1 without any.
    lean : float
        What the distance from normals counts; that from labelled anomalies counts 1.
    spread : float
        Standard deviation of the numerator on normal rows, none its own neighbour.
    mean, scale : tensor (i,)
        Of the inputs on normal rows.
    owner : tensor (i,)
        The column each input belongs to.
    missable : tensor (d,)
        The columns that miss cells on normal rows.
    counted : tuple of Number
        The columns whose numbers networks do not read as they are.
    normals, anomalies : Landmarks, Landmarks or None
        The rows to compare with.
    """

    share: float
    alone: float
    lean: float
    spread: float
    mean: Float[Tensor, " i"]
    scale: Float[Tensor, " i"]
    owner: Int[Tensor, " i"]
    missable: Bool[Tensor, " d"]
    counted: tuple[Number, ...]
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
        counted = find_numbers(encoder, device)
        points = [points_of(Rows.of(encoded.take(rows), device), counted) for rows in numbers]
        normals = points[0].double().cpu().numpy()
        scale = normals.std(0)
        scale[scale <= _CONSTANT] = 1.0
        mean, scale = (
            torch.from_numpy(part).to(device, torch.float32) for part in (normals.mean(0), scale)
        )
        least = torch.full((encoder.n_columns,), LEAST / encoder.n_columns, dtype=torch.float64)
        least = least.to(device)
        sides = [
            Landmarks(_standardised(inputs, mean, scale), least, least, n_nearest, rows)
            for inputs, n_nearest, rows in zip(
                points, (N_NORMALS, N_ANOMALIES), numbers, strict=True
            )
        ]
        anomalies = sides[1] if len(numbers[1]) else None
        layout = *_layout(encoder, device), counted
        plain = cls(1.0, 1.0, 1.0, 1.0, mean, scale, *layout, sides[0], anomalies)
        return plain._measured(*(Rows.of(encoded.take(rows), device) for rows in numbers))

    def without_numbers(self) -> "Neighbours":
        """Return the same, its rows known by no number: they are not those of the user's table."""
        normals = replace(self.normals, numbers=NO_NUMBERS)
        anomalies = self.anomalies and replace(self.anomalies, numbers=NO_NUMBERS)
        return replace(self, normals=normals, anomalies=anomalies)

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
        tensors = {"neighbours.mean": self.mean, "neighbours.scale": self.scale}
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
        mean, scale = tensors["neighbours.mean"], tensors["neighbours.scale"]
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
        is_inside = all(bool((side.rows.abs() <= LIMIT).all()) for side in sides.values())
        positive = [scale, *(part for s in sides.values() for part in (s.typical, s.outside))]
        if not is_inside or not all(bool((part > 0).all()) for part in positive):
            raise FormatError("its neighbours lie out of range.")
        return cls(
            record["share"],
            record["alone"],
            record["lean"],
            record["spread"],
            mean,
            scale,
            *_layout(encoder, mean.device),
            find_numbers(encoder, mean.device),
            sides["normals"],
            sides.get("anomalies"),
        )

    def score(self, rows: Rows, numbers: Ints | None = None) -> Floats:
        """Return z of n rows, shape (n,), higher is more anomalous.

        With `numbers`, rows of the fit by their numbers (-1: none of it), none its own neighbour.
        """
        z = torch.zeros(len(rows.inputs), dtype=torch.float64, device=rows.inputs.device)
        for side, weight in self._sides():
            z += weight * side.log_ratio(self._parts(rows, side, numbers))
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

    def _parts(self, rows: Rows, side: Landmarks, numbers: Ints | None) -> Float[Tensor, "n d"]:
        """Return the columns' parts in the distance; missing cells cost what is typical.

        Missing where no normal row misses one, a cell is outside the domain. To find neighbours,
        cells without a value lie at the mean.
        """
        has_value = rows.observed & ~rows.outside
        points = points_of(rows, self.counted)
        points = _standardised(points, self.mean, self.scale) * has_value[:, self.owner]
        is_usual = ~rows.observed & self.missable
        without = torch.where(is_usual, side.typical, side.outside)
        return torch.where(has_value, side.parts(points, self.owner, numbers), without)

    def _measured(self, normals: Rows, anomalies: Rows) -> "Neighbours":
        """Measure what is typical of normals, how they spread, and what the anomalies tell."""
        has_value = normals.observed & ~normals.outside
        # Standardised, an input of two rows differs by a variance of 2.
        n_axes = self.owner.bincount(minlength=len(self.missable)).double()
        for number in self.counted:
            n_axes[number.column] -= max(0, len(number.levels) - 1)
        sides, logs = [], []
        for side, weight in self._sides():
            found = self._all_parts(normals, side, self.normals.numbers)
            typical = _typical(found, has_value)
            parts = torch.where(has_value, found, typical)
            outside = torch.maximum(parts.amax(0), 2 * n_axes) if weight > 0 else typical
            sides.append(replace(side, typical=typical, outside=outside))
            logs.append(sides[-1].log_ratio(parts))
        measured = replace(self, normals=sides[0])
        if self.anomalies is None:
            return replace(measured, spread=_spread(logs[0]))
        far, near = logs
        odd = sides[0].log_ratio(measured._all_parts(anomalies, sides[0], None))
        is_odd = np.repeat([False, True], [len(far), len(odd)])
        alone = max(0.0, 2 * float(roc_auc_score(is_odd, torch.cat([far, odd]).cpu())) - 1)
        lean = 1 + alone * _spread(far - near) / _spread(far)
        spread = _spread(lean * far - near)
        return replace(measured, alone=alone, lean=lean, spread=spread, anomalies=sides[1])

    def _all_parts(self, rows: Rows, side: Landmarks, numbers: Ints | None) -> Float[Tensor, "n d"]:
        """Return the columns' parts in the distances of many rows, some at a time."""
        chunks = [slice(start, start + _CHUNK) for start in range(0, len(rows.inputs), _CHUNK)]
        own = [None if numbers is None else numbers[chunk] for chunk in chunks]
        pairs = zip(chunks, own, strict=True)
        return torch.cat([self._parts(rows.take(chunk), side, rest) for chunk, rest in pairs])


def _spread(logs: Float[Tensor, " n"]) -> float:
    """Return the standard deviation of logarithms; 1, their own unit, where all are alike."""
    spread = float(logs.std(correction=0))
    return spread if spread > _LEAST_SPREAD else 1.0


def _layout(
    encoder: Encoder, device: torch.device | str
) -> tuple[Int[Tensor, " i"], Bool[Tensor, " d"]]:
    """Return the column of each input, and which columns miss cells on normal rows."""
    found = torch.from_numpy(encoder.input_owner), torch.from_numpy(encoder.missable)
    return found[0].to(device), found[1].to(device)


def _standardised(
    inputs: Float[Tensor, "n i"], mean: Float[Tensor, " i"], scale: Float[Tensor, " i"]
) -> Float[Tensor, "n i"]:
    return ((inputs - mean) / scale).clamp(-LIMIT, LIMIT)


def _typical(parts: Float[Tensor, "n d"], has_value: Bool[Tensor, "n d"]) -> Float[Tensor, " d"]:
    """Return the columns' mean parts, rescaled: the log of their sum is the mean log distance.

    The distance of a row with missing cells has typical parts itself, hence the iteration.
    """
    least = LEAST / parts.shape[-1]
    n_cells = has_value.sum(0).clamp_min(1)
    mean = (torch.where(has_value, parts, 0).sum(0) / n_cells).clamp_min(least)
    known = torch.where(has_value, parts, 0).sum(-1)
    gaps = torch.where(has_value, 0, mean).sum(-1)
    total, factor = mean.sum(), torch.ones_like(known[0])
    for _ in range(_ITERATIONS):
        factor = (known + factor * gaps).log().mean().exp() / total
    return mean * factor
