import numpy as np
import pytest
from made_up_results import result
from scipy.stats import sem, t, wilcoxon

from fewlier_bench.pages.statistics import (
    Grid,
    compare,
    make_grid,
    paired_p_value,
    signed_rank_p_value,
)

NAN = np.nan


def grid_of(values, methods=None):
    """Return a grid of values of shape (n_datasets, n_methods, n_splits)."""
    values = np.asarray(values, dtype=float)
    methods = methods or [f"m{i}" for i in range(values.shape[1])]
    return Grid.of_values([f"d{i}" for i in range(len(values))], methods, values)


def test_the_p_value_is_that_of_students_distribution():
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(2, 10))
    d = first - second
    statistic = d.mean() / (d.std(ddof=1) / np.sqrt(10))
    assert paired_p_value(first, second) == pytest.approx(2 * t.sf(abs(statistic), 9))


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([0.5, 0.7, 0.9], [0.5, 0.7, 0.9], 1.0),
        ([0.6, 0.8, 1.0], [0.5, 0.7, 0.9], 0.0),  # equal differences but for rounding
        ([0.6], [0.5], 1.0),
        ([], [], 1.0),
        ([0.6, NAN, 0.8], [0.6, 0.9, 0.8], 1.0),
    ],
)
def test_p_values_without_variance_or_pairs(first, second, expected):
    assert paired_p_value(np.array(first), np.array(second)) == expected


def test_missing_pairs_do_not_count():
    rng = np.random.default_rng(1)
    first, second = rng.normal(size=(2, 8))
    gap = np.append(first, NAN), np.append(second, 3.0)
    assert paired_p_value(*gap) == pytest.approx(paired_p_value(first, second))


@pytest.mark.slow
def test_equal_methods_are_separated_as_often_as_the_level_says():
    values = np.random.default_rng(2).normal(size=(2000, 2, 10))
    separated = (~grid_of(values).not_separated()).any(axis=1).mean()
    assert separated == pytest.approx(0.05, abs=0.015)  # three standard errors


def test_not_separated_are_the_best_and_what_is_close_to_it():
    rng = np.random.default_rng(3)
    best = rng.normal(0.9, 0.01, 10)
    values = [[best, best + rng.normal(0, 0.01, 10) - 0.001, best - 0.3, np.full(10, NAN)]]
    assert grid_of(values).not_separated().tolist() == [[True, True, False, False]]


def test_a_dataset_without_values_has_no_best():
    empty = grid_of(np.full((1, 2, 3), NAN))
    assert not empty.not_separated().any()
    assert np.isnan(empty.means).all()
    assert empty.common.datasets == ()
    assert np.isnan(empty.common.averages).all()
    assert np.isnan(empty.common.mean_ranks).all()


def test_a_method_counts_where_it_has_every_split_of_its_dataset():
    grid = grid_of([[[1, 2, NAN], [3, 4, NAN]], [[1, 2, 3], [4, NAN, 6]]])
    assert grid.is_complete.tolist() == [[True, True], [True, False]]
    np.testing.assert_array_equal(grid.means, [[1.5, 3.5], [2, NAN]])
    assert grid.common.datasets == ("d0",)
    np.testing.assert_array_equal(grid.common.averages, [1.5, 3.5])
    np.testing.assert_array_equal(grid.averages, [1.75, NAN])


def test_a_part_of_a_grid_expects_the_splits_of_the_whole():
    grid = grid_of([[[1, 2, 3], [4, NAN, 6]]])
    assert not grid.only(methods=["m1"]).is_complete.any()


def test_methods_without_any_value_do_not_keep_datasets_from_being_common():
    grid = grid_of([[[1, 2], [NAN, NAN]], [[3, 4], [NAN, NAN]]])
    assert grid.common.datasets == ("d0", "d1")


def test_standard_errors_are_those_of_scipy():
    values = np.random.default_rng(4).normal(size=(3, 2, 10))
    np.testing.assert_allclose(grid_of(values).standard_errors, sem(values, axis=2))
    assert np.isnan(grid_of(values[:, :, :1]).standard_errors).all()


def test_ranks_begin_with_the_best_and_ties_share():
    grid = grid_of([[[0.9], [0.8], [0.8]], [[0.1], [0.3], [0.2]]])
    np.testing.assert_allclose(grid.mean_ranks, [2.0, 1.75, 2.25])


def test_outcomes_say_on_which_datasets_a_method_wins_and_are_mirrored():
    rng = np.random.default_rng(5)
    base = rng.normal(0.7, 0.01, (4, 10))
    noise = rng.normal(0, 0.01, (4, 10))
    other = base + noise + np.array([[-0.2], [0.2], [0], [NAN]])
    grid = grid_of(np.stack([base, other], axis=1), ["a", "b"])
    outcome = compare(grid, "a", "b")
    assert (outcome.wins, outcome.ties, outcome.losses) == (("d0",), ("d2",), ("d1",))
    mirrored = compare(grid, "b", "a")
    assert (mirrored.wins, mirrored.losses) == (outcome.losses, outcome.wins)


def test_the_last_row_of_a_cell_counts():
    rows = [
        result("Pima", "KNN", split=0, auc=None, reason="out of memory"),
        result("Pima", "KNN", split=1, auc=0.5),
        result("Pima", "KNN", split=0, auc=0.7),
        result("Pima", "other", split=0, auc=0.1),
    ]
    grid = make_grid(rows, ["Pima", "Wilt"], ["KNN", "SVM"])
    np.testing.assert_array_equal(grid.of("Pima", "KNN"), [0.7, 0.5])
    assert np.isnan(grid.of("Wilt", "KNN")).all()
    assert grid.means[0, 0] == pytest.approx(0.6)


def test_a_signed_rank_test_leaves_out_gaps_and_ties():
    rng = np.random.default_rng(6)
    first, second = rng.normal(size=(2, 12))
    expected = wilcoxon(first, second).pvalue
    assert signed_rank_p_value(first, second) == pytest.approx(expected)
    more = np.append(first, [NAN, 1.0, 0.3]), np.append(second, [0.0, NAN, 0.3])
    assert signed_rank_p_value(*more) == pytest.approx(expected)
    assert signed_rank_p_value(first, first) == 1
