"""The neighbours' part in the graph."""

from typing import final

import torch
from torch import Tensor, nn

from fewlier.density.rows import Rows
from fewlier.export.onnx.constants import exact
from fewlier.export.onnx.search import search_sorted
from fewlier.score.neighbours.coordinates import Coordinates, NormalScores
from fewlier.score.neighbours.nearest import LEAST
from fewlier.score.neighbours.part import Neighbours
from fewlier.score.neighbours.space import Space
from fewlier.score.neighbours.view import Side, View


@final
class NeighboursPart(nn.Module):
    """What `Neighbours.score` computes."""

    def __init__(self, neighbours: Neighbours) -> None:
        super().__init__()
        self._views = neighbours.views

    def forward(self, rows: Rows) -> Tensor:
        """Return the score, shape (n,)."""
        return torch.stack([_view(view, rows) for view in self._views]).amax(0)


def _view(view: View, rows: Rows) -> Tensor:
    points = _place_known(view.normals.space, rows)
    far = exact(view.normal_weight) * _log_ratio(view.normals, rows, points)
    if view.anomalies is not None:
        far = far - _log_ratio(view.anomalies, rows, points)
    return far / exact(view.spread)


def _place_known(space: Space, rows: Rows) -> Tensor:
    """Return where rows lie, as `Space.place_known` does."""
    placed = (
        _place(space.coordinates, space.numbers.points(rows)) * space.weight.sqrt()[space.owner]
    )
    lies = rows.has_value | space.is_impossible_number(rows)
    return placed * lies[:, space.owner]


def _place(coordinates: Coordinates, inputs: Tensor) -> Tensor:
    """Return where values lie on a scale, as `Coordinates.place` does."""
    if not isinstance(coordinates, NormalScores):
        return coordinates.place(inputs)
    x = inputs.T
    place = search_sorted(coordinates.knots[:, 1:-1], x)
    low, rise = coordinates.knots.gather(1, place), coordinates.slope.gather(1, place)
    found = (x - low) * rise + coordinates.scores.gather(1, place)
    found = torch.minimum(found, coordinates.scores[:, -1:])
    return torch.maximum(found, coordinates.scores[:, :1]).T


def _log_ratio(side: Side, rows: Rows, points: Tensor) -> Tensor:
    """Return 1/2 log(D / D_0), less what is local, as `Side.log_ratio` does."""
    landmarks = side.landmarks
    # In float64, as the library decides where float32 is not sure.
    near = points.double() @ landmarks.points.T.double() * -2 + landmarks.squares
    groups = near.unflatten(-1, (landmarks.n_groups, -1))
    first = torch.arange(landmarks.n_groups) * (len(landmarks.points) // landmarks.n_groups)
    places = groups.argmin(-1) + first  # (n, g)
    squared = (landmarks.points[places] - points.unsqueeze(1)).square().mean(1)
    d = len(side.typical)
    # What the inputs of a column add up to; exact, as each input belongs to one column.
    owner = nn.functional.one_hot(side.space.owner, d).double()
    found = squared.double() @ owner + exact(LEAST / d)
    distances = torch.where(rows.has_value, found, _without(side, rows, found))
    ratio = (distances.sum(-1) / side.typical.sum()).log() / 2
    if side.local is None:
        return ratio
    local = side.local[places].double().mean(1) * rows.has_value
    return ratio - local.sum(-1)


def _without(side: Side, rows: Rows, found: Tensor) -> Tensor:
    """Return what cells without a possible value count."""
    if side.impossible is None:
        return side.typical
    is_gap = ~rows.observed & side.space.missable
    without = torch.where(is_gap, side.typical, side.impossible)
    unweighed = found / side.space.weight.clamp_max(1)
    beyond = side.space.is_impossible_number(rows)
    return torch.where(beyond, torch.maximum(without, unweighed), without)
