"""Distances to normal rows and labelled anomalies, beside the density."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from factories import small
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import NearestNeighbors

from fewlier.density.rows import Rows
from fewlier.score import neighbours as module
from fewlier.score.held_out import held_out_scores
from fewlier.score.model import Scorer
from fewlier.score.nearest import LEAST
from fewlier.score.neighbours import Neighbours, n_rows_at_most
from fewlier.score.part import HeldOut
from fewlier.score.selection import own_passes
from fewlier.score.space import LIMIT, Space
from fewlier.table import Encoder, Table, infer_schema

N, N_ODD = 300, 6
COLUMNS = ["size", "visits", "city"]
CPU = torch.device("cpu")


def score(neighbours, encoded, own=None):
    """Return z of encoded rows; with their ids, none is its own neighbour."""
    return parts(neighbours, encoded, own).sum(1)


def parts(neighbours, encoded, own=None):
    """Return what columns add to z."""
    own = None if own is None else HeldOut(own)
    contributions = neighbours.contributions(Rows.of(encoded), {}, own)
    assert (contributions[:, -1] == 0).all()
    return contributions[:, :-1]


def shops(n=N, seed=0, n_odd=N_ODD, gaps=0.1):
    """Return shops of several kinds of columns; the first are odd."""
    rng = np.random.default_rng(seed)
    odd = np.arange(n) < n_odd
    table = pd.DataFrame(
        {
            "size": rng.normal(10, 2, n) + 9 * odd,
            "visits": rng.poisson(30, n).astype(float),
            "city": rng.choice(["Bern", "Oslo", "Rome"], n, p=[0.6, 0.3, 0.1]),
        }
    )
    return table.mask(rng.random(table.shape) < gaps, None)


def encoded(frame, like=None):
    table = Table.of(frame)
    schema = like.schema if like else infer_schema(table)
    matched = schema.match(table)
    encoder = like or Encoder.fit(schema, matched)
    return encoder, encoder.encode(matched)


def found(frame, n_odd=N_ODD):
    encoder, rows = encoded(frame)
    numbers = np.arange(n_odd, len(frame)), np.arange(n_odd)
    return encoder, rows, Neighbours.fit(encoder, rows, numbers, CPU)


@pytest.fixture(scope="module")
def detector():
    return small().fit(shops(), np.arange(N) < N_ODD)


def standardised(inputs, normals):
    scale = normals.std(0)
    return np.clip((inputs - normals.mean(0)) / np.where(scale > 1e-9, scale, 1), -LIMIT, LIMIT)


@pytest.mark.parametrize("n_odd", [0, 1, 2, 6])
def test_scores_are_those_of_scikit_learns_neighbours(n_odd):
    encoder, rows, neighbours = found(shops(gaps=0, n_odd=n_odd), n_odd)
    _, fresh = encoded(shops(100, seed=1, gaps=0), encoder)
    inputs = rows.inputs.astype(np.float64)
    space = [standardised(part, inputs[n_odd:]) for part in (inputs, fresh.inputs)]

    def half_log(points, references, k):
        distance, _ = NearestNeighbors(n_neighbors=k).fit(references).kneighbors(points)
        return np.log((distance**2)[:, k == 6 :].mean(1) + LEAST) / 2  # of six, one is the row

    odd, normals = space[0][:n_odd], space[0][n_odd:]
    own, new = half_log(normals, normals, 6), half_log(space[1], normals, 5)
    if n_odd:
        truth = np.repeat([0, 1], [len(own), n_odd])
        auc = roc_auc_score(truth, np.append(own, half_log(odd, normals, 5)))
        assert neighbours.novelty == pytest.approx(max(0, 2 * auc - 1))
        # In a space where columns weigh differently, both distances.
        found_space = neighbours.normals.space
        stretch = np.sqrt(found_space.weight.numpy())[found_space.owner]
        odd, normals, fresh_points = odd * stretch, normals * stretch, space[1] * stretch
        own, new = half_log(normals, normals, 6), half_log(fresh_points, normals, 5)
        k = min(2, n_odd)
        near, new_near = half_log(normals, odd, k), half_log(fresh_points, odd, k)
        scores = [
            ((to - near.mean()) - (of - own.mean())) / (near - own).std()
            - neighbours.novelty * (of - own.mean()) / own.std()
            for of, to in ((own, near), (new, new_near))
        ]
        own, new = -scores[0], -scores[1]
    expected = (new - own.mean()) / own.std()
    np.testing.assert_allclose(score(neighbours, fresh), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("n_odd", [1, 6])
def test_columns_weigh_by_how_far_labelled_anomalies_are_from_normals_next_to_them(n_odd):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(N, 4)), columns=list("abcd"))
    frame.loc[: n_odd - 1, ["a", "b"]] += [9, 1.5]
    _, rows, neighbours = found(frame, n_odd)
    inputs = rows.inputs.astype(np.float64)
    space = standardised(inputs, inputs[n_odd:])
    odd, normals = space[:n_odd], space[n_odd:]
    nearest = NearestNeighbors(n_neighbors=6).fit(normals)
    apart = [
        ((points[:, None] - normals[nearest.kneighbors(points)[1][:, own : own + 5]]) ** 2).mean(1)
        + LEAST / 4
        for points, own in ((odd, 0), (normals, 1))
    ]
    typical = apart[1].mean(0) * np.exp(np.log(apart[1].sum(1)).mean()) / apart[1].sum(1).mean()
    ratio = np.minimum(apart[0] / (typical + 1e-3), 20).sum(0)
    expected = ((10 + ratio) / (10 + n_odd)) ** 2
    weight = neighbours.normals.space.weight
    np.testing.assert_allclose(weight, expected / expected.mean(), rtol=1e-3)
    first, second, *rest = weight
    assert first > second > max(rest)


def test_without_labels_columns_weigh_alike_and_with_a_useless_one_a_row_is_found_as_well():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(600, 20)))
    odd = np.arange(600) < 106  # the first six have labels
    frame.loc[odd, 0] += 3
    normals, labels, tested = np.arange(200, 600), np.arange(6), np.arange(6, 200)
    encoder, rows = encoded(frame.rename(columns="c{}".format))
    fits = {n: Neighbours.fit(encoder, rows, (normals, labels[:n]), CPU) for n in (0, 6)}
    assert (fits[0].normals.space.weight == 1).all()
    plain = replace(fits[6], normals=fits[0].normals, anomalies=None)
    plain, weighed = (
        roc_auc_score(odd[tested], score(one, rows.take(tested))) for one in (plain, fits[6])
    )
    assert weighed > plain + 0.1


@pytest.mark.parametrize("kind", ["category", "count", "positive"])
def test_numbers_lie_where_they_do_however_networks_read_them(kind):
    rng = np.random.default_rng(0)
    counts, fresh = rng.integers(1, 9, (N, 3)).astype(float), rng.integers(1, 9, (50, 3))
    names = ["stars", "rooms", "floors"]
    scores = []
    for overrides in (dict.fromkeys(names, kind), dict.fromkeys(names, "real")):
        table = Table.of(pd.DataFrame(counts, columns=names))
        schema = infer_schema(table, overrides)
        encoder = Encoder.fit(schema, schema.match(table))
        numbers = np.arange(N), np.arange(0)
        neighbours = Neighbours.fit(encoder, encoder.encode(schema.match(table)), numbers, CPU)
        new = schema.match(Table.of(pd.DataFrame(fresh.astype(float), columns=names)))
        scores.append(score(neighbours, encoder.encode(new)))
    np.testing.assert_allclose(*scores, rtol=1e-4, atol=1e-4)


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
def test_a_number_that_a_column_cannot_hold_is_odder_the_further_away_it_is(kind, usual, odd):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.choice(usual, (N, 4)).astype(float), columns=[*"abcd"])
    table = Table.of(frame)
    schema = infer_schema(table, dict.fromkeys(frame, kind))
    encoder = Encoder.fit(schema, schema.match(table))
    rows = encoder.encode(schema.match(table))
    for numbers in ((np.arange(N), np.arange(0)), (np.arange(N_ODD, N), np.arange(N_ODD))):
        neighbours = Neighbours.fit(encoder, rows, numbers, CPU)
        new = pd.concat([frame.head(1)] * 4, ignore_index=True)
        new.loc[1:, "b"] = odd
        encoded = encoder.encode(schema.match(Table.of(new)))
        assert encoded.impossible.sum() == 3
        contributions = parts(neighbours, encoded)
        assert (np.diff(contributions.sum(1)) > 0).all()
        assert (contributions[1:].argmax(1) == 1).all()


@pytest.mark.parametrize("kind", ["category", "count", "positive", "binary"])
def test_normals_that_a_column_cannot_hold_do_not_widen_it(kind):
    rng = np.random.default_rng(0)
    usual = [0, 1] if kind == "binary" else range(1, 9)
    frame = pd.DataFrame(1e-20 ** (kind == "positive") * rng.choice(usual, (N, 2)), columns=[*"ab"])
    table = Table.of(frame)
    schema = infer_schema(table, dict.fromkeys(frame, kind))
    encoder = Encoder.fit(schema, schema.match(table))
    frame.loc[:1, "a"] = [-1e300, -1e6]
    rows = encoder.encode(schema.match(Table.of(frame)))
    numbers = np.arange(N), np.arange(0)
    spaces = [
        Neighbours.fit(
            encoder, rows.take(np.arange(n, N)), (numbers[0][n:] - n, numbers[1]), CPU
        ).normals.space
        for n in (0, 2)
    ]
    np.testing.assert_allclose(spaces[0].scale, spaces[1].scale, rtol=0.02)
    np.testing.assert_allclose(
        spaces[0].mean, spaces[1].mean, atol=0.02 * float(spaces[1].scale[0])
    )
    neighbours = Neighbours.fit(encoder, rows, numbers, CPU)
    assert np.isfinite(score(neighbours, rows)).all()
    assert torch.isfinite(Space.fit(encoder, Rows.of(rows)).numbers.points(Rows.of(rows))).all()


def test_levels_that_anomalies_alone_have_do_not_move_gaps():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"stars": rng.integers(0, 9, N) * 1.0, "x": rng.normal(size=N)})
    gaps = frame.mask(rng.random(frame.shape) < 0.1)
    spaces = []
    for far in (8.0, 1e6):
        gaps.loc[: N_ODD - 1, "stars"] = far
        table = Table.of(gaps)
        schema = infer_schema(table, {"stars": "category", "x": "real"})
        encoder = Encoder.fit(schema, schema.match(table))
        spaces.append(
            Space.fit(
                encoder, Rows.of(encoder.encode(schema.match(table)).take(np.arange(N_ODD, N)))
            )
        )
    one, other = ((float(space.mean[0]), float(space.scale[0])) for space in spaces)
    np.testing.assert_allclose(one, other, rtol=0.1)


def test_a_column_that_labels_say_nothing_of_cannot_hide_an_impossible_number():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 9, (N, 3)).astype(float), columns=[*"abc"])
    frame.loc[: N_ODD - 1, "a"] = 20.0
    table = Table.of(frame)
    schema = infer_schema(table, dict.fromkeys(frame, "count"))
    encoder = Encoder.fit(schema, schema.match(table))
    rows = encoder.encode(schema.match(table))
    neighbours = Neighbours.fit(encoder, rows, (np.arange(N_ODD, N), np.arange(N_ODD)), CPU)
    assert float(neighbours.normals.space.weight[1]) < 0.5
    new = frame.tail(1).assign(b=-1000.0)
    rows = Rows.of(encoder.encode(schema.match(Table.of(new))))
    distances = neighbours.normals.distances(rows, None)
    assert float(distances[0, 1]) > (LIMIT - 2) ** 2


@pytest.mark.parametrize("kind", ["real", "positive", "count", "category"])
def test_gaps_of_normals_move_none_of_their_neighbours(kind):
    rng = np.random.default_rng(0)
    full = pd.DataFrame({"level": rng.integers(1000, 1012, N) * 1.0, "x": rng.normal(size=N)})
    full.loc[: N_ODD - 1, "level"] = 1011.0
    gaps = full.mask(rng.random(full.shape) < 0.2)
    neighbours = []
    for frame in (full, gaps):
        table = Table.of(frame)
        schema = infer_schema(table, {"level": kind, "x": "real"})
        encoder = Encoder.fit(schema, schema.match(table))
        rows = encoder.encode(schema.match(table))
        neighbours.append(
            Neighbours.fit(encoder, rows, (np.arange(N_ODD, N), np.arange(N_ODD)), CPU)
        )
    one, other = neighbours
    # Gaps lie at the mean, where they narrow the spread by a tenth, and move nothing else.
    mean, scale = float(one.normals.space.mean[0]), float(one.normals.space.scale[0])
    assert float(other.normals.space.scale[0]) == pytest.approx(scale, rel=0.2)
    assert float(other.normals.space.mean[0]) == pytest.approx(mean, abs=0.2 * scale)


@pytest.mark.parametrize("unit", [1e-12, 1e-7, 1e9])
def test_the_unit_of_a_positive_column_does_not_matter(unit):
    rng = np.random.default_rng(0)
    sizes, scores = rng.lognormal(size=N), []
    for factor in (1, unit):
        table = Table.of(pd.DataFrame({"size": factor * sizes, "x": sizes}))
        schema = infer_schema(table, {"size": "positive", "x": "real"})
        encoder = Encoder.fit(schema, schema.match(table))
        rows = encoder.encode(schema.match(table))
        neighbours = Neighbours.fit(encoder, rows, (np.arange(N_ODD, N), np.arange(N_ODD)), CPU)
        scores.append(score(neighbours, rows))
    np.testing.assert_allclose(*scores, rtol=1e-3, atol=1e-3)


def test_normals_that_are_not_their_own_neighbours_have_mean_0_and_spread_1():
    _, rows, neighbours = found(shops())
    numbers = np.arange(N_ODD, N)
    z = score(neighbours, rows.take(numbers), rows.ids()[numbers])
    assert z.mean() == pytest.approx(0, abs=1e-9)
    assert z.std() == pytest.approx(1, abs=1e-9)
    assert score(neighbours, rows.take(numbers)).mean() < -0.1  # each is its nearest


@pytest.mark.parametrize("gaps", [0, 0.3, 1])
@pytest.mark.parametrize("n_odd", [0, 1, 6])
def test_contributions_add_up_to_the_logarithms_of_the_distances(gaps, n_odd):
    encoder, _, neighbours = found(shops(n_odd=n_odd, gaps=0.2), n_odd)
    _, fresh = encoded(shops(50, seed=1, gaps=gaps), encoder)
    strange = shops(3, seed=2).assign(size=[1e300, None, -5], city="Paris", visits=-1.0)
    for rows in (fresh, encoded(strange, encoder)[1]):
        z = 0
        sides = {neighbours.normals: neighbours.normal_weight, neighbours.anomalies: -1}
        for side, weight in sides.items():
            if side is not None:
                distance = side.distances(Rows.of(rows), None).sum(1)
                z += weight * (distance / side.typical.sum()).log().numpy() / 2
        expected = z / neighbours.spread
        np.testing.assert_allclose(score(neighbours, rows), expected, rtol=1e-9, atol=1e-9)
        assert np.isfinite(parts(neighbours, rows)).all()


@pytest.mark.parametrize("side", ["normals", "anomalies"])
def test_a_row_left_out_is_as_if_it_had_never_been_there(side):
    _, rows, neighbours = found(shops(gaps=0))
    number = {"normals": 40, "anomalies": 2}[side]
    one = rows.take([number])
    known = getattr(neighbours, side)
    landmarks = known.landmarks
    own = rows.ids()[[number]]
    others = landmarks.ids != own
    points = landmarks.points[torch.from_numpy(others)]
    removed = replace(landmarks, points=points, ids=landmarks.ids[others])
    without = replace(neighbours, **{side: replace(known, landmarks=removed)})
    left_out = score(neighbours, one, own)
    np.testing.assert_array_equal(left_out, score(without, one))
    assert not np.array_equal(left_out, score(neighbours, one))


def test_copies_of_a_row_are_left_out_with_it():
    table = shops(gaps=0)
    _, rows, neighbours = found(table)
    copied = pd.concat([table] + 8 * [table.iloc[[50]]], ignore_index=True)
    _, more, with_copies = found(copied)
    alone, beside_copies = (
        one.normals.distances(Rows.of(some.take([50])), some.ids()[[50]])
        for one, some in ((neighbours, rows), (with_copies, more))
    )
    # The copies move the mean and the scale of the columns a little.
    np.testing.assert_allclose(beside_copies, alone, rtol=0.2)
    fresh = with_copies.normals.distances(Rows.of(more.take([50])), None)
    assert fresh.sum() < 0.01 * beside_copies.sum()


@pytest.mark.slow
@given(st.permutations(range(40)), st.integers(1, 40))
@settings(max_examples=20)
def test_a_row_scores_the_same_in_any_company(detector, order, n):
    table = shops(40, seed=5)
    scores = detector.anomaly_score(table)
    chosen = list(order)[:n]
    np.testing.assert_array_equal(detector.anomaly_score(table.iloc[chosen]), scores[chosen])


def test_a_missing_cell_adds_nothing_and_a_row_without_any_is_typical():
    encoder, _, neighbours = found(shops())
    fresh = shops(60, seed=3, gaps=0.4)
    _, rows = encoded(fresh, encoder)
    contributions = parts(neighbours, rows)
    assert (contributions[fresh.isna().to_numpy()] == 0).all()
    _, nothing = encoded(fresh.mask(np.ones(fresh.shape, dtype=bool), None), encoder)
    np.testing.assert_allclose(score(neighbours, nothing), 0, atol=1e-12)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_leaving_cells_out_makes_rows_no_more_normal_than_typical_ones(share):
    encoder, _, neighbours = found(shops(1000), n_odd=0)
    fresh = shops(500, seed=3, n_odd=0, gaps=0)
    gaps = np.random.default_rng(0).random(fresh.shape) < share
    whole, holed = (
        score(neighbours, encoded(table, encoder)[1]) for table in (fresh, fresh.mask(gaps, None))
    )
    assert np.median(holed) > np.median(whole) - 0.1
    assert holed.min() >= whole.min()


@pytest.mark.parametrize("column", COLUMNS)
def test_a_gap_where_there_was_none_and_a_value_outside_the_domain_are_far_away(column):
    encoder, _, neighbours = found(shops(gaps=0))
    fresh = shops(30, seed=3, n_odd=0, gaps=0)
    _, rows = encoded(fresh.assign(**{column: None}), encoder)
    contributions = parts(neighbours, rows)
    assert (contributions[:, COLUMNS.index(column)] > 0.5).all()
    if column == "city":
        _, rows = encoded(fresh.assign(city="Paris"), encoder)
        np.testing.assert_array_equal(parts(neighbours, rows), contributions)


def test_wide_tables_keep_fewer_rows(monkeypatch):
    assert n_rows_at_most(20) == 5000
    assert n_rows_at_most(2000) == 8 * 2**20 // 8000
    assert n_rows_at_most(10**9) == 5
    monkeypatch.setattr(module, "_MAX_BYTES", 4 * 5 * 50)  # five inputs
    fitted = small(max_epochs=1).fit(shops(gaps=0), np.arange(N) < N_ODD)
    kept = fitted.model_.parts["neighbours"]
    assert len(kept.normals.landmarks.points) == 50
    assert len(kept.anomalies.landmarks.points) == N_ODD
    assert kept.n_rows == fitted.model_.n_compared == 50 + N_ODD


# In a detector


@pytest.mark.parametrize(("n_labels", "trees"), [(0, 0), (2, 0), (4, 2 / 3), (6, 1)])
def test_the_score_is_the_sum_of_its_parts(n_labels, trees):
    detector = small(max_epochs=2).fit(shops(), np.arange(N) < n_labels)
    fresh = shops(50, seed=7)
    model = detector.model_
    encoded = model.encode(Table.of(fresh))
    alone = Scorer(model.encoder, model.ensemble)
    near = model.parts["neighbours"]
    found = [alone.score(encoded), score(near, encoded), 0.0]
    assert ("trees" in model.parts) == (n_labels >= 3)
    if "trees" in model.parts:
        before = {"density": alone.contributions(encoded)}
        found[2] = model.parts["trees"].contributions(Rows.of(encoded), before).sum(1)
    if not n_labels:
        assert near.novelty == 0.5
    parts = (1, 1 + 9 * near.novelty, trees)
    expected = sum(weight * part for weight, part in zip(parts, found, strict=True)) / sum(parts)
    np.testing.assert_allclose(model.score(encoded), expected, atol=1e-5)
    np.testing.assert_array_equal(detector.score_samples(fresh), alone.log_density(encoded))


def test_the_best_member_has_no_companion_and_all_passes():
    best = small(selection="best", n_orderings=3).fit(shops(), np.arange(N) < N_ODD)
    assert list(best.model_.parts) == ["density"]
    (member,) = best.model_.ensemble.members
    assert member.passes == (0, 1, 2)
    fresh = shops(20, seed=7)
    np.testing.assert_allclose(best.anomaly_score(fresh), -best.score_samples(fresh), rtol=1e-6)


def test_passes_are_shared_out_in_turn():
    assert [own_passes(number, 2, "average") for number in range(4)] == [(0,), (1,), (1,), (0,)]
    assert [own_passes(number, 3, "average") for number in range(4)] == [(0,), (1,), (2,), (1,)]
    assert own_passes(4, 1, "average") == (0,)
    assert own_passes(4, 3, "best") == (0, 1, 2)


def test_members_take_their_own_passes_and_a_row_as_many_in_all():
    fitted = small(n_orderings=5, max_epochs=1).fit(shops(), np.arange(N) < N_ODD)
    for member in fitted.model_.ensemble.members:
        index = 2 * member.fold + (0, 10).index(member.lam)
        assert member.passes == own_passes(index, 5, "average")
        assert member.substitutes.typical.shape == (1, 3)
    assert fitted.model_.ensemble.passes_per_row == len(fitted.model_.ensemble.members)


@pytest.mark.slow
def test_rows_that_stand_behind_thresholds_are_neighbours_of_others_but_with_best():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(300, 2)), columns=["a", "b"])
    fitted = small(max_epochs=1, hidden=(4,)).fit(X, np.arange(300) < 4)
    near = fitted.model_.parts["neighbours"]
    assert sorted(near.normals.landmarks.ids) == sorted(fitted._plan.ids[4:])
    assert near.anomalies.landmarks.ids.tolist() == fitted._plan.ids[:4].tolist()
    assert len(fitted.model_.calibration.normal_scores) == 296
    assert fitted.model_.calibration.guarantee.startswith("approximate")
    best = small(max_epochs=1, hidden=(4,), selection="best").fit(X, np.arange(300) < 4)
    assert best.model_.calibration.guarantee.startswith("exact")


@pytest.mark.slow
def test_training_rows_are_scored_without_themselves(detector):
    model, plan = detector.model_, detector._plan
    scores = held_out_scores(plan, model.scorer)
    np.testing.assert_array_equal(detector.decision_scores_, scores)
    seen = detector.anomaly_score(shops())
    rows = plan.encoded.take(np.arange(N))
    neighbours = model.parts["neighbours"]
    near = score(neighbours, rows) - score(neighbours, rows, rows.ids())
    complete = shops().notna().all(axis=1).to_numpy()
    assert (near[:N_ODD][complete[:N_ODD]] > 0).all()  # each is a known anomaly to itself
    assert (near[N_ODD:][complete[N_ODD:]] < 0).all()
    assert scores[N_ODD:].mean() > seen[N_ODD:].mean()
    unseen = model.calibration.anomaly_scores
    assert len(unseen) == N_ODD
    assert unseen.max() < seen[:N_ODD].max()


@pytest.mark.slow
def test_unlabelled_rows_that_are_distrusted_are_no_neighbours():
    table = shops(gaps=0, n_odd=0)
    table.loc[:9, "size"] = 60.0 + np.arange(10) / 100
    quick = {"max_epochs": 30, "learning_rate": 0.01}
    robust, trusting = (small(unlabelled=how, **quick).fit(table) for how in ("robust", "normal"))
    hidden = robust._plan.ids[:10]
    assert np.isin(hidden, trusting.model_.parts["neighbours"].normals.landmarks.ids).all()
    assert not np.isin(hidden, robust.model_.parts["neighbours"].normals.landmarks.ids).any()
    assert len(robust.model_.parts["neighbours"].normals.landmarks.points) > 0.9 * (N - 10)


@pytest.mark.slow
def test_an_update_compares_with_the_rows_at_hand(detector, tmp_path):
    detector.save(tmp_path / "m.fewlier")
    updated = type(detector).load(tmp_path / "m.fewlier")
    more = shops(30, seed=8)
    updated.update(more, np.arange(30) < N_ODD)
    near = updated.model_.parts["neighbours"]
    n_normals = N - N_ODD + 24 - 1  # one is a copy of a row of the fit
    assert (len(near.normals.landmarks.points), len(near.anomalies.landmarks.points)) == (
        n_normals,
        2 * N_ODD,
    )


@pytest.mark.slow
def test_rows_of_the_fit_are_scored_without_themselves_after_an_update_too():
    live = small(max_epochs=1).fit(shops(), np.arange(N) < N_ODD)
    before = live.decision_scores_
    live.update(shops(30, seed=8), np.arange(30) < N_ODD)
    after, in_sample = live.decision_scores_, live.anomaly_score(shops())
    # In-sample, every normal is its own nearest, and every anomaly is a known one.
    assert after[N_ODD:].mean() > in_sample[N_ODD:].mean() + 0.2
    assert after[:N_ODD].mean() < in_sample[:N_ODD].mean()
    assert np.corrcoef(after, before)[0, 1] > 0.9
    assert abs(after[N_ODD:].mean() - before[N_ODD:].mean()) < 0.2
    np.testing.assert_array_equal(live.labels_, after > live.threshold_)


STRANGE = {
    "one column": lambda t: t[["size"]],
    "a category": lambda t: t[["city"]],
    "constant": lambda t: t.assign(same=1.0),
    "all constant": lambda t: pd.DataFrame({"a": np.ones(len(t)), "b": ["x"] * len(t)}),
    "empty column": lambda t: t.assign(empty=np.nan),
    "nothing": lambda t: t[["size"]].assign(size=np.nan),
    "twins": lambda t: t.iloc[np.arange(len(t)) // 10].reset_index(drop=True),
    "few normals": lambda t: t.head(N_ODD + 3),
    "one normal": lambda t: t.head(2),
}


@pytest.mark.slow
@pytest.mark.parametrize("n_labels", [0, N_ODD])
@pytest.mark.parametrize("change", STRANGE.values(), ids=STRANGE)
@pytest.mark.filterwarnings("ignore:A false-alarm rate:fewlier.FewlierWarning")
def test_tables_of_any_shape_are_fitted_saved_and_explained(change, n_labels, tmp_path):
    table = change(shops(gaps=0.05))
    n_labels = min(n_labels, len(table) - 1)
    quick = small(max_epochs=1, hidden=(4,)).fit(table, np.arange(len(table)) < n_labels)
    assert (quick.model_.parts["neighbours"].anomalies is None) == (n_labels == 0)
    scores = quick.anomaly_score(table)
    assert np.isfinite(scores).all()
    assert np.isfinite(quick.decision_scores_).all()
    np.testing.assert_allclose(quick.explain(table).score, scores, rtol=1e-9, atol=1e-6)
    quick.save(tmp_path / "m.fewlier")
    loaded = type(quick).load(tmp_path / "m.fewlier")
    np.testing.assert_array_equal(loaded.anomaly_score(table), scores)


@pytest.mark.slow
def test_a_member_that_knows_normals_has_a_share_and_says_what_was_expected():
    fitted = small(lambdas=(0, 1e4), max_epochs=20).fit(shops(gaps=0), np.arange(N) < N_ODD)
    model = fitted.model_
    lambdas = [member.lam for member in model.ensemble.members]
    weights = zip(lambdas, model.ensemble.weights, strict=True)
    assert set(weights) == {(0, 0.125), (1e4, 0.375)}
    assert model.ensemble.likeliest.lam == 0


def test_one_label_is_enough_to_find_its_like():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 6))
    X[:1, :2] += 2.5
    fresh = rng.normal(size=(400, 6))
    fresh[:100, :2] += 2.5
    is_odd = np.arange(400) < 100
    model = small(max_epochs=2).fit(X, np.arange(400) < 1)
    without = small(max_epochs=2).fit(X[1:])
    found, blind = (roc_auc_score(is_odd, d.anomaly_score(fresh)) for d in (model, without))
    assert found > max(0.85, blind)


@pytest.mark.parametrize(("n_labels", "unranked"), [(1, {0, 1}), (4, {0, 1}), (5, {0}), (6, set())])
def test_members_are_ranked_only_where_three_anomalies_are_held_out(n_labels, unranked):
    lambdas = (0, 1, 10)
    fitted = small(max_epochs=1, lambdas=lambdas).fit(shops(gaps=0), np.arange(N) < n_labels)
    ensemble = fitted.model_.ensemble
    for fold in (0, 1):
        weights = [
            w for m, w in zip(ensemble.members, ensemble.weights, strict=True) if m.fold == fold
        ]
        if fold in unranked:
            assert weights == [1 / 6] * 3
        else:
            assert len(weights) <= 2
