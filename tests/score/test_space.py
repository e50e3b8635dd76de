"""Rows as points: where the numbers of columns of any kind lie."""

import numpy as np
import pandas as pd
import pytest
import torch
from shops import N_ODD, N, distances, encoded, neighbours, view

from fewlier.density.rows import Rows
from fewlier.score.neighbours.coordinates import COORDINATES, Standardised
from fewlier.score.neighbours.space import Space

SCALES = pytest.mark.parametrize("scales", COORDINATES.values(), ids=COORDINATES)


def parts(neighbours, rows):
    """Return what columns add to the part of the neighbours."""
    return neighbours.contributions(Rows.of(rows), {})


@pytest.mark.parametrize("kind", ["category", "count", "positive"])
def test_numbers_lie_where_they_do_however_networks_read_them(kind):
    rng = np.random.default_rng(0)
    counts, fresh = (
        pd.DataFrame(rng.integers(1, 9, (n, 3)).astype(float), columns=["stars", "rooms", "floors"])
        for n in (N, 50)
    )
    scores = []
    for one in (kind, "real"):
        encoder, rows = encoded(counts, kinds=dict.fromkeys(counts, one))
        scores.append(parts(neighbours(encoder, rows), encoded(fresh, encoder)[1]).sum(1))
    np.testing.assert_allclose(*scores, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("n_odd", [0, N_ODD])
@pytest.mark.parametrize(
    ("kind", "usual", "odd"),
    [
        ("category", range(1, 9), [11, 14, 20]),  # integers of few values, read as codes
        ("count", range(1, 9), [-1, -4, -9]),
        ("positive", range(1, 9), [-0.5, -4, -9]),
        ("binary", [2, 7], [9, 14, 20]),
        ("category", [2, 7], [9, 14, 20]),
    ],
)
def test_a_number_that_a_column_cannot_hold_is_odder_the_further_away_it_is(
    kind, usual, odd, n_odd
):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.choice(usual, (N, 4)).astype(float), columns=[*"abcd"])
    encoder, rows = encoded(frame, kinds=dict.fromkeys(frame, kind))
    new = pd.concat([frame.head(1)] * 4, ignore_index=True)
    new.loc[1:, "b"] = odd
    fresh = encoded(new, encoder)[1]
    assert fresh.impossible.sum() == 3
    alone = view(Standardised, encoder, rows, n_odd).contributions(Rows.of(fresh), None).sum(1)
    assert (alone.diff() > 0).all()
    # In normal scores, all that lies beyond the rows is equally far.
    contributions = parts(neighbours(encoder, rows, n_odd), fresh)
    z = contributions.sum(1)
    assert (np.diff(z) >= -1e-6).all()
    assert z[1] > z[0] + 1
    assert (contributions[1:].argmax(1) == 1).all()


@SCALES
@pytest.mark.parametrize("kind", ["category", "count", "positive", "binary"])
def test_normals_that_a_column_cannot_hold_do_not_widen_it(scales, kind):
    rng = np.random.default_rng(0)
    usual = [0, 1] if kind == "binary" else range(1, 9)
    frame = pd.DataFrame(1e-20 ** (kind == "positive") * rng.choice(usual, (N, 2)), columns=[*"ab"])
    encoder, whole = encoded(frame, kinds=dict.fromkeys(frame, kind))
    frame.loc[:1, "a"] = [-1e300, -1e6]
    rows = encoded(frame, encoder)[1]
    spaces = [Space.fit(encoder, Rows.of(rows.take(np.arange(n, N))), scales) for n in (0, 2)]
    one, other = (space.place(Rows.of(whole)) for space in spaces)
    np.testing.assert_allclose(one, other, atol=0.05)
    assert torch.isfinite(spaces[0].numbers.points(Rows.of(rows))).all()
    assert torch.isfinite(view(scales, encoder, rows).contributions(Rows.of(rows), None)).all()


@SCALES
def test_levels_that_anomalies_alone_have_do_not_move_gaps(scales):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"stars": rng.integers(0, 9, N) * 1.0, "x": rng.normal(size=N)})
    gaps = frame.mask(rng.random(frame.shape) < 0.1)
    places = []
    for far in (8.0, 1e6):
        gaps.loc[: N_ODD - 1, "stars"] = far
        encoder, rows = encoded(gaps, kinds={"stars": "category", "x": "real"})
        normals = Rows.of(rows.take(np.arange(N_ODD, N)))
        places.append(
            Space.fit(encoder, normals, scales).place(normals)[:, encoder.input_owner == 0]
        )
    one, other = (found[:, found.abs().sum(0) > 0] for found in places)
    np.testing.assert_allclose(one, other, atol=0.2)


@SCALES
def test_a_column_that_labels_say_nothing_of_cannot_hide_an_impossible_number(scales):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 9, (N, 3)).astype(float), columns=[*"abc"])
    frame.loc[: N_ODD - 1, "a"] = 20.0
    encoder, rows = encoded(frame, kinds=dict.fromkeys(frame, "count"))
    found = view(scales, encoder, rows, N_ODD)
    new = encoded(frame.tail(1).assign(b=-1000.0), encoder)[1]
    if scales is Standardised:
        assert float(found.space.weight[1]) < 0.5
        assert float(distances(found, new)[0, 1]) > (scales.limit - 2) ** 2
    # Two rows differ by a variance of 2.
    assert float(distances(found, new)[0, 1]) >= 2


@SCALES
@pytest.mark.parametrize("kind", ["real", "positive", "count", "category"])
def test_gaps_of_normals_move_none_of_their_neighbours(scales, kind):
    rng = np.random.default_rng(0)
    full = pd.DataFrame({"level": rng.integers(1000, 1012, N) * 1.0, "x": rng.normal(size=N)})
    gaps = full.mask(rng.random(full.shape) < 0.2)
    places = []
    for frame in (full, gaps):
        encoder, rows = encoded(frame, kinds={"level": kind, "x": "real"})
        space = Space.fit(encoder, Rows.of(rows), scales)
        places.append(space.place(Rows.of(encoded(full, encoder)[1]))[:, 0])
    # Gaps lie in the middle, where they narrow the spread by a tenth, and move nothing else.
    np.testing.assert_allclose(*places, atol=0.35)


@pytest.mark.parametrize("unit", [1e-12, 1e-7, 1e9])
def test_the_unit_of_a_positive_column_does_not_matter(unit):
    rng = np.random.default_rng(0)
    sizes, scores = rng.lognormal(size=N), []
    for factor in (1, unit):
        frame = pd.DataFrame({"size": factor * sizes, "x": sizes})
        encoder, rows = encoded(frame, kinds={"size": "positive", "x": "real"})
        scores.append(parts(neighbours(encoder, rows, N_ODD), rows).sum(1))
    np.testing.assert_allclose(*scores, rtol=1e-3, atol=1e-3)
