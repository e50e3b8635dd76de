from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewlier.score.model import shares
from fewlier.score.shares import NEIGHBOURS, average, best, spaced


@pytest.mark.parametrize(
    ("criteria", "epochs", "lambdas", "winner"),
    [
        ([0.7, 0.9, 0.8], [5, 9, 1], [0, 1, 10], 1),
        ([0.9, 0.9, 0.8], [5, 4, 1], [0, 1, 10], 1),  # the earlier epoch
        ([0.9, 0.9, 0.9], [4, 4, 5], [10, 1, 0], 1),  # then the smaller lambda
        ([0.9, 0.9], [4, 4], [1, 1], 0),  # then the first
        ([np.nan, 0.2, -np.inf], [1, 2, 3], [0, 1, 10], 1),
        ([-3.5], [7], [100], 0),
    ],
)
def test_the_best_member_takes_all(criteria, epochs, lambdas, winner):
    weights = best(criteria, epochs, lambdas)
    np.testing.assert_array_equal(weights, np.arange(len(criteria)) == winner)


@given(
    members=st.lists(st.tuples(st.floats(-1e3, 1e3), st.floats(0, 1e4)), min_size=1),
    n_anomalies=st.integers(3, 10_000),
)
def test_an_average_is_of_the_best_and_of_the_smallest_lambda(members, n_anomalies):
    criteria, lambdas = np.array(members).T
    weights = average(criteria, lambdas, n_anomalies)
    assert weights.sum() == pytest.approx(1)
    kept = np.flatnonzero(weights)
    assert criteria.max() in criteria[kept]
    assert lambdas.min() in lambdas[kept]
    assert len(kept) <= 2
    assert weights[criteria == criteria.max()].sum() >= n_anomalies / (n_anomalies + 2) - 1e-9


@pytest.mark.parametrize(
    ("criteria", "lambdas", "expected"),
    [
        ([0.7, 0.9, 0.8], [0, 1, 10], [0.25, 0.75, 0]),
        ([0.9, 0.7, 0.8], [0, 1, 10], [1, 0, 0]),
        ([0.9, 0.8, 0.9], [100, 1, 10], [0, 0.25, 0.75]),  # the smaller lambda of the best
        ([-np.inf, 0.5], [0, 1], [0.25, 0.75]),
        ([-3.5], [100], [1]),
    ],
)
def test_an_average_weighs_the_best_most(criteria, lambdas, expected):
    np.testing.assert_allclose(average(criteria, lambdas, 6), expected)


@pytest.mark.parametrize(
    ("lambdas", "kept"),
    [
        ([0, 0.1, 1, 10, 100, 1e3, 1e4], [0, 10, 1e4]),
        ([10, 0, 1], [0, 1, 10]),
        ([5, 3], [3, 5]),
        ([7], [7]),
    ],
)
def test_members_that_nothing_tells_apart_are_spaced_and_weigh_the_same(lambdas, kept):
    weights = spaced(lambdas)
    assert sorted(np.array(lambdas)[weights > 0]) == kept
    np.testing.assert_allclose(weights[weights > 0], 1 / len(kept))


def test_what_is_learned_from_labels_counts_more_with_more_of_them():
    found = [shares(n) for n in range(60)]
    assert found[0] == found[1] == {"neighbours": NEIGHBOURS, "trees": 0, "rules": 0}
    grown = [own["trees"] + own["rules"] for own in found]
    assert grown[2] == pytest.approx(2 / 7.2)
    assert all(own["trees"] == pytest.approx(own["rules"]) for own in found)
    assert all(a < b < 5 / 8 for a, b in pairwise(grown[1:]))


@given(n=st.integers(0, 10_000))
def test_the_density_has_its_share_of_what_the_labels_leave(n):
    own = shares(n)
    left = 1 - own["trees"] - own["rules"]
    assert 1 - sum(own.values()) == pytest.approx((1 - NEIGHBOURS) * left)
    assert min(own["neighbours"], left) > 0
