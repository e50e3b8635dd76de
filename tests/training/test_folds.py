from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from fewlier.training.folds import (
    CALIBRATION_SHARE,
    MIN_VALIDATION,
    N_CROSSED_ROLES,
    N_ROLES,
    VALIDATION_SHARE,
    make_folds,
)

sizes = st.integers(N_ROLES, 300) | st.just(4777)


def split(n_normals, n_anomalies, n_folds=2, seed=0, n_doubtful=0):
    """Folds of normals counted from 0, the first doubtful, and anomalies from a million."""
    normals, anomalies = np.arange(n_normals), 10**6 + np.arange(n_anomalies)
    rng = np.random.default_rng(seed)
    return make_folds(normals, anomalies, n_folds, rng, np.arange(n_doubtful))


def roles(fold):
    return [
        fold.normals,
        fold.validation_normals,
        fold.calibration,
        fold.anomalies,
        fold.validation_anomalies,
    ]


@given(n_normals=sizes, n_anomalies=st.integers(0, 30), doubtful=st.floats(0, 1))
@examples(max_examples=50)
def test_every_row_of_a_single_fold_has_one_role(n_normals, n_anomalies, doubtful):
    (fold,) = split(n_normals, n_anomalies, 1, n_doubtful=int(doubtful * n_normals))
    everything = [*range(n_normals), *range(10**6, 10**6 + n_anomalies)]
    assert sorted(chain.from_iterable(map(np.ndarray.tolist, roles(fold)))) == everything
    assert np.concatenate(roles(fold)[:3]).max() < n_normals
    assert min(len(role) for role in roles(fold)[:3]) >= 1
    assert len(fold.normals) >= n_normals / 3


@given(
    n_normals=st.integers(N_CROSSED_ROLES, 300) | st.just(4777),
    n_anomalies=st.integers(0, 30),
    n_folds=st.integers(2, 6),
)
@examples(max_examples=50)
def test_of_several_folds_every_normal_is_held_out_by_one_and_trains_the_others(
    n_normals, n_anomalies, n_folds
):
    folds = split(n_normals, n_anomalies, n_folds)
    assert len(folds) == n_folds
    for fold in folds:
        assert sorted([*fold.normals, *fold.calibration]) == list(range(n_normals))
        assert set(fold.validation_normals) <= set(fold.calibration)
        assert min(len(fold.normals), len(fold.validation_normals)) >= 1
    held_out = np.concatenate([fold.calibration for fold in folds])
    assert set(held_out) == set(range(n_normals))
    assert len(held_out) == max(n_normals, n_folds)  # fewer normals than folds: some twice


@pytest.mark.parametrize("n_normals", [100, 1000, 4000])
def test_the_shares_are_those_stated(n_normals):
    (fold,) = split(n_normals, 4, 1)
    assert len(fold.validation_normals) == VALIDATION_SHARE * n_normals
    assert len(fold.calibration) == CALIBRATION_SHARE * n_normals
    for fold in split(n_normals, 4):
        n_validation = max(MIN_VALIDATION, VALIDATION_SHARE * n_normals)
        assert len(fold.validation_normals) == min(n_validation, n_normals / 2)


def test_labelled_normals_in_number_calibrate_a_single_fold_alone():
    n_doubtful = round((1 - 2 * CALIBRATION_SHARE) * 1000)
    (fold,) = split(1000, 4, 1, n_doubtful=n_doubtful)
    assert fold.calibration.min() >= n_doubtful
    assert fold.normals.min() < n_doubtful


def test_too_few_labelled_normals_calibrate_together_with_the_others():
    (fold,) = split(1000, 4, 1, n_doubtful=950)
    assert fold.calibration.min() < 950


def test_where_all_or_none_are_doubtful_the_folds_are_the_same():
    for n_folds in (1, 2):
        first, second = split(500, 4, n_folds), split(500, 4, n_folds, n_doubtful=500)
        for one, other in zip(first, second, strict=True):
            assert [r.tolist() for r in roles(one)] == [r.tolist() for r in roles(other)]


@given(n_anomalies=st.integers(2, 40))
def test_over_two_folds_every_anomaly_trains_once_and_validates_once(n_anomalies):
    first, second = split(100, n_anomalies)
    anomalies = set(range(10**6, 10**6 + n_anomalies))
    for one, other in ((first, second), (second, first)):
        assert set(one.anomalies) == set(other.validation_anomalies)
        assert set(one.anomalies) | set(other.anomalies) == anomalies
        assert set(one.anomalies).isdisjoint(other.anomalies)
        assert abs(len(one.anomalies) - len(other.anomalies)) <= 1


def test_a_single_anomaly_trains_both_of_two_folds():
    for fold in split(100, 1):
        assert fold.anomalies.tolist() == [10**6]
        assert not len(fold.validation_anomalies)


def test_a_single_anomaly_validates_a_single_fold():
    (fold,) = split(100, 1, n_folds=1)
    assert not len(fold.anomalies)
    assert fold.validation_anomalies.tolist() == [10**6]


@pytest.mark.parametrize(("n_normals", "n_folds"), [(1, 1), (2, 1), (1, 2)])
def test_with_fewer_normals_than_roles_each_plays_all(n_normals, n_folds):
    for fold in split(n_normals, 2, n_folds):
        for role in roles(fold)[:3]:
            assert sorted(role) == list(range(n_normals))


def test_without_anomalies_there_is_nothing_to_split():
    for fold in split(100, 0):
        assert not len(fold.anomalies)
        assert not len(fold.validation_anomalies)


def test_the_same_seed_gives_the_same_folds_and_another_seed_others():
    first, same, other = split(100, 6, seed=1), split(100, 6, seed=1), split(100, 6, seed=2)
    assert [r.tolist() for r in roles(first[0])] == [r.tolist() for r in roles(same[0])]
    assert first[0].normals.tolist() != other[0].normals.tolist()


def test_the_order_of_the_table_does_not_decide_who_is_held_out():
    for fold in (*split(1000, 0), *split(1000, 0, 1)):
        assert np.ptp(fold.calibration) > 500
