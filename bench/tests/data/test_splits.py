from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewlier.errors import UserError
from fewlier_bench.data import (
    PAPER,
    THREE_VALIDATION_ANOMALIES,
    list_datasets,
    make_paper_split,
    scale_columns,
)


@st.composite
def tables(draw):
    """Labels with enough rows for all parts, in any order."""
    n_normals, n_anomalies = draw(st.integers(10, 300)), draw(st.integers(9, 40))
    y = np.repeat(np.array([0, 1], dtype=np.int8), [n_normals, n_anomalies])
    return np.random.default_rng(draw(st.integers(0, 99))).permutation(y)


numbers = st.integers(0, 9)
protocols = st.sampled_from([PAPER, THREE_VALIDATION_ANOMALIES])


def splits(y, number, protocol):
    possible = protocol.n_labelled_of(int(y.sum()))
    return {k: make_paper_split(y, number, k, protocol) for k in possible}


def parts(split):
    return split.training, split.validation, split.test


@given(tables(), numbers, protocols)
def test_parts_are_disjoint_and_of_the_asked_sizes(y, number, protocol):
    n_normals = int((y == 0).sum())
    for k, split in splits(y, number, protocol).items():
        rows = np.concatenate(parts(split))
        assert len(set(rows.tolist())) == len(rows)
        assert (y[split.training] == 0).sum() == round(0.8 * n_normals)
        assert (y[split.validation] == 0).sum() == round(0.1 * n_normals)
        assert (y[split.training] == 1).sum() == k
        assert (y[split.validation] == 1).sum() == (protocol.validation_anomalies or k)
        assert (y[split.test] == 1).sum() >= k


@given(tables(), numbers)
def test_every_normal_row_is_used_and_with_the_largest_k_every_row(y, number):
    by_k = splits(y, number, PAPER)
    for split in by_k.values():
        assert (y[np.concatenate(parts(split))] == 0).sum() == (y == 0).sum()
    assert len(np.concatenate(parts(by_k[max(by_k)]))) == len(y)


@given(tables(), numbers, protocols)
def test_splits_are_nested_in_k_and_share_normals_and_test_rows(y, number, protocol):
    by_k = splits(y, number, protocol)
    for small, large in zip(by_k.values(), list(by_k.values())[1:], strict=False):
        for few, many in zip(parts(small), parts(large), strict=True):
            assert set(few[y[few] == 1]) <= set(many[y[many] == 1])
            assert np.array_equal(few[y[few] == 0], many[y[many] == 0])
        assert np.array_equal(small.test, large.test)


@given(tables(), numbers)
def test_the_variant_differs_in_validation_anomalies_alone(y, number):
    for k in PAPER.n_labelled_of(int(y.sum())):
        paper = make_paper_split(y, number, k)
        variant = make_paper_split(y, number, k, THREE_VALIDATION_ANOMALIES)
        assert np.array_equal(paper.training, variant.training)
        assert np.array_equal(paper.test, variant.test)


@pytest.mark.slow
@given(tables())
def test_splits_are_reproducible_and_differ_by_number_and_seed(y):
    def drawn(number, protocol=PAPER):
        return tuple(make_paper_split(y, number, 1, protocol).training.tolist())

    assert drawn(3) == drawn(3)
    assert len({drawn(number) for number in range(10)}) == 10
    assert drawn(3) != drawn(3, replace(PAPER, seed=1))


def test_splits_stay_the_same_over_versions():
    y = (np.arange(30) % 3 == 0).astype(np.int8)
    training, validation, test = parts(make_paper_split(y, 0, 1))
    assert training.tolist() == [7, 29, 10, 4, 20, 25, 5, 17, 16, 13, 1, 19, 11, 8, 28, 26, 6]
    assert validation.tolist() == [22, 14, 15]
    assert test.tolist() == [2, 23, 3, 0, 24, 27]


def test_five_labels_leave_out_the_tables_that_the_paper_leaves_out():
    left_out = [
        e.name for e in list_datasets() if 5 not in PAPER.n_labelled_of(e.paper.n_anomalies)
    ]
    assert left_out == ["Parkinson", "Shuttle"]
    assert all(3 in PAPER.n_labelled_of(e.paper.n_anomalies) for e in list_datasets())


@pytest.mark.parametrize(
    ("n_normals", "n_anomalies", "number", "k", "message"),
    [
        (50, 12, 0, 5, r"at most a third of the table's 12; got 5. Possible here: \(1, 3\)"),
        (50, 12, 0, 2, r"one of \(1, 3, 5\)"),
        (50, 2, 0, 1, r"Possible here: none"),
        (50, 12, 10, 1, r"from 0 to 9; got 10"),
        (50, 12, -1, 1, r"from 0 to 9; got -1"),
        (5, 12, 0, 1, r"normal rows to train, validate and test; got 5"),
    ],
)
def test_a_split_that_cannot_be_is_an_error(n_normals, n_anomalies, number, k, message):
    y = np.repeat([0, 1], [n_normals, n_anomalies])
    with pytest.raises(UserError, match=message):
        make_paper_split(y, number, k)


def test_other_labels_and_too_few_anomalies_for_the_variant_are_errors():
    with pytest.raises(UserError, match="y must be 0 or 1"):
        make_paper_split(np.array([0, 1, -1]), 0, 1)
    with pytest.raises(UserError, match="too few anomalies to validate on 3: 5 in all"):
        make_paper_split(np.repeat([0, 1], [50, 5]), 0, 1, THREE_VALIDATION_ANOMALIES)


def test_columns_are_scaled_to_0_and_1_and_constant_ones_to_0():
    X = np.array([[0.0, 7.0, -1.0], [50.0, 7.0, 0.0], [100.0, 7.0, 3.0]])
    assert scale_columns(X).tolist() == [[0, 0, 0], [0.5, 0, 0.25], [1, 0, 1]]


def test_scaling_what_is_scaled_changes_no_bit():
    X = scale_columns(np.random.default_rng(0).normal(size=(100, 5)))
    assert np.array_equal(scale_columns(X), X)
