"""`View`: how odd the neighbours of a row make it on one scale. `Side`: the rows of one label."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from fewlier.density.rows import Rows
from fewlier.modelfile.state import State, require
from fewlier.score.neighbours.coordinates import Coordinates
from fewlier.score.neighbours.left_out import Apart, LeftOut
from fewlier.score.neighbours.nearest import (
    LEAST,
    Landmarks,
    Measured,
    column_ratios,
    group_order,
    typical_distances,
    weights_of,
)
from fewlier.score.neighbours.space import Space
from fewlier.table import Encoder
from fewlier.table.arrays import Ints

MAX_LANDMARKS = 2000
"""Rows of each label that a row is compared with at most."""
# Where rows are wide, the rows of each label take at most this many bytes.
_MAX_BYTES = 8 * 2**20
# How many groups the rows of each label form, of which the nearest counts.
_NORMALS, _ANOMALIES = 3, 2
# What it counts how far the nearest normal rows lie from others themselves: 1 would make it a local
# outlier factor, 0 a plain distance.
_LOCAL = 0.3
_LEAST_SPREAD = 1e-6
_CHUNK = 1024  # rows measured at a time


def n_rows_at_most(n_inputs: int) -> int:
    """Return how many rows of each label are kept at most."""
    return max(_NORMALS, min(MAX_LANDMARKS, _MAX_BYTES // (4 * n_inputs)))


@final
@dataclass(frozen=True, eq=False)
class Side:
    """The rows of one label, and what is usual of the distances of normal rows to them.

    Parameters
    ----------
    space : Space
        Where rows lie.
    landmarks : Landmarks
        The rows.
    typical : tensor (d,)
        Each column's part in the squared distance of a normal row. The logarithm of their sum is
        the mean of normal rows' log distance.
    impossible : tensor (d,) or None
        On the side of the normals, the distance of an impossible value. None on the side of the
        anomalies, where impossible values count what is typical.
    local : tensor (m, d) or None
        On the side of the normals, what the columns add to the log distance of each landmark from
        others, less what is usual of the landmarks next to a normal row, times 0.3: where normal
        rows lie far apart, it says less that a row does.
    """

    space: Space
    landmarks: Landmarks
    typical: Float[Tensor, " d"]
    impossible: Float[Tensor, " d"] | None
    local: Float[Tensor, "m d"] | None = None

    def measure(
        self,
        rows: Rows,
        points: Float[Tensor, "n i"],
        ids: Ints | None,
        apart: Apart | None = None,
    ) -> Measured:
        """Measure how far rows are from the nearest landmarks, column by column.

        `points` is where they lie (see `Space.place_known`). With `ids`, rows of the fit are not
        their own neighbours; `apart` is how far they are from others without themselves. A missing
        cell counts the typical distance. On the side of the normals, a cell that is missing
        although no normal row misses one counts as impossible, and an impossible number keeps its
        own distance if that is larger.
        """
        measured = self.landmarks.measure(points, self.space.owner, self.typical, ids, apart)
        if bool(rows.has_value.all()):
            return measured
        found = measured.distances
        without = self.typical
        if self.impossible is not None:
            is_gap = ~rows.observed & self.space.missable
            without = torch.where(is_gap, self.typical, self.impossible)
            unweighed = found / self.space.weight.clamp_max(1)
            beyond = self.space.is_impossible_number(rows)
            without = torch.where(beyond, without.maximum(unweighed), without)
        distances = torch.where(rows.has_value, found, without)
        return measured._replace(distances=distances, known=rows.has_value)

    def log_ratio(self, measured: Measured) -> Float[Tensor, " n"]:
        """Return 1/2 log(D / D_0), less what is local: D sums distances, D_0 typical distances."""
        found = (measured.distances.sum(-1) / self.typical.sum()).log() / 2
        if self.local is None:
            return found
        local = measured.around(self._local_sum)
        if measured.known is not None:
            by_column = measured.around_by_column(self.local).sum(-1)
            local = torch.where(measured.known.all(-1), local, by_column)
        return found - local

    @cached_property
    def _local_sum(self) -> Float[Tensor, " m"]:
        return torch.empty(0) if self.local is None else self.local.double().sum(-1)

    def split_log_ratio(self, measured: Measured) -> Float[Tensor, "n d"]:
        r"""Split `log_ratio` over the columns: 1/2 (a_d - e_d) / L(D, D_0).

        a_d are the parts of D, e_d the parts of D_0; L is the logarithmic mean
        (D - D_0) / (log D - log D_0), with L(D, D) = D, so that nothing is left over.
        """
        distances, typical = measured.distances, self.typical.sum()
        excess = (distances.sum(-1, keepdim=True) - typical) / typical
        slope = torch.where(excess == 0, 1, excess.log1p() / excess)
        found = (distances - self.typical) * slope / typical / 2
        return found if self.local is None else found - measured.around_by_column(self.local)

    def state(self) -> State:
        """Return what a model file holds of it, but for the space."""
        tensors = {"points": self.landmarks.points, "typical": self.typical}
        if self.impossible is not None and self.local is not None:
            tensors |= {"impossible": self.impossible, "local": self.local}
        return State({}, {name: tensor.cpu().numpy() for name, tensor in tensors.items()})

    @classmethod
    def from_state(cls, state: State, space: Space, n_groups: int, *, of_normals: bool) -> "Side":
        """Inverse of `state`, checked."""
        names = ("typical", "impossible") if of_normals else ("typical",)
        device, d = space.weight.device, len(space.weight)
        array = state.array("points", np.float32, (None, len(space.owner)))
        points = torch.from_numpy(array).to(device)
        n_groups = min(n_groups, len(points))
        is_number = 1 <= len(points) <= MAX_LANDMARKS + n_groups and not len(points) % n_groups
        require(is_number, f"its neighbours are not 1 to {MAX_LANDMARKS} rows in groups.")
        is_near = bool((points.abs() <= space.limit).all())
        require(is_near, "its neighbours lie further away than any row can.")
        usual = [torch.from_numpy(state.array(name, np.float64, (d,))).to(device) for name in names]
        is_distance = all(bool((part > 0).all()) for part in usual)
        require(is_distance, "a distance of its neighbours is not positive.")
        landmarks = Landmarks(points, n_groups, None)
        if not of_normals:
            return cls(space, landmarks, usual[0], None)
        local = torch.from_numpy(state.array("local", np.float32, (len(points), d))).to(device)
        return cls(space, landmarks, usual[0], usual[1], local)


@final
@dataclass(frozen=True, eq=False)
class View:
    r"""One reading of how odd a row lies: z(x) = (w F - 1/2 log(A / A_0)) / spread.

    F = 1/2 log(D / D_0) - 0.3 * mean of 1/2 log(D(v) / D_0), with D the mean squared distance to
    the nearest normal rows v and D(v) theirs to others; A is the one to the nearest labelled
    anomalies. A column weighs the more, the further labelled anomalies lie from normal rows in it.
    D_0 and A_0 are typical of normal rows, so that z has mean 0 and standard deviation 1 there.
    Without labelled anomalies the second term is absent, and columns weigh alike.

    Anomalies of a new kind lie far from normal rows and from labelled anomalies alike. So the
    distance from normal rows counts more, w >= 1, the better it alone finds the labelled anomalies:
    z is the sum of two scores, each in its standard deviation: the score of both distances, and
    `novelty` times the score of the first alone. `novelty` is max(0, 2 AUC - 1) of the labelled
    anomalies by the distance from normal rows, columns weighing alike.

    Parameters
    ----------
    normals, anomalies : Side, Side or None
        The rows to compare with.
    normal_weight : float
        w, what the distance from normal rows counts; that from labelled anomalies counts 1.
    spread : float
        Standard deviation of the numerator on normal rows, none its own neighbour.
    left_out : LeftOut or None
        What the space would be without some of its rows; None in a model that was loaded.
    """

    normals: Side
    anomalies: Side | None
    normal_weight: float
    spread: float
    left_out: LeftOut | None = None

    @classmethod
    def fit(
        cls,
        encoder: Encoder,
        scales: type[Coordinates],
        normals: tuple[Rows, Ints],
        anomalies: tuple[Rows, Ints],
    ) -> "View":
        """Compare with normals and labelled anomalies, given as rows and their ids."""
        space = Space.fit(encoder, normals[0], scales)
        plain, far = _measure_normals(space, *normals)
        left_out = LeftOut.of(normals[1], space)
        if not len(anomalies[1]):
            return cls(plain, None, 1.0, _spread(far), left_out)
        points = space.place_known(anomalies[0])
        of_anomalies = plain.measure(anomalies[0], points, None)
        novelty = _novelty(far, plain.log_ratio(of_anomalies))

        def without(some: Ints, ids: Ints) -> Measured:
            chosen = torch.from_numpy(some).to(points.device)
            return plain.measure(anomalies[0].take(chosen), points[chosen], ids)

        left_out = left_out.near_to(plain.landmarks, of_anomalies, plain.typical, without)
        ratios = column_ratios(of_anomalies.distances, plain.typical)
        space = space.with_weight(weights_of(ratios.sum(0), len(anomalies[1])))
        side, far = _measure_normals(space, *normals)
        other, near = _measure_anomalies(space, anomalies, normals)
        normal_weight = 1 + novelty * _spread(far - near) / _spread(far)
        return cls(side, other, normal_weight, _spread(normal_weight * far - near), left_out)

    def score(self, rows: Rows, ids: Ints | None) -> Float[Tensor, " n"]:
        """Return z."""
        return self._combine([side.log_ratio(part) for side, part in self._measure(rows, ids)])

    def contributions(self, rows: Rows, ids: Ints | None) -> Float[Tensor, "n d"]:
        """Return what each column adds to z."""
        measured = self._measure(rows, ids)
        return self._combine([side.split_log_ratio(part) for side, part in measured])

    def _measure(self, rows: Rows, ids: Ints | None) -> list[tuple[Side, Measured]]:
        """Measure the distances to the rows of each label."""
        sides = [side for side in (self.normals, self.anomalies) if side is not None]
        space = self.normals.space
        points, apart = space.place_known(rows), None
        if ids is not None and self.left_out is not None:
            apart = self.left_out.apart(space, ids)
        return [(side, side.measure(rows, points, ids, apart)) for side in sides]

    def _combine(self, sides: list[Tensor]) -> Tensor:
        """Combine the log ratios of both sides."""
        far, *near = sides
        return (self.normal_weight * far - sum(near)) / self.spread

    def state(self) -> State:
        """Return what a model file holds of it."""
        return State(
            {
                "normal_weight": self.normal_weight,
                "spread": self.spread,
                "space": self.normals.space.state(),
                "normals": self.normals.state(),
                "anomalies": self.anomalies and self.anomalies.state(),
            }
        )

    @classmethod
    def from_state(cls, state: State, encoder: Encoder, device: torch.device) -> "View":
        """Inverse of `state`, checked."""
        space = Space.from_state(state.part("space"), encoder, device)
        normals = Side.from_state(state.part("normals"), space, _NORMALS, of_normals=True)
        other = state.optional("anomalies")
        return cls(
            normals,
            other and Side.from_state(other, space, _ANOMALIES, of_normals=False),
            state.number("normal_weight", 1),
            state.positive("spread"),
        )


def _measure_normals(space: Space, normals: Rows, ids: Ints) -> tuple[Side, Float[Tensor, " n"]]:
    """Build the side of the normals; return also the log ratios of the normals themselves.

    As it is to normals that a row is compared, what is local has a mean of 0 on them.

    An impossible value is as far away as the furthest normal, and at least as far as two normals
    are from each other on average: standardised inputs of two rows differ by a variance of 2. In a
    column that labels make light of, it stays as far.
    """
    landmarks = Landmarks.from_points(space.place(normals), _NORMALS, ids)
    typical, measured = _usual(space, landmarks, normals, ids)
    order = torch.from_numpy(group_order(len(ids), _NORMALS)).to(typical.device)
    own = Side(space, landmarks, typical, None).split_log_ratio(measured)[order]
    # Of normals that are as near, the one that lies nearest to others counts.
    order = landmarks.order_by(own.sum(-1))
    landmarks, own = landmarks.take(order), own[order]
    typical, measured = _usual(space, landmarks, normals, ids)
    usual = 2 * space.n_axes * space.weight.clamp_min(1)
    impossible = torch.maximum(measured.distances.amax(0), usual)
    n_known = normals.has_value.double().sum(0).clamp_min(1)
    local = _LOCAL * (own - measured.around_by_column(own).sum(0) / n_known)
    side = Side(space, landmarks, typical, impossible, local.float())
    return side, side.log_ratio(measured)


def _measure_anomalies(
    space: Space, anomalies: tuple[Rows, Ints], normals: tuple[Rows, Ints]
) -> tuple[Side, Float[Tensor, " n"]]:
    """Build the side of the anomalies; return also the log ratios of the normals."""
    landmarks = Landmarks.from_points(space.place(anomalies[0]), _ANOMALIES, anomalies[1])
    typical, measured = _usual(space, landmarks, *normals)
    side = Side(space, landmarks, typical, None)
    return side, side.log_ratio(measured)


def _usual(
    space: Space, landmarks: Landmarks, normals: Rows, ids: Ints
) -> tuple[Float[Tensor, " d"], Measured]:
    """Return the typical distances, and each normal's distances with the typical in its gaps."""
    d = len(space.weight)
    alone = torch.full((d,), LEAST / d, dtype=torch.float64, device=space.weight.device)

    def measure(rows: Rows, ids: Ints | None) -> Measured:
        return landmarks.measure(space.place_known(rows), space.owner, alone, ids)

    found, has_value = _in_chunks(measure, normals, ids), normals.has_value
    typical = typical_distances(found.distances, has_value)
    distances = torch.where(has_value, found.distances, typical)
    return typical, found._replace(distances=distances, known=has_value)


def _in_chunks(
    measure: Callable[[Rows, Ints | None], Measured], rows: Rows, ids: Ints | None
) -> Measured:
    """Measure many rows, some at a time."""
    chunks = [slice(start, start + _CHUNK) for start in range(0, len(rows.inputs), _CHUNK)]
    return Measured.join([measure(rows.take(c), None if ids is None else ids[c]) for c in chunks])


def _novelty(normals: Float[Tensor, " n"], anomalies: Float[Tensor, " m"]) -> float:
    """Return how well the distance from normals alone separates anomalies from them."""
    from sklearn.metrics import roc_auc_score  # here, because a score needs none of it

    is_odd = np.repeat([False, True], [len(normals), len(anomalies)])
    auc = float(roc_auc_score(is_odd, torch.cat([normals, anomalies]).cpu()))
    return max(0.0, 2 * auc - 1)


def _spread(logs: Float[Tensor, " n"]) -> float:
    """Return the standard deviation of logarithms; 1, their own unit, where all are alike."""
    spread = float(logs.std(correction=0))
    return spread if spread > _LEAST_SPREAD else 1.0
