"""What a space would be without one of its rows, compared with one made without it."""

import numpy as np
import pytest
import torch

from fewlier.score.neighbours.coordinates import COORDINATES
from fewlier.score.neighbours.left_out import LeftOut
from fewlier.score.neighbours.nearest import Landmarks, column_ratios, weights_of

KINDS = {
    "numbers": lambda rng: rng.normal(size=(30, 3)),
    "a row far out": lambda rng: np.r_[rng.normal(size=(29, 3)), [[9, -9, 0]]],
    "indicators": lambda rng: (rng.random((30, 3)) < 0.2).astype(float),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("copies", [1, 3])
@pytest.mark.parametrize("scales", COORDINATES.values(), ids=COORDINATES)
def test_differences_are_those_on_a_scale_made_without_the_row(scales, copies, kind):
    x = np.round(KINDS[kind](np.random.default_rng(0)), 2)
    whole = np.r_[x, np.repeat(x[-1:], copies - 1, 0)]
    rest, given = x[:-1], torch.from_numpy(x).float()
    own, others = (
        scales.fit(whole).place(part).unsqueeze(dim)
        for part, dim in ((given[-1:], 1), (given[:-1], 0))
    )
    found = scales.fit(whole).squared_without(own, others, len(whole), torch.tensor([[[copies]]]))
    without = scales.fit(rest).place(given)
    expected = (without[:-1] - without[-1]).square()
    is_near = (without[-1].abs() < 8).expand_as(expected)  # there a place is cut
    # Numbers between two others are interpolated between their scores, not their ranks.
    between = 0.15 if scales.name == "normal scores" and kind != "indicators" else 1e-4
    torch.testing.assert_close(found[0][is_near], expected[is_near], rtol=between, atol=between)


def test_columns_have_the_weights_they_had_without_a_row_next_to_the_anomalies():
    rng = np.random.default_rng(0)
    normals, odd = (torch.from_numpy(x).float() for x in (rng.normal(size=(40, 4)), np.eye(4)[:3]))
    owner, typical, ids = torch.arange(4), torch.full((4,), 0.5).double(), np.arange(40) + 7
    landmarks = Landmarks.from_points(normals, 3, ids)

    def measure(rows, left_out):
        return landmarks.measure(odd[rows], owner, typical, left_out)[0]

    def weight(distances):
        return weights_of(column_ratios(distances, typical).sum(0), len(odd))

    found = landmarks.measure(odd, owner, typical, None)
    left_out = LeftOut(ids, np.ones(40, int), ids[:0], torch.empty(0, 4)).near_to(
        landmarks, found, typical, measure
    )
    assert set(left_out.near) == set(landmarks.ids[found[1]].ravel())
    for row, change in zip(left_out.near, left_out.weight, strict=True):
        without = measure(np.arange(3), np.full(3, row))
        expected = weight(without) / weight(found[0])
        torch.testing.assert_close(change, expected)
        assert (change - 1).abs().max() > 1e-3
