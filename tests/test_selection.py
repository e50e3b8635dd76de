import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewlier.selection import SHARPNESS, average, best, equal

criteria_lists = st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=15)


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


@given(criteria=criteria_lists)
def test_an_average_keeps_the_best_quarter_and_sums_to_one(criteria):
    weights = average(criteria)
    n_kept = (len(criteria) + 3) // 4
    kept = np.argsort(-np.array(criteria), kind="stable")[:n_kept]
    assert weights.sum() == pytest.approx(1)
    assert (weights >= 0).all()
    assert set(np.flatnonzero(weights)) <= set(kept)
    assert np.argmax(criteria) in np.flatnonzero(weights)


def test_an_average_weighs_by_softmax():
    weights = average([0.9, 0.1, 0.8, 0.2, 0.85])
    expected = np.exp(SHARPNESS * np.array([0.9, -np.inf, -np.inf, -np.inf, 0.85]))
    np.testing.assert_allclose(weights, expected / expected.sum())


@pytest.mark.parametrize("n", [1, 2, 3, 7, 14])
def test_an_average_of_members_alike_takes_a_quarter_of_them_alike(n):
    n_kept = (n + 3) // 4
    np.testing.assert_allclose(average([0.5] * n), (np.arange(n) < n_kept) / n_kept)


@given(criteria=criteria_lists, shift=st.floats(-100, 100))
def test_an_average_does_not_depend_on_where_criteria_start(criteria, shift):
    rounded = np.round(criteria, 3)  # so that the shift neither makes nor breaks a tie
    np.testing.assert_allclose(average(rounded + np.round(shift, 3)), average(rounded), atol=1e-8)


def test_a_member_whose_criterion_is_minus_infinity_counts_for_nothing():
    np.testing.assert_allclose(average([-np.inf, 0.5, -np.inf, -np.inf, -np.inf]), [0, 1, 0, 0, 0])


@pytest.mark.parametrize("n", [1, 3])
def test_members_that_nothing_tells_apart_weigh_the_same(n):
    np.testing.assert_allclose(equal(n), 1 / n)
    assert equal(n).shape == (n,)
