from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from fewlier.training.folds import (
    CALIBRATION_SHARE,
    ENOUGH_CALIBRATION,
    N_ROLES,
    VALIDATION_SHARE,
    make_folds,
)

MANY = round(ENOUGH_CALIBRATION / CALIBRATION_SHARE)

sizes = st.integers(N_ROLES, 300) | st.just(MANY) | st.just(MANY + 777)


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


@pytest.mark.slow
@given(
    n_normals=sizes,
    n_anomalies=st.integers(0, 30),
    n_folds=st.integers(1, 6),
    doubtful=st.floats(0, 1),
)
@examples(max_examples=50)
def test_every_row_of_a_fold_has_one_role(n_normals, n_anomalies, n_folds, doubtful):
    folds = split(n_normals, n_anomalies, n_folds, n_doubtful=int(doubtful * n_normals))
    assert len(folds) == n_folds
    everything = [*range(n_normals), *range(10**6, 10**6 + n_anomalies)]
    for fold in folds:
        normals = np.concatenate(roles(fold)[:3])
        assert normals.max() < n_normals
        assert sorted(chain.from_iterable(map(np.ndarray.tolist, roles(fold)))) == everything


@given(n_normals=sizes, n_anomalies=st.integers(0, 30))
@examples(max_examples=50)
def test_every_fold_has_normals_to_train_to_validate_and_to_calibrate(n_normals, n_anomalies):
    for fold in split(n_normals, n_anomalies):
        assert min(len(role) for role in roles(fold)[:3]) >= 1
        assert len(fold.normals) >= n_normals / 3


@pytest.mark.parametrize("n_normals", [100, 1000, MANY])
def test_the_shares_are_those_stated(n_normals):
    for fold in split(n_normals, 4):
        assert len(fold.validation_normals) == VALIDATION_SHARE * n_normals
        assert len(fold.calibration) == CALIBRATION_SHARE * n_normals


@pytest.mark.parametrize("n_normals", [100, MANY])
@pytest.mark.parametrize("n_folds", [1, 2])
def test_labelled_normals_in_number_calibrate_alone(n_normals, n_folds):
    n_labelled = round(2 * n_folds * CALIBRATION_SHARE * n_normals)
    n_doubtful = n_normals - n_labelled
    for fold in split(n_normals, 4, n_folds, n_doubtful=n_doubtful):
        assert fold.calibration.min() >= n_doubtful
        assert fold.normals.min() < n_doubtful


def test_too_few_labelled_normals_calibrate_together_with_the_others():
    for fold in split(1000, 4, n_doubtful=950):
        assert fold.calibration.min() < 950


def test_where_all_or_none_are_doubtful_the_folds_are_the_same():
    first, second = split(500, 4), split(500, 4, n_doubtful=500)
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


@pytest.mark.parametrize("n_normals", range(1, N_ROLES))
def test_with_fewer_normals_than_roles_each_plays_all(n_normals):
    for fold in split(n_normals, 2):
        for role in roles(fold)[:3]:
            assert sorted(role) == list(range(n_normals))


def test_without_anomalies_there_is_nothing_to_split():
    for fold in split(100, 0):
        assert not len(fold.anomalies)
        assert not len(fold.validation_anomalies)


@pytest.mark.parametrize("n_normals", [MANY, MANY + 777])
def test_many_normals_all_folds_hold_back_the_same(n_normals):
    first, second = split(n_normals, 6)
    assert len(first.calibration) >= ENOUGH_CALIBRATION
    assert sorted(first.calibration) == sorted(second.calibration)
    assert set(first.validation_normals).isdisjoint(second.validation_normals)


@pytest.mark.parametrize("n_normals", [20, 100, MANY - 20])
def test_few_normals_each_fold_holds_back_its_own(n_normals):
    first, second = split(n_normals, 6)
    held_back = [*first.calibration, *first.validation_normals]
    held_back += [*second.calibration, *second.validation_normals]
    assert len(set(held_back)) == len(held_back)


def test_the_same_seed_gives_the_same_folds_and_another_seed_others():
    first, same, other = split(100, 6, seed=1), split(100, 6, seed=1), split(100, 6, seed=2)
    assert [r.tolist() for r in roles(first[0])] == [r.tolist() for r in roles(same[0])]
    assert first[0].normals.tolist() != other[0].normals.tolist()


def test_the_order_of_the_table_does_not_decide_who_is_held_back():
    held_back = np.concatenate([fold.calibration for fold in split(1000, 0)])
    assert np.ptp(held_back) > 500
