"""One view of a row's neighbours: distances on one scale, against scikit-learn's."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from shops import COLUMNS, CPU, N_ODD, N, distances, encoded, shops, view
from sklearn.metrics import roc_auc_score
from sklearn.metrics.pairwise import euclidean_distances

from fewlier import FormatError
from fewlier.density.rows import Rows
from fewlier.modelfile.state import State
from fewlier.score.neighbours.coordinates import COORDINATES, NormalScores
from fewlier.score.neighbours.nearest import MIN_DISTANCE
from fewlier.score.neighbours.view import View

SCALES = pytest.mark.parametrize("scales", COORDINATES.values(), ids=COORDINATES)


def parts(view, rows, own=None):
    """Return what columns add to z; with their ids, no row is its own neighbour."""
    return view.contributions(Rows.of(rows), own).numpy()


def score(view, rows, own=None):
    """Return z, which is the sum of what columns add."""
    return parts(view, rows, own).sum(1)


def place(view, inputs, normals):
    """Return where inputs lie, as computed here."""
    coordinates = view.space.coordinates
    if isinstance(coordinates, NormalScores):
        knots = zip(inputs.T, coordinates.knots.numpy(), coordinates.scores.numpy(), strict=True)
        return np.stack([np.interp(*column) for column in knots], 1)
    scale = normals.std(0)
    return np.clip((inputs - normals.mean(0)) / np.where(scale > 1e-9, scale, 1), -8, 8)


def handicaps(side, cost=None):
    """Return what is added to squared distances when the nearest of each group is chosen.

    It is the more, the later a landmark comes in its group, or the more it costs.
    """
    groups = np.arange(len(side.ids)) if cost is None else cost
    rank = groups.reshape(side.n_groups, -1).argsort(1).argsort(1)
    return 1e-3 * rank.ravel() / rank.shape[1]


def nearest_of_groups(side, ids, points, references, handicap=0):
    """Return of each group of landmarks the nearest to each point, (n, groups, i), and its place.

    `references` are the points of the side, `ids` their ids. They are not their own neighbours.
    """
    number = {row: place for place, row in enumerate(ids)}
    found, places = [], []
    added_to_each = np.broadcast_to(handicap, len(side.ids))
    n_groups = side.n_groups
    for group, added in zip(
        np.split(side.ids, n_groups), np.split(added_to_each, n_groups), strict=True
    ):
        rows = np.array([number[row] for row in group])
        apart = euclidean_distances(points, references[rows], squared=True) + added
        if points is references:
            apart[rows, np.arange(len(rows))] = np.inf
        places.append(rows[apart.argmin(1)])
        found.append(references[places[-1]])
    return np.stack(found, 1), np.stack(places, 1)


@SCALES
@pytest.mark.parametrize("n_odd", [0, 1, 2, 5, 6])
def test_scores_are_those_of_scikit_learns_neighbours(scales, n_odd):
    encoder, rows = encoded(shops(gaps=0, n_odd=n_odd))
    found = view(scales, encoder, rows, n_odd)
    fresh = encoded(shops(100, seed=1, gaps=0), encoder)[1]
    inputs, ids = rows.inputs.astype(np.float64), rows.ids()
    odd, normals, new_points = (
        place(found, some, inputs[n_odd:])
        for some in (inputs[:n_odd], inputs[n_odd:], fresh.inputs)
    )

    def half_log(points, side, ids, references, handicap=0):
        nearest, places = nearest_of_groups(side, ids, points, references, handicap)
        squared = ((nearest - points[:, None]) ** 2).sum(-1)
        return np.log(squared.mean(1) + MIN_DISTANCE) / 2, places

    def to_normals(points):
        side, own_ids = found.normals, ids[n_odd:]
        own, _ = half_log(normals, side, own_ids, normals)
        handicap = handicaps(side, own[[[*own_ids].index(row) for row in side.ids]])
        _, around = half_log(normals, side, own_ids, normals, handicap)
        far, places = half_log(points, side, own_ids, normals, handicap)
        return far - 0.3 * (own[places].mean(1) - own[around].mean())

    weight, near, new_near = 1, 0, 0
    if n_odd:
        truth = np.repeat([0, 1], [len(normals), n_odd])
        auc = roc_auc_score(truth, np.append(to_normals(normals), to_normals(odd)))
        # In a space where columns weigh differently, both distances.
        space = found.space
        stretch = np.sqrt(space.weight.numpy())[space.owner]
        odd, normals, new_points = odd * stretch, normals * stretch, new_points * stretch
        near, new_near = (
            half_log(points, found.anomalies, ids[:n_odd], odd)[0]
            for points in (normals, new_points)
        )
    own, new = to_normals(normals), to_normals(new_points)
    if n_odd:
        weight = 1 + max(0, 2 * auc - 1) * (own - near).std() / own.std()
    assert found.normal_weight == pytest.approx(weight, rel=1e-4)
    own, new = weight * own - near, weight * new - new_near
    expected = (new - own.mean()) / own.std()
    np.testing.assert_allclose(score(found, fresh), expected, rtol=1e-3, atol=1e-3)


@SCALES
@pytest.mark.parametrize("n_odd", [1, 6])
def test_columns_weigh_by_how_far_labelled_anomalies_are_from_normals_next_to_them(scales, n_odd):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(N, 4)), columns=list("abcd"))
    frame.loc[: n_odd - 1, ["a", "b"]] += [9, 1.5]
    encoder, rows = encoded(frame)
    found = view(scales, encoder, rows, n_odd)
    inputs = rows.inputs.astype(np.float64)
    points = place(found, inputs, inputs[n_odd:])
    odd, normals = points[:n_odd], points[n_odd:]
    apart = []
    for some in (odd, normals):
        nearest, _ = nearest_of_groups(
            found.normals, rows.ids()[n_odd:], some, normals, handicaps(found.normals)
        )
        apart.append(((nearest - some[:, None]) ** 2).mean(1) + MIN_DISTANCE / 4)
    typical = apart[1].mean(0) * np.exp(np.log(apart[1].sum(1)).mean()) / apart[1].sum(1).mean()
    ratio = np.minimum(apart[0] / (typical + 1e-3), 20).sum(0)
    expected = ((10 + ratio) / (10 + n_odd)) ** 2
    weight = found.space.weight
    np.testing.assert_allclose(weight, expected / expected.mean(), rtol=1e-3)
    assert weight[:2].min() > weight[2:].max()


@SCALES
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 100])
def test_all_rows_are_landmarks_in_groups_of_one_size_without_twins(scales, n):
    encoder, rows = encoded(shops(2 * n, gaps=0))
    found = view(scales, encoder, rows, n)
    ids = rows.ids()
    for side, own, most in ((found.normals, ids[n:], 3), (found.anomalies, ids[:n], 2)):
        groups = side.ids.reshape(side.n_groups, -1)
        assert len(groups) == min(most, n)
        assert set(groups.flat) == set(own)
        assert groups.size < n + most
        assert all(len(set(group)) == len(group) for group in groups)
        points = found.space.place(Rows.of(rows))[[[*ids].index(i) for i in groups.flat]]
        np.testing.assert_array_equal(side.points, points)


@SCALES
def test_a_sorted_table_has_the_neighbours_of_one_in_any_order(scales):
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 6, 600)
    ring = np.stack([np.cos(angle), np.sin(angle), angle], 1) + rng.normal(0, 0.03, (600, 3))
    fresh, is_odd = ring[:300].copy(), np.arange(300) < 100
    fresh[is_odd, 0] += 0.4
    aucs = []
    for order in (np.arange(300, 600), 300 + np.argsort(angle[300:])):
        encoder, rows = encoded(pd.DataFrame(ring[order], columns=[*"abc"]))
        new = encoded(pd.DataFrame(fresh, columns=[*"abc"]), encoder)[1]
        aucs.append(roc_auc_score(is_odd, score(view(scales, encoder, rows), new)))
    assert aucs[0] > 0.8
    assert aucs[1] > aucs[0] - 0.05


@SCALES
def test_normals_that_are_not_their_own_neighbours_have_mean_0_and_spread_1(scales):
    encoder, rows = encoded(shops())
    found = replace(view(scales, encoder, rows, N_ODD), left_out=None)  # on the scale of them all
    normals, ids = rows.take(np.arange(N_ODD, N)), rows.ids()[N_ODD:]
    z = score(found, normals, ids)
    assert z.mean() == pytest.approx(0, abs=1e-6)
    assert z.std() == pytest.approx(1, abs=1e-9)
    assert score(found, normals).mean() < -0.1  # each is its nearest


@SCALES
@pytest.mark.parametrize("gaps", [0, 0.3, 1])
@pytest.mark.parametrize("n_odd", [0, 1, 6])
def test_contributions_add_up_to_the_logarithms_of_the_distances(scales, gaps, n_odd):
    encoder, rows = encoded(shops(n_odd=n_odd, gaps=0.2))
    found = view(scales, encoder, rows, n_odd)
    strange = shops(3, seed=2).assign(size=[1e300, None, -5], city="Paris", visits=-1.0)
    for frame in (shops(50, seed=1, gaps=gaps), strange):
        fresh = encoded(frame, encoder)[1]
        given = Rows.of(fresh)
        apart, places = found.from_normals(given, found.space.place_known(given), None)
        local = found.local.double()[places].mean(1) * given.has_value
        far = (apart.sum(1) / found.typical.sum()).log() / 2 - local.sum(1)
        z = found.normal_weight * far
        if n_odd:
            apart = distances(found, fresh, from_anomalies=True)
            z -= (apart.sum(1) / found.near.sum()).log() / 2
        np.testing.assert_allclose(score(found, fresh), z / found.spread, rtol=1e-9, atol=1e-9)
        assert np.isfinite(parts(found, fresh)).all()


@SCALES
@pytest.mark.parametrize("side", ["normals", "anomalies"])
def test_a_row_left_out_is_as_if_it_had_never_been_there(scales, side):
    encoder, rows = encoded(shops(gaps=0))
    found = replace(view(scales, encoder, rows, N_ODD), left_out=None)  # see test_left_out.py
    number = {"normals": 40, "anomalies": 2}[side]
    one, own = rows.take([number]), rows.ids()[[number]]
    known = getattr(found, side)
    # Another of its group stands in its place.
    size = len(known.ids) // known.n_groups
    points = known.points.clone()
    for place in np.flatnonzero(known.ids == own):
        other = place + 1 if (place + 1) % size else place - 1
        points[place] = points[other]
    replaced = replace(known, points=points)
    without = replace(found, **{side: replaced})
    left_out = score(found, one, own)
    np.testing.assert_allclose(left_out, score(without, one), rtol=1e-6)
    assert not np.allclose(left_out, score(found, one))


@SCALES
def test_of_a_group_that_is_left_out_no_row_counts_and_of_all_the_distance_is_typical(scales):
    encoder, rows = encoded(shops(gaps=0))
    numbers = np.arange(N_ODD, N)
    for n_odd in (2, 1):
        some = rows.take(np.r_[:n_odd, numbers])
        found = view(scales, encoder, some, n_odd)
        first = distances(found, some.take([0]), some.ids()[[0]], from_anomalies=True)[0]
        if n_odd == 1:
            np.testing.assert_array_equal(first, found.near)
            continue
        one, other = found.space.place(Rows.of(some))[:2].double()
        apart = torch.zeros(3, dtype=torch.float64).index_add(
            0, found.space.owner, (one - other) ** 2
        )
        np.testing.assert_allclose(first, apart + MIN_DISTANCE / 3, rtol=1e-5)


@SCALES
def test_copies_of_a_row_are_left_out_with_it(scales):
    table = shops(gaps=0)
    copied = pd.concat([table] + 8 * [table.iloc[[50]]], ignore_index=True)
    apart = []
    for frame in (table, copied):
        encoder, rows = encoded(frame)
        found, row = view(scales, encoder, rows, N_ODD), rows.take([50])
        apart.append(distances(found, row, row.ids()).sum())
        as_new = distances(found, row).sum()
    # The copies move the scales of the columns a little, and the groups of the others.
    assert 0.3 < apart[1] / apart[0] < 3
    assert as_new < 0.6 * apart[1]


@SCALES
def test_a_missing_cell_adds_nothing_and_a_row_without_any_is_typical(scales):
    encoder, rows = encoded(shops())
    found = view(scales, encoder, rows, N_ODD)
    fresh = shops(60, seed=3, gaps=0.4)
    contributions = parts(found, encoded(fresh, encoder)[1])
    assert (contributions[fresh.isna().to_numpy()] == 0).all()
    nothing = encoded(fresh.mask(np.ones(fresh.shape, dtype=bool), None), encoder)[1]
    np.testing.assert_allclose(score(found, nothing), 0, atol=1e-12)


@SCALES
@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_leaving_cells_out_makes_rows_no_more_normal_than_typical_ones(scales, share):
    encoder, rows = encoded(shops(1000))
    found = view(scales, encoder, rows)
    fresh = shops(500, seed=3, n_odd=0, gaps=0)
    gaps = np.random.default_rng(0).random(fresh.shape) < share
    whole, holed = (
        score(found, encoded(table, encoder)[1]) for table in (fresh, fresh.mask(gaps, None))
    )
    assert np.median(holed) > np.median(whole) - 0.15
    assert holed.min() >= whole.min()


@SCALES
@pytest.mark.parametrize("column", COLUMNS)
def test_a_gap_where_there_was_none_and_a_value_outside_the_domain_are_far_away(scales, column):
    encoder, rows = encoded(shops(gaps=0))
    found = view(scales, encoder, rows, N_ODD)
    fresh = shops(30, seed=3, n_odd=0, gaps=0)
    contributions = parts(found, encoded(fresh.assign(**{column: None}), encoder)[1])
    assert (contributions[:, COLUMNS.index(column)] > 0.5).all()
    if column == "city":
        rows = encoded(fresh.assign(city="Paris"), encoder)[1]
        np.testing.assert_array_equal(parts(found, rows), contributions)


def test_a_view_on_an_unknown_scale_is_refused():
    encoder, rows = encoded(shops())
    for scales in COORDINATES.values():
        record, arrays = view(scales, encoder, rows, N_ODD).state().flat()
        View.from_state(State(record, arrays), encoder, CPU)
        record["space"]["coordinates"]["name"] = "furlongs"
        with pytest.raises(FormatError, match="one of standardised, normal scores"):
            View.from_state(State(record, arrays), encoder, CPU)
