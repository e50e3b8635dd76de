"""Tables of any library, and columns in any order."""

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from factories import small
from patients import LABELS, patients, with_missing_cells

from fewlier import FewlierWarning, UserError

# Tables of any library


@pytest.mark.slow
@pytest.mark.parametrize(
    "convert",
    [
        pl.from_pandas,
        lambda t: pl.from_pandas(t).lazy(),
        lambda t: pa.Table.from_pandas(t, preserve_index=False),
        lambda t: duckdb.from_df(t),
        pd.DataFrame.to_numpy,
    ],
    ids=["polars", "lazy polars", "pyarrow", "duckdb", "numpy"],
)
@pytest.mark.parametrize("share", [0.0, 0.2], ids=["whole", "with missing cells"])
def test_tables_of_every_library_give_the_scores_of_pandas(convert, share):
    table = with_missing_cells(patients(), share)
    expected = small(max_epochs=3).fit(table, LABELS).anomaly_score(table)
    converted = convert(table)
    scores = small(max_epochs=3).fit(converted, LABELS).anomaly_score(converted)
    np.testing.assert_array_equal(scores, expected)
    assert np.isfinite(scores).all()


@pytest.mark.slow
def test_columns_in_another_order_are_matched_by_name(detector):
    table = patients(seed=1)
    shuffled = table[list(reversed(table.columns))]
    np.testing.assert_array_equal(detector.anomaly_score(shuffled), detector.anomaly_score(table))


def test_text_that_is_a_number_scores_as_the_number(detector):
    table = patients(seed=1)
    text = table.astype({"height": str, "visits": str})
    np.testing.assert_array_equal(detector.anomaly_score(text), detector.anomaly_score(table))


@pytest.mark.parametrize(
    "method", ["anomaly_score", "predict", "predict_proba", "score_samples", "p_value", "explain"]
)
def test_missing_and_extra_columns_are_errors_that_name_them(detector, method):
    table = patients(5)
    with pytest.raises(UserError, match=r"8 columns of training; got one without 'city'\."):
        getattr(detector, method)(table.drop(columns="city"))
    with pytest.raises(UserError, match=r"with the unexpected 'age'\. Add, drop or rename"):
        getattr(detector, method)(table.assign(age=1.0))
    with pytest.raises(UserError, match="without 'height' and with the unexpected 'size'"):
        getattr(detector, method)(table.rename(columns={"height": "size"}))


def test_text_in_a_numeric_column_is_missing_and_a_warning_names_it(detector):
    table = patients(3).astype({"height": object})
    table.loc[1, "height"] = "tall"
    with pytest.warns(FewlierWarning, match=r"1 in height \(first 'tall' in row 1\)"):
        scores = detector.anomaly_score(table)
    table.loc[1, "height"] = None
    assert scores.tolist() == detector.anomaly_score(table).tolist()


def test_a_table_without_rows_has_no_scores(detector):
    none = patients(5)[:0]
    assert detector.anomaly_score(none).shape == (0,)
    assert detector.score_samples(none).shape == (0,)
    assert detector.predict(none).shape == (0,)
    assert detector.predict_proba(none).shape == (0, 2)
    assert detector.explain(none).contributions.shape == (0, 8)
