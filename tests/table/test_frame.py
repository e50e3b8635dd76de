import datetime as dt
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from fewlier.errors import FewlierError, UserError
from fewlier.table import Table
from fewlier.table.cells import MISSING, missing, number_text
from fewlier.table.frame import has_names

DATE = dt.date(2024, 5, 1)


def cells_of(data, name="x"):
    return Table.of(data).cells[name].tolist()


def pandas_column(values, dtype=None):
    return pd.DataFrame({"x": pd.Series(values, dtype=dtype)})


def test_a_user_error_is_a_value_error_and_a_fewlier_error():
    assert issubclass(UserError, ValueError)
    assert issubclass(UserError, FewlierError)


@pytest.mark.parametrize(
    "frame",
    [
        pandas_column([1, None, 3], "float32"),
        pandas_column([1, None, 3], "Int64"),
        pandas_column([1, None, 3], "UInt8"),
        pandas_column([1, None, 3], "Float64"),
        pandas_column([1, None, 3], "int64[pyarrow]"),
        pandas_column([1, None, np.int8(3)], object),
        pandas_column([1, pd.NA, 3.0], object),
        pandas_column([Decimal(1), Decimal("nan"), Decimal(3)], object),
        pl.DataFrame({"x": [1, None, 3]}),
        pl.DataFrame({"x": [1.0, float("nan"), 3.0]}),
        pl.DataFrame({"x": pl.Series([1, None, 3], dtype=pl.UInt64)}),
        pl.DataFrame({"x": pl.Series([Decimal(1), None, Decimal(3)])}),
        pa.table({"x": pa.array([1, None, 3], pa.float16())}),
        pa.table({"x": pa.array([Decimal(1), None, Decimal(3)])}),
    ],
)
def test_every_numeric_dtype_becomes_float64_with_nan_for_missing(frame):
    cells = Table.of(frame).cells["x"]
    assert cells.dtype == np.float64
    np.testing.assert_array_equal(cells, [1.0, np.nan, 3.0])


class Stream:
    """Something of which no more is known than that it gives Arrow."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


STREAMED = pa.table({"n": [1, None, 3], "t": ["a", None, "b"]})


@pytest.mark.parametrize(
    "give",
    [
        duckdb.from_arrow,
        Stream,
        pa.Table.to_reader,
        lambda table: table.to_batches()[0],
        lambda table: pl.from_arrow(table).lazy(),
    ],
    ids=["duckdb", "stream", "reader", "batch", "lazy"],
)
def test_relations_streams_and_lazy_frames_are_read_like_tables(give):
    given = give(STREAMED)
    assert has_names(given)
    cells = Table.of(given).cells
    np.testing.assert_array_equal(cells["n"], [1.0, np.nan, 3.0])
    assert cells["t"].tolist() == ["a", None, "b"]


def test_every_type_of_duckdb_is_read():
    row = "x, x::decimal(9, 2) d, sum(x) over () s, x = 1 b, ('u' || x % 2)::enum('u0', 'u1') e"
    cells = Table.of(duckdb.sql(f"select {row} from range(3) t(x)")).cells
    assert {name: cell.tolist() for name, cell in cells.items()} == {
        "x": [0, 1, 2],
        "d": [0, 1, 2],
        "s": [3, 3, 3],
        "b": ["False", "True", "False"],
        "e": ["u0", "u1", "u0"],
    }


def test_an_error_of_the_query_is_not_hidden():
    with pytest.raises(duckdb.ConversionException, match="Could not convert"):
        Table.of(duckdb.sql("select cast('z' || x as int) n from range(3) t(x)"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            Stream(pa.table([[1], [2]], names=["a", "a"])),
            "Column names must be unique; got 'a' 2 times",
        ),
        (Stream(pa.table({})), "must have a column"),
        (Stream(pa.chunked_array([[1.0]])), "must be a DataFrame, an Arrow stream or a 2-D array"),
        (pd.Series(["a", np.int64(1)]), r"got Series of shape \(2,\).*iloc\[\[i\]\] in pandas"),
        (pl.Series([1.0]), "must be a DataFrame, an Arrow stream or a 2-D array"),
    ],
)
def test_a_stream_that_is_not_a_table_is_refused(given, message):
    with pytest.raises(UserError, match=message):
        Table.of(given)


@pytest.mark.parametrize(
    "frame",
    [
        pandas_column(["a", None, "b"]),
        pandas_column(["a", np.nan, "b"], object),
        pandas_column(["a", pd.NA, np.str_("b")], object),
        pandas_column(["a", None, "b"], "category"),
        pandas_column(["a", None, "b"], pd.ArrowDtype(pa.string())),
        pl.DataFrame({"x": ["a", None, "b"]}),
        pl.DataFrame({"x": pl.Series(["a", None, "b"], dtype=pl.Categorical)}),
        pl.DataFrame({"x": pl.Series(["a", None, "b"], dtype=pl.Enum(["a", "b"]))}),
        pa.table({"x": ["a", None, "b"]}),
        pa.table({"x": pa.array(["a", None, "b"]).dictionary_encode()}),
    ],
)
def test_every_text_dtype_becomes_str_with_none_for_missing(frame):
    cells = Table.of(frame).cells["x"]
    assert cells.dtype == object
    assert cells.tolist() == ["a", None, "b"]
    assert {type(cell) for cell in cells} == {str, type(None)}


@pytest.mark.parametrize(
    "frame",
    [
        pandas_column([True, None, False], "boolean"),
        pandas_column([True, None, False], object),
        pandas_column([np.True_, np.nan, np.False_], object),
        pl.DataFrame({"x": [True, None, False]}),
        pa.table({"x": [True, None, False]}),
    ],
)
def test_booleans_become_the_texts_true_and_false(frame):
    assert cells_of(frame) == ["True", None, "False"]


def test_a_boolean_array_becomes_text():
    assert cells_of(np.array([[True], [False]]), "x0") == ["True", "False"]


def test_numeric_categories_are_labels():
    assert cells_of(pandas_column([3, None, 1], "category")) == ["3", None, "1"]
    assert cells_of(pandas_column([3.0, 1.5], "category")) == ["3", "1.5"]


def test_a_column_mixing_text_and_numbers_becomes_text():
    mixed = [1, 2.0, 2.5, "a", None, True, np.float32(4)]
    assert cells_of(pandas_column(mixed, object)) == ["1", "2", "2.5", "a", None, "True", "4"]


@pytest.mark.parametrize(
    "frame",
    [
        pandas_column([None, None], object),
        pandas_column([None, None], "category"),
        pandas_column([pd.NaT, pd.NA], object),
        pl.DataFrame({"x": [None, None]}),
        pa.table({"x": pa.nulls(2)}),
    ],
)
def test_a_column_missing_everywhere_is_numeric_whatever_its_dtype(frame):
    cells = Table.of(frame).cells["x"]
    assert cells.dtype == np.float64
    assert np.isnan(cells).all()


def test_columns_of_arrays_are_named_by_position():
    assert Table.of(np.zeros((2, 3))).names == ("x0", "x1", "x2")


def test_a_list_of_rows_keeps_numbers_beside_text():
    table = Table.of([[1, "a"], (2.5, None)])
    assert table.cells["x0"].tolist() == [1.0, 2.5]
    assert table.cells["x1"].tolist() == ["a", None]


def test_an_object_array_may_hold_numbers_text_and_pandas_na():
    table = Table.of(np.array([[1, "a"], [pd.NA, None]], dtype=object))
    np.testing.assert_array_equal(table.cells["x0"], [1.0, np.nan])
    assert table.cells["x1"].tolist() == ["a", None]


TEXTS = ["b", *MISSING, " ", "  NA ", "\tnan", " b"]


@pytest.mark.parametrize(
    "data",
    [
        pandas_column(TEXTS),
        pandas_column(TEXTS, object),
        pandas_column(TEXTS, "category"),
        pandas_column([*TEXTS[:-1], np.str_(" b")], object),
        pl.DataFrame({"x": TEXTS}),
        pa.table({"x": TEXTS}),
        pa.table({"x": pa.array(TEXTS).dictionary_encode()}),
        pa.table({"x": pa.array(TEXTS, pa.large_string())}),
        np.array(TEXTS, dtype=object)[:, None],
        np.array(TEXTS)[:, None],
        [[text] for text in TEXTS],
    ],
)
def test_every_spelling_of_missing_is_missing_in_every_library(data):
    (cells,) = Table.of(data).cells.values()
    assert cells.tolist() == ["b", *[None] * (len(TEXTS) - 2), " b"]


@pytest.mark.parametrize(
    "data",
    [
        pandas_column([2**53 + 1, None], "Int64"),
        pandas_column([2**53 + 1, None], "int64[pyarrow]"),
        pl.DataFrame({"x": [2**53 + 1, None]}),
        pa.table({"x": [2**53 + 1, None]}),
        pa.table({"x": pa.array([2**53 + 1, None], pa.uint64())}),
    ],
)
def test_integers_beyond_floats_are_rounded(data):
    np.testing.assert_array_equal(Table.of(data).cells["x"], [2.0**53, np.nan])


def test_a_text_array_becomes_text():
    assert cells_of(np.array([["1"], ["b"]]), "x0") == ["1", "b"]


def test_anything_numpy_understands_is_accepted():
    class Lookalike:
        def __array__(self, dtype=None, copy=None):
            return np.ones((2, 1), dtype=dtype)

    assert cells_of(Lookalike(), "x0") == [1.0, 1.0]


def test_column_names_become_text():
    assert Table.of(pd.DataFrame([[1, 2]], columns=[0, ("a", 1)])).names == ("0", "('a', 1)")


def test_numeric_columns_are_contiguous():
    table = Table.of(np.zeros((4, 3)))
    assert all(cells.flags.c_contiguous for cells in table.cells.values())


@pytest.mark.slow
def test_two_thousand_columns_are_read():
    table = Table.of(pd.DataFrame(np.zeros((3, 2000))))
    assert len(table.names) == 2000
    assert table.n_rows == 3


def test_take_accepts_positions_and_masks():
    table = Table.of([[1, "a"], [2, "b"], [3, "c"]])
    for rows in (np.array([2, 0]), np.array([True, False, True])):
        taken = table.take(rows)
        assert taken.n_rows == 2
        assert sorted(taken.cells["x1"]) == ["a", "c"]


def test_select_returns_columns_in_the_order_asked():
    table = Table.of(pd.DataFrame({"a": [1], "b": [2], "c": [3]}))
    assert table.select(["c", "a"]).names == ("c", "a")


@pytest.mark.parametrize(
    "frame",
    [
        pandas_column([[1], [2, 3]], object),
        pandas_column([{"a": 1}], object),
        pandas_column(pd.period_range("2024", periods=2, freq="D")),
        pl.DataFrame({"x": [[1], [2]]}),
        pl.DataFrame({"x": [{"a": 1}]}),
        pl.DataFrame({"x": [b"a"]}),
        pa.table({"x": [[1], [2]]}),
    ],
)
def test_nested_and_other_types_are_refused(frame):
    with pytest.raises(UserError, match=r"'x' .*row"):
        Table.of(frame)


@pytest.mark.parametrize(
    "frame", [pandas_column([1, np.inf, -np.inf]), pandas_column([1, np.inf, -np.inf], object)]
)
def test_infinities_are_refused_and_located(frame):
    with pytest.raises(UserError, match=r"'x' .* 2 infinite .*row 1"):
        Table.of(frame)


def test_an_integer_beyond_float64_is_refused():
    with pytest.raises(UserError, match=r"'x' .*float64"):
        Table.of(pandas_column([10**400], object))


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame([[1, 2]], columns=["a", "a"]),
        pd.DataFrame([[1, 2]], columns=[0, "0"]),
        pa.table([[1], [2]], names=["a", "a"]),
    ],
)
def test_repeated_column_names_are_refused(frame):
    with pytest.raises(UserError, match=r"'(a|0)' 2 times"):
        Table.of(frame)


@pytest.mark.parametrize("data", [np.zeros((12, 0)), pd.DataFrame(index=range(12))])
def test_a_table_without_columns_is_refused(data):
    with pytest.raises(UserError, match=r"0 feature\(s\) \(shape=\(12, 0\)\) while a minimum of 1"):
        Table.of(data)


@pytest.mark.parametrize(
    "data", [np.zeros(3), [1, 2], pd.Series([1, 2]), np.zeros((1, 1, 1)), [[1, 2], [3]], 5]
)
def test_what_is_not_two_dimensional_is_refused(data):
    with pytest.raises(UserError, match=r"2-D array.*Reshape your data"):
        Table.of(data)


def test_sparse_matrices_are_refused():
    with pytest.raises(UserError, match=r"csr_matrix.*toarray"):
        Table.of(sparse.csr_matrix(np.eye(2)))


@pytest.mark.parametrize("data", [np.array([[1j]]), pd.DataFrame({"x0": [1j]})])
def test_complex_numbers_are_refused(data):
    with pytest.raises(
        UserError, match="Complex data not supported: column 'x0' must hold numbers"
    ):
        Table.of(data)


@pytest.mark.parametrize(
    ("number", "text"),
    [(3.0, "3"), (-0.0, "0"), (2.5, "2.5"), (-7.0, "-7"), (1e16, "1e+16"), (0.1, "0.1")],
)
def test_numbers_are_written_as_in_text_files(number, text):
    assert number_text(number) == text


def test_missing_marks_nan_and_none():
    assert missing(np.array([1.0, np.nan])).tolist() == [False, True]
    assert missing(np.array(["a", None], dtype=object)).tolist() == [False, True]


@pytest.mark.parametrize(
    ("values", "dtype"),
    [([1, 2], int), ([1.5, 2.5], float), ([True, False], bool), (["a", "b"], str)],
)
def test_masked_cells_are_missing(values, dtype):
    masked = np.ma.array(np.array(values, dtype)[:, None], mask=[[False], [True]])
    whole, gap = Table.of(np.array(values, dtype)[:, None]), Table.of(masked)
    assert gap.cells["x0"][0] == whole.cells["x0"][0]
    assert missing(gap.cells["x0"]).tolist() == [False, True]


FAR = pa.array([2**62, 0, -(2**62), None], pa.int64())


@pytest.mark.parametrize("zone", [None, "UTC", "Pacific/Kiritimati", "-11:00"])
@pytest.mark.parametrize(
    "to",
    [pa.table, lambda t: t.to_pandas(), pl.from_arrow],
    ids=["pyarrow", "pandas", "polars"],
)
def test_dates_beyond_the_calendar_are_its_ends(zone, to):
    days = cells_of(to(pa.table({"x": FAR.cast(pa.timestamp("us", zone))})))
    assert [day and int(day[:4]) for day in days] in ([9999, 1970, 1, None], [9999, 1969, 1, None])


@pytest.mark.parametrize("days", [pa.array([2**31 - 1, 0, -(2**31)], pa.int32())])
def test_days_beyond_the_calendar_are_its_ends(days):
    for rows in (table := pa.table({"x": days.cast(pa.date32())}), pl.from_arrow(table)):
        assert [day[:4] for day in cells_of(rows)] == ["9999", "1970", "0001"]
