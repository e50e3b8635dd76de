"""What both parts do that are learned from the labels."""

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
import torch

from fewlier.density.rows import Rows
from fewlier.score.learned.supervised import Bags, Features
from fewlier.score.learned.trees import Rules, Trees
from fewlier.score.neighbours.space import NumericColumns
from fewlier.score.part import HeldOut, Known

N, N_ODD = 300, 8
IDS = np.arange(1000, 1000 + N)
each_kind = pytest.mark.parametrize("kind", [Trees, Rules])


def made(n=N, n_odd=N_ODD, seed=0):
    """Return rows of six inputs; the first are odd in the third."""
    x = np.random.default_rng(seed).normal(size=(n, 6)).astype(np.float32)
    x[:n_odd, 2] += 2
    return x


def encoded(x):
    """Return rows of four columns, the first and the last with two inputs, as tensors."""
    filled = torch.ones(len(x), 4, dtype=torch.bool)
    return Rows(torch.from_numpy(x), torch.zeros(len(x), 4), filled, ~filled)


def features():
    none = torch.zeros(0, dtype=torch.int64)
    numbers = NumericColumns(none, none, none, *(torch.zeros(0, 1), torch.zeros(0), torch.zeros(0)))
    return Features(numbers, torch.tensor([0, 0, 1, 2, 3, 3]))


def neighbours(x):
    """Return what neighbours might contribute: the further a row is from 0, the more."""
    sizes = np.abs(x.astype(np.float64)) - 0.8
    columns = np.stack([sizes[:, :2].sum(1), sizes[:, 2], sizes[:, 3], sizes[:, 4:].sum(1)], 1)
    return torch.from_numpy(np.pad(columns, ((0, 0), (0, 1))))


def learn(kind, x=None, ids=IDS, n_odd=N_ODD, seed=1):
    x = made() if x is None else x
    known = Known(None, encoded(x), ids, np.arange(len(x)) < n_odd, seed)
    with patch.object(Features, "from_encoder", lambda *_: features()):
        return kind.fit(known, {"neighbours": neighbours(x)})


@pytest.fixture(scope="module")
def trees():
    return learn(Trees)


@pytest.fixture(scope="module")
def rules():
    return learn(Rules)


@pytest.fixture(params=["trees", "rules"])
def part(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def bags(monkeypatch):
    """Return the bags that are learned from next, with what is learned from each alone."""
    found = []

    def keep(kind):
        learn = kind.learn

        def learn_and_keep(bags, n_features, device):
            bags = list(bags)
            found.extend((bag, learn([bag], n_features, device)) for bag in bags)
            return learn(bags, n_features, device)

        monkeypatch.setattr(kind, "learn", learn_and_keep)

    for kind in (Trees, Rules):
        keep(kind)
    return found


def held_by(bags, x):
    """Say which bags hold rows, or copies of them, by looking for their inputs, shape (n, b)."""
    return np.array([[(bag.x[:, :6] == row).all(1).any() for bag, _ in bags] for row in x])


def contributions(part, x, ids=None):
    found = part.contributions(encoded(x), {"neighbours": neighbours(x)}, ids and HeldOut(*ids))
    assert found.shape == (len(x), 5)
    assert (found[:, -1] == 0).all()
    return found[:, :-1].numpy()


def score(part, x, ids=None):
    return contributions(part, x, ids).sum(1)


def test_what_is_planted_is_found_and_goes_to_its_column(part):
    fresh = made(seed=3)
    z = score(part, fresh)
    assert (z[:N_ODD].mean() - z[N_ODD:].mean()) / z[N_ODD:].std() > 1
    columns = contributions(part, fresh)
    assert (columns[:N_ODD].mean(0) - columns[N_ODD:].mean(0)).argmax() == 1


def test_normals_that_bags_do_not_hold_are_standardised(part):
    z = uncompressed(score(part, made(), (IDS,)))[N_ODD:]
    assert z.mean() == pytest.approx(0, abs=1e-9)
    assert z.std() == pytest.approx(1, abs=1e-9)


def uncompressed(z):
    """Undo the logarithm that scores beyond three are compressed by."""
    size = np.abs(z)
    return np.sign(z) * np.where(size > 3, 2 + np.exp(size - 3), size)


def test_scores_beyond_three_grow_with_the_logarithm_and_contributions_with_them(part):
    x = made()
    z, small = score(part, x), replace(part, spread=part.spread * 1e6)
    linear = 1e6 * score(small, x)
    assert np.abs(linear).max() > 4
    np.testing.assert_allclose(uncompressed(z), linear, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(contributions(part, x).sum(1), z, rtol=1e-9, atol=1e-9)


def test_labelled_anomalies_look_odder_to_bags_that_hold_them(part):
    unseen, seen = score(part, made(), (IDS,)), score(part, made())
    assert seen[:N_ODD].mean() > unseen[:N_ODD].mean()


def test_rows_that_no_bag_holds_are_scored_by_all(part):
    x = made(seed=4)
    np.testing.assert_allclose(score(part, x, (np.arange(N),)), score(part, x), atol=1e-9)


@pytest.mark.slow
@each_kind
def test_a_row_of_the_fit_is_scored_by_the_bags_that_do_not_hold_it(kind, bags):
    part, x = learn(kind), made()
    own = features().read(encoded(x), neighbours(x))
    alone = np.stack([learned.gains(own).sum(1) for _, learned in bags], 1)
    can_judge = ~held_by(bags, x)
    assert can_judge[N_ODD:].any(1).all()
    judged = can_judge.any(1)  # an anomaly that is in all bags is known to all
    mean = np.average(alone[judged], axis=1, weights=can_judge[judged])
    normals = mean[-(N - N_ODD) :]
    expected = (mean - normals.mean()) / normals.std()
    found = score(part, x, (IDS,))
    np.testing.assert_allclose(uncompressed(found[judged]), expected, atol=1e-9)


@each_kind
@pytest.mark.parametrize("n_normal", [2, 3, 40, pytest.param(700, marks=pytest.mark.slow)])
def test_every_normal_is_in_half_of_the_bags_at_most(kind, n_normal, bags):
    x = made(N_ODD + n_normal)
    learn(kind, x, np.arange(len(x)))
    holds = held_by(bags, x[N_ODD:])
    assert (holds.mean(1) <= 1 / 2).all()
    assert holds.any(0).all(), "every bag holds normals"
    n_drawn = min(kind.n_drawn, (n_normal + 1) // 2)
    assert (holds.sum(0) <= n_drawn).all()
    assert holds.sum(0).max() == n_drawn
    for bag, _ in bags:
        assert bag.y.sum() == N_ODD
        assert bag.weight[bag.y].sum() == pytest.approx(bag.weight[~bag.y].sum())


@pytest.mark.slow
@each_kind
def test_copies_of_a_row_are_in_the_same_bags(kind, bags):
    x = made()
    ids = np.r_[IDS[:N_ODD], IDS[N_ODD] + np.arange(N - N_ODD) % 60]  # about five of each
    x[N_ODD:] = x[N_ODD : N_ODD + 60][np.arange(N - N_ODD) % 60]
    part = learn(kind, x, ids)
    assert (held_by(bags, x[N_ODD:]).mean(1) <= 1 / 2).all()
    z = score(part, x, (ids,))[N_ODD:]
    np.testing.assert_allclose(z[60:120], z[:60], atol=1e-9)


@each_kind
def test_normals_that_are_all_alike_are_told_from_anomalies(kind):
    x = made()
    x[N_ODD:] = x[N_ODD]
    part = learn(kind, x, np.r_[IDS[:N_ODD], np.full(N - N_ODD, IDS[N_ODD])])
    assert np.isfinite(score(part, x, (IDS,))).all()
    assert score(part, x)[:N_ODD].min() > score(part, x)[N_ODD]


@each_kind
def test_one_normal_and_two_anomalies_are_enough(kind):
    x = made(3, 2)
    z = score(learn(kind, x, IDS[:3], n_odd=2), x)
    assert np.isfinite(z).all()


@pytest.mark.slow
@each_kind
def test_the_same_seed_learns_the_same(kind):
    one, same, other = (score(learn(kind, seed=seed), made(seed=3)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(same, one)
    assert np.abs(other - one).max() > 0.01


def test_numbers_that_networks_cannot_hold_are_read_as_the_largest(part):
    x = made(4, 0, seed=5)
    x[:2, 3], x[2:, 3] = (1e9, 1e30), (-1e9, -1e30)
    x[1], x[3] = np.where(np.arange(6) == 3, x[1], x[0]), np.where(np.arange(6) == 3, x[3], x[2])
    before = {"neighbours": torch.zeros(4, 5).double()}
    z = part.contributions(encoded(x), before).sum(1)
    assert z.isfinite().all()
    assert (z[0], z[2]) == (z[1], z[3])


def test_gains_by_the_neighbours_go_to_columns_as_the_neighbours_contributions_do():
    gains = torch.tensor([[1.0, 2, 3, 4, 5, 6, 8], [0, 0, 0, 0, 0, 0, 8]]).double()
    by_neighbours = torch.tensor([[1.0, -2, 1, 0, 0], [0, 0, 0, 0, 0]]).double()
    found = features().split(gains, by_neighbours)
    np.testing.assert_allclose(found, [[3 + 2, 3 + 4, 4 + 2, 11], [2, 2, 2, 2]])
    np.testing.assert_allclose(found.sum(1), gains.sum(1))


def test_bags_that_do_not_hold_a_row_weigh_alike_and_1_on_average():
    draws = [np.array([0, 1]), np.array([1, 2]), np.array([2, 2]), np.array([4])]
    bags = Bags.from_draws(np.array([30, 10, 20, 99, 10]), draws)  # the last is a copy
    found = bags.weights(np.array([10, 20, 30, 99, 5, 100]))
    others = np.ones((3, 4))  # what no bag holds
    expected = [[0, 0, 4, 0], [2, 0, 0, 2], [0, 4 / 3, 4 / 3, 4 / 3]]
    np.testing.assert_allclose(found, np.vstack([expected, others]))
