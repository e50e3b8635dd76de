"""`View`: how odd the neighbours of a row make it on one scale."""

from dataclasses import dataclass, replace
from typing import final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from fewlier.density.rows import Rows
from fewlier.modelfile.state import State, require
from fewlier.score.neighbours.coordinates import Coordinates
from fewlier.score.neighbours.left_out import LeftOut
from fewlier.score.neighbours.nearest import (
    MIN_DISTANCE,
    Apart,
    Landmarks,
    Measured,
    column_ratios,
    group_order,
    mean_around,
    split_log_ratio,
    typical_distances,
    weights_of,
)
from fewlier.score.neighbours.space import Space
from fewlier.score.part import Known, exact
from fewlier.table import Encoder
from fewlier.table.arrays import Ints

MAX_LANDMARKS = 2000
"""Most rows of each label that a row is compared with."""
# Where rows are wide, the rows of each label take at most this many bytes.
_MAX_BYTES = 8 * 2**20
# How many groups the rows of each label form, of which the nearest counts.
_NORMALS, _ANOMALIES = 3, 2
# What it counts how far the nearest normal rows lie from others themselves: 1 would make it a local
# outlier factor, 0 a plain distance.
_LOCAL = 0.3
_MIN_SPREAD = 1e-6
_CHUNK = 1024  # rows measured at a time


def max_landmarks(n_inputs: int) -> int:
    """Return how many rows of each label are kept at most."""
    return max(_NORMALS, min(MAX_LANDMARKS, _MAX_BYTES // (4 * n_inputs)))


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
    space : Space
        Where rows lie.
    normals : Landmarks
        The normal rows to compare with.
    typical : tensor (d,)
        Each column's part in D_0: the logarithm of their sum is the mean of normal rows' log D.
    impossible : tensor (d,)
        What an impossible value adds to D.
    local : tensor (m, d)
        What columns add to log distances of each landmark from others, less what is usual of the
        landmarks next to a normal row, times 0.3: where normal rows lie far apart, it says less
        that a row does.
    anomalies : Landmarks or None
        The labelled anomalies to compare with.
    near : tensor (d,) or None
        Each column's part in A_0, where there are anomalies.
    normal_weight : float
        w, what the distance from normal rows counts; that from labelled anomalies counts 1.
    spread : float
        Standard deviation of the numerator on normal rows, none its own neighbour.
    left_out : LeftOut or None
        What the space would be without some of its rows; None in a model that was loaded.
    """

    space: Space
    normals: Landmarks
    typical: Float[Tensor, " d"]
    impossible: Float[Tensor, " d"]
    local: Float[Tensor, "m d"]
    anomalies: Landmarks | None = None
    near: Float[Tensor, " d"] | None = None
    normal_weight: float = 1.0
    spread: float = 1.0
    left_out: LeftOut | None = None

    @classmethod
    def fit(cls, scales: type[Coordinates], known: Known) -> "View":
        """Compare with normals and labelled anomalies."""
        (normals, ids), (anomalies, own) = map(known.labelled, (False, True))
        space = Space.fit(known.encoder, normals, scales)
        plain, far = _of_normals(space, normals, ids)
        left_out = LeftOut.of(ids, space)
        if not len(own):
            return replace(plain, spread=_spread(far), left_out=left_out)
        points = space.place_known(anomalies)
        found = plain.from_normals(anomalies, points, None)
        novelty = _novelty(far, plain.contributions(anomalies, None).sum(1))

        def without(some: Ints, ids: Ints) -> Float[Tensor, "k d"]:
            chosen = torch.from_numpy(some).to(points.device)
            return plain.from_normals(anomalies.take(chosen), points[chosen], ids)[0]

        left_out = left_out.near_to(plain.normals, found, plain.typical, without)
        weight = weights_of(column_ratios(found[0], plain.typical).sum(0), len(own))
        view, far = _of_normals(space.with_weight(weight), normals, ids)
        landmarks = Landmarks.from_points(view.space.place(anomalies), _ANOMALIES, own)
        typical, (distances, _) = _usual(view.space, landmarks, normals, ids)
        near = split_log_ratio(distances, typical).sum(1)
        normal_weight = 1 + novelty * _spread(far - near) / _spread(far)
        return replace(
            view,
            anomalies=landmarks,
            near=typical,
            normal_weight=normal_weight,
            spread=_spread(normal_weight * far - near),
            left_out=left_out,
        )

    def contributions(self, rows: Rows, ids: Ints | None) -> Float[Tensor, "n d"]:
        """Return what each column adds to z; with `ids`, rows of the fit are judged by others."""
        points, apart = self.space.place_known(rows), None
        if ids is not None and self.left_out is not None:
            apart = self.left_out.apart(self.space, ids)
        distances, places = self.from_normals(rows, points, ids, apart)
        local = mean_around(self.local, places) * rows.has_value
        z = (split_log_ratio(distances, self.typical) - local) * exact(self.normal_weight)
        if self.anomalies is not None and self.near is not None:
            near, _ = self.anomalies.measure(points, self.space.owner, self.near, ids, apart)
            z = z - split_log_ratio(torch.where(rows.has_value, near, self.near), self.near)
        return z / exact(self.spread)

    def from_normals(
        self,
        rows: Rows,
        points: Float[Tensor, "n i"],
        ids: Ints | None,
        apart: Apart | None = None,
    ) -> Measured:
        """Measure how far rows are from the nearest normals, column by column.

        `points` is where they lie (see `Space.place_known`). With `ids`, rows of the fit are not
        their own neighbours; `apart` is how far they are from others without themselves. A missing
        cell counts the typical distance, but one that is missing although no normal row misses one
        counts as impossible. An impossible number keeps its own distance if that is larger.
        """
        found, places = self.normals.measure(points, self.space.owner, self.typical, ids, apart)
        is_gap = ~rows.observed & self.space.missable
        without = torch.where(is_gap, self.typical, self.impossible)
        unweighed = found / self.space.weight.clamp_max(1)
        beyond = self.space.is_impossible_number(rows)
        without = torch.where(beyond, without.maximum(unweighed), without)
        return torch.where(rows.has_value, found, without), places

    def state(self) -> State:
        """Return what a model file holds of it."""
        arrays = {
            name: getattr(self, name).cpu().numpy() for name in ("typical", "impossible", "local")
        }
        normals = {"points": self.normals.points.cpu().numpy()} | arrays
        anomalies = None
        if self.anomalies is not None and self.near is not None:
            points = self.anomalies.points.cpu().numpy()
            anomalies = State({}, {"points": points, "typical": self.near.cpu().numpy()})
        return State(
            {
                "normal_weight": self.normal_weight,
                "spread": self.spread,
                "space": self.space.state(),
                "normals": State({}, normals),
                "anomalies": anomalies,
            }
        )

    @classmethod
    def from_state(cls, state: State, encoder: Encoder, device: torch.device) -> "View":
        """Inverse of `state`, checked."""
        space = Space.from_state(state.part("space"), encoder, device)
        part, other = state.part("normals"), state.optional("anomalies")
        normals = _read_landmarks(part, space, _NORMALS)
        shape = (len(normals.points), encoder.n_columns)
        return cls(
            space,
            normals,
            _read_distances(part, "typical", space),
            _read_distances(part, "impossible", space),
            torch.from_numpy(part.array("local", np.float32, shape)).to(device),
            other and _read_landmarks(other, space, _ANOMALIES),
            other and _read_distances(other, "typical", space),
            state.number("normal_weight", 1),
            state.positive("spread"),
        )


def _read_landmarks(state: State, space: Space, n_groups: int) -> Landmarks:
    points = torch.from_numpy(state.array("points", np.float32, (None, len(space.owner))))
    n_groups = min(n_groups, len(points))
    is_number = 1 <= len(points) <= MAX_LANDMARKS + n_groups and not len(points) % n_groups
    require(is_number, f"its neighbours are not 1 to {MAX_LANDMARKS} rows in groups.")
    points = points.to(space.weight.device)
    is_near = bool((points.abs() <= space.limit).all())
    require(is_near, "its neighbours lie further away than any row can.")
    return Landmarks(points, n_groups, None)


def _read_distances(state: State, name: str, space: Space) -> Float[Tensor, " d"]:
    found = torch.from_numpy(state.array(name, np.float64, (len(space.weight),)))
    require(bool((found > 0).all()), "a distance of its neighbours is not positive.")
    return found.to(space.weight.device)


def _of_normals(space: Space, normals: Rows, ids: Ints) -> tuple[View, Float[Tensor, " n"]]:
    """Compare with normals alone; return also F of the normals themselves.

    As it is to normals that a row is compared, what is local has a mean of 0 on them.

    An impossible value is as far away as the furthest normal, and at least as far as two normals
    are from each other on average: standardised inputs of two rows differ by a variance of 2. In a
    column that labels make light of, it stays as far.
    """
    landmarks = Landmarks.from_points(space.place(normals), _NORMALS, ids)
    typical, (distances, _) = _usual(space, landmarks, normals, ids)
    order = torch.from_numpy(group_order(len(ids), _NORMALS)).to(typical.device)
    own = split_log_ratio(distances, typical)[order]
    # Of normals that are as near, the one that lies nearest to others counts.
    order = landmarks.order_by(own.sum(-1))
    landmarks, own = landmarks.take(order), own[order]
    typical, (distances, places) = _usual(space, landmarks, normals, ids)
    usual = 2 * space.n_axes * space.weight.clamp_min(1)
    n_known = normals.has_value.double().sum(0).clamp_min(1)
    around = mean_around(own, places) * normals.has_value
    local = (_LOCAL * (own - around.sum(0) / n_known)).float()
    view = View(space, landmarks, typical, distances.amax(0).maximum(usual), local)
    far = split_log_ratio(distances, typical) - mean_around(local, places) * normals.has_value
    return view, far.sum(1)


def _usual(
    space: Space, landmarks: Landmarks, normals: Rows, ids: Ints
) -> tuple[Float[Tensor, " d"], Measured]:
    """Return the typical distances, and each normal's distances with the typical in its gaps."""
    d = len(space.weight)
    alone = torch.full((d,), MIN_DISTANCE / d, dtype=torch.float64, device=space.weight.device)
    found = []
    for start in range(0, len(ids), _CHUNK):
        some = slice(start, start + _CHUNK)
        points = space.place_known(normals.take(some))
        found.append(landmarks.measure(points, space.owner, alone, ids[some]))
    distances, places = (torch.cat(part) for part in zip(*found, strict=True))
    typical = typical_distances(distances, normals.has_value)
    return typical, (torch.where(normals.has_value, distances, typical), places)


def _novelty(normals: Float[Tensor, " n"], anomalies: Float[Tensor, " m"]) -> float:
    """Return how well the distance from normals alone separates anomalies from them."""
    from sklearn.metrics import roc_auc_score  # here, because a score needs none of it

    is_odd = np.repeat([False, True], [len(normals), len(anomalies)])
    auc = float(roc_auc_score(is_odd, torch.cat([normals, anomalies]).cpu()))
    return max(0.0, 2 * auc - 1)


def _spread(logs: Float[Tensor, " n"]) -> float:
    """Return the standard deviation of logarithms; 1, their own unit, where all are alike."""
    spread = float(logs.std(correction=0))
    return spread if spread > _MIN_SPREAD else 1.0
