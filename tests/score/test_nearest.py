"""Which landmarks are the nearest, where many are as near."""

import numpy as np
import pytest
import torch

from fewlier.score.neighbours.nearest import Landmarks


def integers(n, seed, width=4):
    """Return points on a grid whose steps have no exact float32, so that distances are rounded."""
    steps = np.random.default_rng(seed).integers(0, 4, (n, width))
    return torch.from_numpy((steps * [0.1, 0.3, 0.7, 1.1][:width]).astype(np.float32))


def first_of_the_nearest(landmarks, points, ids=None):
    """Return the places of the nearest, in float64 and with what the later ones are charged."""
    size = len(landmarks.points) // landmarks.n_groups
    apart = torch.cdist(
        points.double(), landmarks.points.double(), compute_mode="donot_use_mm_for_euclid_dist"
    ).square()
    apart += (1e-3 * torch.arange(size) / size).repeat(landmarks.n_groups)
    if ids is not None:
        apart[torch.from_numpy(ids[:, None] == landmarks.ids)] = torch.inf
    groups = apart.view(len(points), landmarks.n_groups, size)
    return groups.argmin(-1) + torch.arange(0, size * landmarks.n_groups, size)


def places(landmarks, points, ids=None):
    width = points.shape[1]
    return landmarks.measure(points, torch.arange(width), torch.ones(width).double(), ids)[1]


@pytest.mark.parametrize("are_known", [False, True])
def test_the_first_of_those_that_are_as_near_counts_however_float32_rounds(are_known):
    landmarks = Landmarks.from_points(integers(700, 0), 3, np.arange(700))
    points = integers(700, 0) if are_known else integers(400, 1)
    ids = np.arange(700) if are_known else None
    expected = first_of_the_nearest(landmarks, points, ids)
    assert torch.equal(places(landmarks, points, ids), expected)
    turned = torch.tensor([2, 0, 3, 1])  # the same distances, added up in another order
    other = Landmarks(landmarks.points[:, turned].contiguous(), 3, landmarks.ids)
    assert torch.equal(places(other, points[:, turned].contiguous(), ids), expected)


def test_a_row_has_the_same_neighbours_alone_and_among_others():
    landmarks = Landmarks.from_points(integers(700, 0), 3, np.arange(700))
    points = integers(400, 1)
    together = places(landmarks, points)
    alone = torch.cat([places(landmarks, points[[row]]) for row in range(50)])
    assert torch.equal(alone, together[:50])


def test_what_costs_least_comes_first_in_its_group():
    landmarks = Landmarks.from_points(integers(70, 0), 3, np.arange(70))
    cost = torch.rand(len(landmarks.points), dtype=torch.float64)
    cost[::7] = cost[0]
    order = landmarks.order_by(cost)
    groups, before = cost[order].view(3, -1), order.view(3, -1) // (len(order) // 3)
    assert (groups.diff(dim=1) > -1e-4).all()
    assert (before == torch.arange(3).unsqueeze(1)).all()
    taken = landmarks.take(order)
    assert torch.equal(taken.points, landmarks.points[order])
    np.testing.assert_array_equal(taken.ids, landmarks.ids[order])
