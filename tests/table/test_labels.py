import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import DataConversionWarning

from fewlier import AnomalyDetector
from fewlier.errors import UserError
from fewlier.table.labels import ANOMALY, NORMAL, UNLABELLED, Labels, RowCounts, read_labels

NAN = float("nan")


def test_without_y_every_row_is_unlabelled():
    labels = read_labels(None, 3)
    assert labels.tolist() == [UNLABELLED] * 3
    assert labels.dtype == np.int8


@pytest.mark.parametrize(
    "y",
    [
        [1, 0, 0],
        (1.0, 0.0, 0.0),
        [True, False, False],
        np.array([1, 0, 0], dtype=np.uint8),
        np.array([1, 0, 0], dtype=object),
        np.array([True, False, False]),
        np.array([True, False, False], dtype=object),
        pd.Series([1, 0, 0], index=[7, 8, 9]),
        pd.Series([True, False, False], dtype="boolean"),
        pd.Series([1, 0, 0], dtype="category"),
        pl.Series([1, 0, 0]),
        pl.Series([True, False, False]),
        pa.array([1, 0, 0]),
        pa.chunked_array([[True], [False, False]]),
    ],
)
def test_one_and_true_mean_anomaly_and_zero_and_false_normal(y):
    assert read_labels(y, 3).tolist() == [ANOMALY, NORMAL, NORMAL]


@pytest.mark.parametrize(
    "y",
    [
        [1, 0, NAN],
        [1, 0, None],
        [True, False, None],
        [1, 0, pd.NA],
        [1, 0, pd.NaT],
        np.array([1, 0, NAN], dtype=np.float32),
        pd.Series([1, 0, None], dtype="Int64"),
        pd.Series([True, False, None], dtype="boolean"),
        pl.Series([1, 0, None]),
        pl.Series([True, False, None]),
        pa.array([1, 0, None]),
        pa.array([True, False, None]),
    ],
)
def test_a_missing_label_leaves_its_row_unlabelled(y):
    assert read_labels(y, 3).tolist() == [ANOMALY, NORMAL, UNLABELLED]


@pytest.mark.parametrize("y", [[NAN, NAN], [None, None], pd.Series([pd.NA, pd.NA])])
def test_all_labels_may_be_missing(y):
    assert read_labels(y, 2).tolist() == [UNLABELLED] * 2


@pytest.mark.parametrize(
    ("y", "expected"),
    [
        ([-1, 0, 1], [UNLABELLED, NORMAL, ANOMALY]),
        ([-1, 0], [UNLABELLED, NORMAL]),
        ([-1, 1, NAN], [UNLABELLED, ANOMALY, UNLABELLED]),
        ([-1, None], [UNLABELLED, UNLABELLED]),
    ],
)
def test_minus_one_is_unlabelled_beside_a_zero_or_a_missing_label(y, expected):
    assert read_labels(y, len(y)).tolist() == expected


@pytest.mark.parametrize("y", [[-1, 1, 1], [1.0, -1.0], [-1, -1]])
def test_minus_one_and_one_alone_are_refused_because_scikit_learn_means_the_opposite(y):
    with pytest.raises(UserError, match=r"-1 and 1.*missing"):
        read_labels(y, len(y))


@pytest.mark.parametrize("y", [[1, 1], [0, 0]])
def test_one_class_alone_is_read_as_it_stands(y):
    assert read_labels(y, 2).tolist() == y


@pytest.mark.parametrize(
    ("y", "found"),
    [
        ([0, 1, 2], r"got \[2\.0\] \(first at row 2\)"),
        ([0, 0.5, 1], r"got \[0\.5\] \(first at row 1\)"),
        ([3, 0, -2], r"got \[-2\.0, 3\.0\] \(first at row 0\)"),
        ([0, np.inf], r"got \[inf\] \(first at row 1\)"),
    ],
)
def test_other_numbers_are_refused_by_value_and_row(y, found):
    with pytest.raises(UserError, match=f"Only binary classification.*{found}.*Write 1"):
        read_labels(y, len(y))


@pytest.mark.parametrize(
    ("y", "found"),
    [
        (["fraud", "ok"], r"the text 'fraud' \(first at row 0\)"),
        ([None, "1"], r"the text '1' \(first at row 1\)"),
        (pd.Series(["yes", "no"], dtype="category"), r"the text 'yes' \(first at row 0\)"),
    ],
)
def test_text_is_refused_by_value_and_row(y, found):
    with pytest.raises(UserError, match=f"Unknown label type.*{found}.*Write 1"):
        read_labels(y, 2)


@pytest.mark.parametrize("n_rows", [0, 2, 4])
def test_there_must_be_one_label_per_row(n_rows):
    with pytest.raises(UserError, match=f"3 labels for {n_rows} rows"):
        read_labels([0, 1, 0], n_rows)


@pytest.mark.parametrize("y", [np.zeros((2, 2)), np.zeros((2, 1, 1)), 1])
def test_labels_must_form_a_list(y):
    with pytest.raises(UserError, match=r"shape \("):
        read_labels(y, 2)


def test_a_column_of_labels_is_read_as_a_list_with_a_warning():
    with pytest.warns(DataConversionWarning, match="column-vector"):
        labels = read_labels(np.array([[1], [0]]), 2)
    assert labels.tolist() == [ANOMALY, NORMAL]


@given(st.lists(st.sampled_from([ANOMALY, NORMAL, UNLABELLED]), min_size=1))
def test_labels_with_missing_for_unlabelled_come_back(labels):
    y = [None if label == UNLABELLED else label for label in labels]
    assert read_labels(y, len(y)).tolist() == labels


def test_labels_are_read_once():
    labels = Labels.of([1, 0, None, -1], 4)
    assert labels.codes.tolist() == [ANOMALY, NORMAL, UNLABELLED, UNLABELLED]
    assert Labels.of(labels, 4) is labels
    with pytest.raises(UserError, match="got 4 labels for 3 rows"):
        Labels.of(labels, 3)


@given(st.lists(st.sampled_from([ANOMALY, NORMAL, UNLABELLED]), min_size=1))
def test_labels_that_were_read_stand_for_y_wherever_it_is_read(codes):
    labels = Labels(np.array(codes, dtype=np.int8))
    assert read_labels(labels, len(codes)).tolist() == codes
    np.testing.assert_array_equal(np.isnan(np.asarray(labels)), np.array(codes) == UNLABELLED)


@pytest.mark.parametrize(
    ("y", "compared"),
    [
        ([1, 0, None], [ANOMALY, NORMAL, UNLABELLED]),
        ([1, None, None], [ANOMALY, NORMAL, NORMAL]),
        ([None, None, None], [NORMAL, NORMAL, NORMAL]),
    ],
)
def test_unlabelled_rows_stand_in_where_none_is_normal(y, compared):
    assert Labels.of(y, 3).compared.tolist() == compared


@pytest.mark.parametrize(
    ("rows", "labels"),
    [
        ([2, 0, 1], [0, 1, 2]),
        (["b", "a", "c"], ["a", "b", "c"]),
        ([0, 0, 1], [0, 1, 0]),
        (
            pd.to_datetime(["2024-02-01", "2024-01-01"]),
            pd.to_datetime(["2024-01-01", "2024-02-01"]),
        ),
    ],
)
def test_labels_in_another_order_than_their_rows_are_refused(rows, labels):
    X, y = pd.DataFrame({"a": range(len(rows))}, index=rows), pd.Series(0, index=labels)
    with pytest.raises(UserError, match=r"y\.loc\[X\.index\]") as caught:
        Labels.of(y, len(rows), X)
    assert "np." not in str(caught.value)
    assert len(Labels.of(y.to_numpy(), len(rows), X)) == len(rows)


@pytest.mark.parametrize("labels", [[5, 6, 7], [0, 1, 3], ["a", "b", "c"]])
def test_labels_with_an_index_of_their_own_go_by_position(labels):
    X, y = pd.DataFrame({"a": range(3)}), pd.Series([1, 0, 0], index=labels)
    assert Labels.of(y, 3, X).codes.tolist() == [1, 0, 0]


def test_a_fit_refuses_labels_of_shuffled_rows():
    X = pd.DataFrame({"a": np.arange(50.0)})
    y = pd.Series(np.arange(50) > 45, index=X.index)
    with pytest.raises(UserError, match="another order"):
        AnomalyDetector().fit(X.sample(frac=1, random_state=0), y)


def test_masked_labels_are_unlabelled():
    y = np.ma.array([1, 0, 0], mask=[False, False, True])
    assert read_labels(y, 3).tolist() == [ANOMALY, NORMAL, UNLABELLED]


def test_an_update_adds_its_rows_and_takes_off_the_labels_it_replaces():
    before = RowCounts(100, 1, 200, {"theft": 1})
    more = RowCounts(3, 5, 2, {"Theft": 4})
    found = before.updated(more, np.array([-1, -1, -1, 0, 1], dtype=np.int8))
    assert (found.n_normal, found.n_anomaly, found.n_unlabelled) == (102, 5, 199)
    assert found.kinds == {"theft": 5}
