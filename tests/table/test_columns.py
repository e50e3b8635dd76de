import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stored import read, record_of, reread

from fewlier.errors import FormatError, UserError
from fewlier.table import CODINGS, Column, Kind, Schema, Table, infer_schema
from fewlier.table.column_values import Values
from fewlier.table.inference import is_strongly_skewed, looks_like_counts
from fewlier.table.numbers import PLAIN, NumberForm
from fewlier.table.schema import LeftOut
from fewlier.table.text_forms import Unread

RNG = np.random.default_rng(0)
LOGNORMAL = np.exp(2 * RNG.standard_normal(300))


def column_of(values, override=None, dtype=None):
    table = Table.of(pd.DataFrame({"x": pd.Series(values, dtype=dtype)}))
    overrides = None if override is None else {"x": override}
    return infer_schema(table, overrides).columns[0]


def kind_of(values):
    column = column_of(values)
    assert column.coding is column.kind
    return column.kind.value


@pytest.mark.parametrize(
    "values", [RNG.integers(1, 6, 100), [0] * 997 + [1, 2, 3], [7, 9, 12] * 10]
)
def test_integers_of_few_values_are_counts_scored_value_by_value(values):
    column = column_of(values)
    assert (column.kind, column.coding) == (Kind.COUNT, Kind.CATEGORY)
    assert set(column.levels) == {str(value) for value in values}


@pytest.mark.parametrize(
    "values",
    [
        *([1, 2, 3, 4, 5] * 9, np.arange(21).repeat(20), [-1, 0, 1] * 10, [0.5, 1, 2] * 10),
        [0, 4_000_000, 6_000_000, 10_000_000] * 20,  # a sum between these is not impossible
    ],
)
def test_integers_are_not_scored_by_value_if_many_rare_round_negative_or_fractional(values):
    assert column_of(values).coding is not Kind.CATEGORY


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (RNG.standard_normal(50), "real"),
        ([0, 1, 1, 0], "binary"),
        ([-1.5, 7, np.nan, 7], "binary"),
        (RNG.poisson(4, 70), "count"),
        ([1, 2, 3, 2, 1], "count"),
        ([2, 3, 4, 3], "real"),  # counts start at 0 or 1
        ([0, 1, 2, -1], "real"),
        ([0, 0, 0, 500, 900], "real"),  # overdispersed
        (LOGNORMAL, "positive"),
        (np.floor(1e4 * LOGNORMAL), "positive"),
        (-LOGNORMAL, "real"),
        ([0, 1, 2e300, 1e300], "real"),
        ([np.nan, np.nan], "category"),
        (["a", "b", "a", None], "category"),
        ([True, False, True], "category"),
    ],
)
def test_kinds_are_inferred_from_values(values, kind):
    assert kind_of(values) == kind


@pytest.mark.parametrize(
    ("values", "levels"),
    [
        ([5, 5, 5], ("5",)),
        ([0.5, np.nan], ("0.5",)),
        ([-1e300] * 2, ("-1e+300",)),
        ([0.0] * 97 + [0.5, 1.7, -3.3], ("0", "-3.3", "0.5", "1.7")),
        ([2.5] * 91 + [3.5, 4.5, 5.5] * 3, ("2.5", "3.5", "4.5", "5.5")),
    ],
)
def test_numbers_that_hardly_vary_are_scored_value_by_value(values, levels):
    column = column_of(values)
    assert (column.kind, column.coding, column.levels) == (Kind.REAL, Kind.CATEGORY, levels)
    assert reread(column) == column
    np.testing.assert_array_equal(
        column.values(np.array([float(levels[-1]), 8.25, np.nan]))[1:], 2 * [np.nan]
    )


@pytest.mark.parametrize(
    "values", [[0.0] * 90 + [0.5, 1.5] * 5, [0.5] * 20 + [1.5, -2.5], np.arange(10) / 4]
)
def test_numbers_vary_where_ten_differ_or_the_rows_are_few(values):
    assert column_of(values).coding is not Kind.CATEGORY


def test_what_labelled_anomalies_alone_have_does_not_make_a_column_vary():
    anomalies = np.linspace(0.1, 9.3, 30)
    table = Table.of(pd.DataFrame({"x": [*np.zeros(70), *anomalies]}))
    is_normal = np.arange(100) < 70
    column = infer_schema(table, None, is_normal).columns[0]
    assert (column.coding, column.levels) == (Kind.CATEGORY, ("0",))
    assert np.isnan(column.values(anomalies)).all()
    assert infer_schema(table).columns[0].coding is Kind.REAL


@pytest.mark.parametrize("kind", ["real", "count", "positive"])
def test_a_declared_kind_holds_for_a_constant_too(kind):
    assert column_of([5, 5, 5], kind).coding == kind


@pytest.mark.parametrize("levels", [["00"], ["five"], ["1e999"], [5.0], ["5.0"], ["5", "5"]])
def test_levels_that_are_no_numbers_of_a_constant_are_refused(levels):
    record = GOOD | {"kind": "real", "coding": "category", "levels": levels}
    with pytest.raises(FormatError, match="levels"):
        read(Column, record)


def test_a_binary_column_knows_its_low_and_high_value():
    assert column_of([7, -1.5, 7]).levels == (-1.5, 7.0)


def test_categories_are_ordered_by_frequency_then_alphabet():
    assert column_of(["c", "b", "a", "b", "d", "d", None]).levels == ("b", "d", "a", "c")


def test_counts_are_not_overdispersed_integers():
    assert looks_like_counts(Values(np.array([0.0, 1, 2, 3])))
    assert not looks_like_counts(Values(np.array([0.0, 1, 2.5])))
    assert not looks_like_counts(Values(np.array([0.0, 1, 90])))
    assert not looks_like_counts(Values(np.array([0.0, 1, 1e300])))


def test_small_integers_are_never_strongly_skewed():
    tail = np.array([0.0] * 100 + [1, 1000])
    assert not is_strongly_skewed(Values(tail))
    assert is_strongly_skewed(Values(tail + 0.5))
    assert is_strongly_skewed(Values(2 * tail))
    assert not is_strongly_skewed(Values(np.array([0.5, 1, 2, 3])))


IDS = [f"id{row}" for row in range(21)]
SENTENCES = [f"the {row} of them came" for row in range(21)]


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        (
            [f"2026-03-{d:02d}" for d in range(1, 12)] + [f"{d}.{d} %" for d in range(10)],
            "an identifier, or numbers or dates in more than one form: 21 different texts in "
            "21 cells",
        ),
        (IDS, "an identifier: 21 different texts in 21 cells"),
        (SENTENCES, "free text: 21 different texts in 21 cells"),
    ],
)
def test_text_of_mostly_distinct_values_is_left_out(texts, reason):
    table = Table.of(pd.DataFrame({"a": range(21), "x": texts, "b": 0.5}))
    schema = infer_schema(table)
    assert schema.names == ("a", "b")
    assert schema.left_out == (LeftOut("x", 1, reason),)
    assert schema.given == ("a", "x", "b")
    assert reread(schema) == schema
    for rows in (table, table.select(["b", "a"])):  # present or absent
        assert schema.match(rows).names == ("a", "b")
    assert infer_schema(table, {"x": "category"}).names == ("a", "x", "b")


def test_a_column_is_left_out_on_demand_whatever_it_holds():
    frame = pd.DataFrame({"a": [1, 2, 4], "x": [[1], {}, "1.200"]})
    table = Table.of(frame, ignore=["x"])
    schema = infer_schema(table, {"x": "ignore"})
    assert (schema.names, schema.given) == (("a",), ("a", "x"))


def test_a_table_must_have_a_column_to_learn_from():
    with pytest.raises(UserError, match=r"'x' \(an identifier: 21 "):
        column_of(IDS)


def test_of_many_columns_a_message_names_a_few():
    table = Table.of(pd.DataFrame({f"x{i}": IDS for i in range(200)}))
    with pytest.raises(UserError, match=r"'x0' .* 190 more") as caught:
        infer_schema(table)
    assert len(str(caught.value)) < 1000
    table = Table.of(pd.DataFrame({f"x{i}": ["1.200"] for i in range(200)}))
    with pytest.raises(UserError, match="200 columns") as caught:
        infer_schema(table)
    assert str(caught.value).endswith("\n- and 180 more")


def test_all_that_is_wrong_with_columns_is_told_at_once():
    table = Table.of(pd.DataFrame({"a": ["1.200"], "b": [-1], "c": ["x"], "d": ["03/04/2026"]}))
    overrides = {"b": "count", "c": "odd", "nowhere": "real"}
    problems = {"e": UserError("Column 'e' is nested.")}
    with pytest.raises(UserError) as caught:
        infer_schema(table, overrides, None, problems)
    first, *lines = str(caught.value).splitlines()
    assert first == "6 columns cannot be used as they are:"
    beginnings = [
        "- Column 'a' does not show whether '1.200' has a fraction or thousands",
        "- Column 'b' is declared 'count' but has 1 negative value",
        "- Column 'c' must be declared one of",
        "- Column 'd' does not show which day '03/04/2026' is",
        "- Column 'e' is nested.",
        "- columns={'nowhere': 'real'} must name a column of the table; got 'nowhere'.",
    ]
    assert [line.startswith(text) for line, text in zip(lines, beginnings, strict=True)] == 6 * [
        True
    ]


def test_few_or_repeated_texts_are_accepted():
    assert len(column_of([f"id{row}" for row in range(20)]).levels) == 20
    assert len(column_of([f"id{row // 2}" for row in range(40)]).levels) == 20


def test_a_text_column_declared_category_is_accepted_however_distinct():
    assert len(column_of([f"id{row}" for row in range(30)], "category").levels) == 30


def test_a_table_without_rows_is_refused():
    with pytest.raises(UserError, match="rows; got 0"):
        infer_schema(Table.of(np.zeros((0, 2))))


def test_an_override_among_the_codings_of_a_kind_keeps_the_kind():
    column = column_of([0, 1, 2, 1, 2, 2], "real")
    assert (column.kind, column.coding, column.levels) == (Kind.COUNT, Kind.REAL, ())


def test_a_count_coded_as_category_has_its_integers_as_levels():
    column = column_of([0, 1, 2, 1, 2, 2], "category")
    assert (column.kind, column.coding) == (Kind.COUNT, Kind.CATEGORY)
    assert column.levels == ("2", "1", "0")


@pytest.mark.parametrize("large", [1e16, 1e300])
def test_the_levels_of_a_count_are_integers_of_any_size(large):
    column = column_of([0.0, 1, 2] * 100 + [2, large])
    assert (column.kind, column.coding) == (Kind.COUNT, Kind.CATEGORY)
    assert column.levels == ("2", "0", "1", str(int(large)))
    assert reread(column) == column
    np.testing.assert_array_equal(column.values(np.array([large, 2])), [3, 0])


def test_a_binary_coded_as_category_keeps_its_levels():
    column = column_of([3, 5, 5], "category")
    assert (column.kind, column.coding, column.levels) == (Kind.BINARY, Kind.CATEGORY, (3.0, 5.0))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([0, 0, 0, 500, 900], "count"),
        ([2, 3, 4, 3], "positive"),
        ([10115, 20095, 80331], "category"),
        ([0, 0], "binary"),
        ([0.5, 7], "positive"),
    ],
)
def test_a_declared_kind_that_the_data_bear_out_replaces_the_inferred_one(values, kind):
    column = column_of(values, kind)
    assert (column.kind, column.coding) == (kind, kind)


def test_a_declared_binary_that_shows_one_value_is_zero_or_one():
    assert column_of([0, 0], "binary").levels == (0.0, 1.0)
    assert column_of([np.nan], "binary").levels == (0.0, 1.0)


def test_numbers_written_as_text_can_be_declared_numeric():
    assert column_of(["1", "2.5", None, "-3"], "real") == Column("x", Kind.REAL, Kind.REAL)


def test_one_override_for_all_applies_where_it_can():
    frame = pd.DataFrame(
        {"flag": [0, 1, 0], "sign": [-1, 1, 1], "n": [0, 1, 2], "r": [0.5, 1, 2], "t": list("aba")}
    )
    codings = {
        kind: [column.coding.value for column in infer_schema(Table.of(frame), kind).columns]
        for kind in ("real", "count", "category")
    }
    assert codings == {
        "real": ["real", "real", "real", "real", "category"],
        "count": ["count", "binary", "count", "real", "category"],
        "category": ["category", "category", "category", "real", "category"],
    }


@pytest.mark.parametrize(
    ("values", "kind", "row", "found"),
    [
        ([1, -1, 2, -2, -3], "count", 1, "3 negative"),
        ([1, 2, 2.5], "count", 2, "1 fractional"),
        ([0.5, 1.5], "count", 0, "2 fractional"),
        ([1, 2.5, -1], "positive", 2, "1 negative"),
        ([5, 1, 3, 3], "binary", 2, "3 different"),
        ([5, 5], "binary", None, "value 5"),
        (["1", "b"], "real", 1, "'b'"),
        (["1", "inf"], "real", 1, "1 infinite"),
    ],
)
def test_a_declared_kind_is_checked_against_the_data(values, kind, row, found):
    with pytest.raises(UserError, match=found) as caught:
        column_of(values, kind)
    assert (caught.value.column, caught.value.row) == ("x", row)


def test_an_override_of_an_unknown_column_is_refused():
    with pytest.raises(UserError, match=r"'y'.*'x0'"):
        infer_schema(Table.of([[1]]), {"y": "real"})


def test_an_override_by_an_unknown_kind_is_refused():
    with pytest.raises(UserError, match=r"'x0' .*'real', .*'integer'"):
        infer_schema(Table.of([[1]]), {"x0": "integer"})
    with pytest.raises(UserError, match=r"'real', .*'text'"):
        infer_schema(Table.of([[1]]), "text")


def test_match_orders_columns_by_name():
    schema = infer_schema(Table.of(pd.DataFrame({"a": [1, 2], "b": ["u", "v"]})))
    matched = schema.match(Table.of(pd.DataFrame({"b": ["v"], "a": [3]})))
    assert matched.names == ("a", "b")
    assert matched.cells["b"].tolist() == ["v"]


def test_match_names_missing_and_unexpected_columns():
    schema = infer_schema(Table.of(pd.DataFrame({"a": [1], "b": [1], "c": [1]})))
    table = Table.of(pd.DataFrame({"a": [1], "z": [1]}))
    with pytest.raises(UserError, match=r"the 3 columns of .* without 'b', 'c' and with .* 'z'\."):
        schema.match(table)


def test_match_names_only_a_few_of_many_columns():
    schema = infer_schema(Table.of(np.zeros((1, 2000))))
    with pytest.raises(UserError, match=r"without 'x1', 'x2', 'x3', 'x4', 'x5' and 1994 more\."):
        schema.match(Table.of(np.zeros((1, 1))))


def test_match_reads_numbers_written_as_text():
    schema = infer_schema(Table.of([[1.5], [2], [4]]))
    cells = schema.match(Table.of([["3"], [None], [" 1e3 "]])).cells["x0"]
    np.testing.assert_array_equal(cells, [3, np.nan, 1000])


def test_match_counts_cells_in_another_form_as_missing():
    schema = infer_schema(Table.of([["$1,200"], ["$3.50"], ["$4"]]))
    table = schema.match(Table.of([["$3,000"], ["high"], [""], ["7"], ["1.200,5 €"]]))
    np.testing.assert_array_equal(table.cells["x0"], [3000, np.nan, np.nan, 7, np.nan])
    assert table.unread == {"x0": Unread(2, 1, "high")}


def test_match_refuses_a_column_that_is_written_otherwise_throughout():
    schema = infer_schema(Table.of([["1,5"], ["2,25"], ["4,0"]]))
    with pytest.raises(
        UserError,
        match=r"'x0' must hold numbers written like 1200,50; got 21 texts of 23 that are not, such "
        r"as '1.5' \(first at row 2\)",
    ):
        schema.match(Table.of([["3,5"], ["2"], *[["1.5"]] * 21]))


def test_match_refuses_an_infinite_number():
    schema = infer_schema(Table.of([[1.5], [2], [4]]))
    with pytest.raises(UserError, match=r"'x0' .*row 1"):
        schema.match(Table.of([["3"], ["-inf"]]))


@pytest.mark.parametrize(
    ("said", "expected"),
    [("1.234,5", 1200), ("1234.5", 1.2), ("real:0,5", None), ("count:1.234,5", 1200)],
)
def test_a_form_is_declared_by_an_example(said, expected):
    table = Table.of([["1.200"], ["3.400"], ["5.600"]])
    if expected is None:
        with pytest.raises(UserError, match=r"1200,50.* 3 .*'1.200'"):
            infer_schema(table, {"x0": said})
        return
    schema = infer_schema(table, {"x0": said})
    assert schema.match(table).cells["x0"][0] == expected
    assert schema.columns[0].coding.value == ("count" if "count" in said else "real")


def test_an_ambiguous_column_is_refused_with_both_readings():
    message = "Column 'x0' does not show whether '1.200' has a fraction or thousands"
    readings = "columns={'x0': '1200.50'} or columns={'x0': '1.200,50'}"
    with pytest.raises(UserError, match=f"{re.escape(message)}.*{re.escape(readings)}"):
        infer_schema(Table.of([["1.200"], ["3.400"]]))


def test_another_column_of_the_table_may_settle_what_a_mark_is():
    rows = [["1.200", "0.5", "a"], ["3.400", "2", "b"]]
    assert infer_schema(Table.of(rows)).columns[0].form == PLAIN
    german = [[cell.replace("0.5", "0,5") for cell in row] for row in rows]
    assert infer_schema(Table.of(german)).columns[0].form == NumberForm(",", ".")
    both = [[*row, "1,5"] for row in rows]
    with pytest.raises(UserError, match=r"'1.200'"):
        infer_schema(Table.of(both))


def test_categories_by_type_are_no_numbers():
    for frame in (
        pd.DataFrame({"x": pd.Categorical(["1", "2", "2"])}),
        pa.table({"x": pa.array(["1", "2", "2"]).dictionary_encode()}),
        pl.DataFrame({"x": pl.Series(["1", "2", "2"], dtype=pl.Enum(["1", "2"]))}),
    ):
        assert infer_schema(Table.of(frame)).columns[0].kind is Kind.CATEGORY
    assert infer_schema(Table.of(pd.DataFrame({"x": ["1", "2", "2"]}))).columns[0].kind is not (
        Kind.CATEGORY
    )


def test_match_reads_numbers_as_categories():
    schema = infer_schema(Table.of([["3"], ["2.5"], ["a"]]))
    assert schema.match(Table.of([[3.0], [2.5], [np.nan]])).cells["x0"].tolist() == [
        "3",
        "2.5",
        None,
    ]


@pytest.mark.parametrize(
    ("column", "cells", "values"),
    [
        (Column("x", Kind.REAL, Kind.REAL), [-2, 0.5, np.nan], [-2, 0.5, np.nan]),
        (Column("x", Kind.COUNT, Kind.COUNT), [3, -1, 0.5, np.nan], [3, np.nan, np.nan, np.nan]),
        (Column("x", Kind.POSITIVE, Kind.POSITIVE), [0, 2.5, -1], [0, 2.5, np.nan]),
        (Column("x", Kind.BINARY, Kind.BINARY, (2.0, 5.0)), [5, 2, 3, 9], [1, 0, np.nan, np.nan]),
        (
            Column("x", Kind.COUNT, Kind.CATEGORY, ("7", "0", "10")),
            [0, 10, 7, 8],
            [1, 2, 0, np.nan],
        ),
    ],
)
def test_values_are_nan_outside_the_domain(column, cells, values):
    np.testing.assert_array_equal(column.values(np.array(cells, dtype=float)), values)


def test_values_of_categories_are_their_positions():
    column = Column("x", Kind.CATEGORY, Kind.CATEGORY, ("b", "a"))
    cells = np.array(["a", "b", "new", None], dtype=object)
    np.testing.assert_array_equal(column.values(cells), [1, 0, np.nan, np.nan])


numbers = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def column_fields(draw, name):
    kind = draw(st.sampled_from(list(Kind)))
    coding = draw(st.sampled_from(sorted(CODINGS[kind])))
    levels = ()
    if kind is Kind.BINARY:
        levels = tuple(sorted(draw(st.lists(numbers, min_size=2, max_size=2, unique=True))))
    elif kind is Kind.COUNT and coding is Kind.CATEGORY:
        counts = st.lists(st.integers(0, 10**9), min_size=1, max_size=9, unique=True)
        levels = tuple(map(str, draw(counts)))
    elif coding is Kind.CATEGORY:
        levels = tuple(draw(st.lists(st.text(), max_size=9, unique=True)))
    # Not a Column: its run-time type check draws random numbers, which hypothesis must not see.
    marks = draw(st.sampled_from([(".", ""), (",", "."), (".", "'")]))
    form = NumberForm(*marks, draw(st.sampled_from(["", "$"])), draw(st.sampled_from(["", "km/h"])))
    return name, kind, coding, levels, form


@pytest.mark.slow
@given(
    st.lists(st.text(), min_size=1, max_size=5, unique=True).flatmap(
        lambda names: st.tuples(*map(column_fields, names))
    )
)
def test_a_schema_survives_json(drawn):
    schema = Schema(tuple(Column(*fields) for fields in drawn))
    assert reread(schema) == schema


GOOD = record_of(Column("x", Kind.COUNT, Kind.REAL))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, "'one.columns' must be a list"),
        ([], "it has no columns"),
        (["x"], "'one.columns.0' must be a record"),
        ([{"name": "x"}], "'one.columns.0.kind' is missing"),
        ([GOOD | {"more": 1}], "it holds .*more"),
        ([GOOD | {"name": 1}], "name' must be text; got 1"),
        ([GOOD | {"kind": "odd"}], "kind' must be one of real, binary"),
        ([GOOD | {"kind": ["real"]}], "kind' must be one of real, binary"),
        ([GOOD | {"coding": {}}], "coding' must be one of"),
        ([GOOD | {"kind": "real", "coding": "count"}], "coding' must be one of .*; got 'count'"),
        ([GOOD | {"levels": None}], "levels' must be a list of texts"),
        ([GOOD | {"levels": ["a", 1.0]}], "levels' must be a list of texts"),
        ([GOOD | {"levels": [True]}], "levels' must be a list of texts"),
        ([GOOD | {"kind": "binary", "levels": ["a"]}], "levels' must be a list of numbers"),
        ([GOOD | {"levels": ["a"]}], "'one.columns.0' has levels that it cannot hold"),
        ([GOOD | {"coding": "category"}], "has levels that it cannot hold"),
        ([GOOD | {"coding": "category", "levels": ["1.5"]}], "has levels that it cannot hold"),
        ([GOOD | {"kind": "binary", "levels": [1.0, 0.0]}], "has levels that it cannot hold"),
        ([GOOD | {"kind": "binary", "levels": [1.0]}], "has levels that it cannot hold"),
        ([GOOD | {"kind": "category", "coding": "category", "levels": ["a", "a"]}], "levels"),
        ([GOOD | {"form": None}], "form' must be a record"),
        ([GOOD, GOOD], "two of its columns have the same name"),
    ],
)
def test_a_damaged_schema_is_refused(data, message):
    with pytest.raises(FormatError, match=message):
        read(Schema, {"columns": data, "left_out": []})


LEFT = {"name": "id", "position": 0, "reason": "an identifier"}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "left_out' must be a list"),
        ([{"name": "id"}], "position' is missing"),
        ([LEFT | {"position": -1}], "position' must be an integer"),
        ([LEFT | {"position": True}], "position' must be an integer"),
        ([LEFT | {"name": None}], "name' must be text"),
        ([LEFT | {"name": "x"}], "the same name"),
        ([LEFT, LEFT], "the same name"),
    ],
)
def test_columns_left_out_that_cannot_have_been_are_refused(data, message):
    with pytest.raises(FormatError, match=message):
        read(Schema, {"columns": [GOOD], "left_out": data})


@pytest.mark.parametrize("spelling", [str.lower, str.title, str.upper])
def test_truth_values_are_the_same_category_however_they_are_spelled(spelling):
    column = Column("vip", Kind.CATEGORY, Kind.CATEGORY, ("False", "True", "unknown"))
    cells = np.array([spelling("true"), spelling("false"), "unknown", "other"], dtype=object)
    assert column.values(cells).tolist()[:3] == [1, 0, 2]
    assert np.isnan(column.values(cells)[3])
