import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stored import read, record_of, reread

from fewlier.errors import FormatError
from fewlier.table import MAX_LEVELS, Column, Encoder, Kind, Schema, Table, infer_schema

NAN = np.nan


def fitted(data, overrides=None):
    """Encoder of a training table, and the table in the form of its schema."""
    table = Table.of(data)
    schema = infer_schema(table, overrides)
    matched = schema.match(table)
    return Encoder.fit(schema, matched), matched


def encode(encoder, data):
    return encoder.encode(encoder.schema.match(Table.of(data)))


def one_column(values, kind, new):
    """Encode new cells of a column trained on values and declared to be of a kind."""
    encoder, _ = fitted(pd.DataFrame({"x": values}), {"x": kind})
    return encode(encoder, pd.DataFrame({"x": new}))


def assert_same(encoded, other):
    for name in ("inputs", "targets", "observed", "impossible"):
        np.testing.assert_array_equal(getattr(encoded, name), getattr(other, name), err_msg=name)


def mixed_frame(n=60, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "real": rng.standard_normal(n),
            "flag": rng.integers(0, 2, n),
            "count": rng.poisson(3, n),
            "amount": np.exp(2 * rng.standard_normal(n)),
            "colour": rng.choice(["red", "green", "blue"], n),
        }
    )
    frame.loc[3, "real"] = NAN
    frame.loc[5, "colour"] = None
    return frame


def test_shapes_and_dtypes_are_those_promised():
    encoder, table = fitted(mixed_frame())
    encoded = encoder.encode(table)
    assert len(encoded) == encoder.n_rows == 60
    assert encoded.inputs.shape == (60, encoder.n_inputs)
    assert encoded.targets.shape == (60, encoder.n_columns)
    assert (encoded.inputs.dtype, encoded.targets.dtype) == (np.float32, np.float32)
    assert (encoded.observed.dtype, encoded.impossible.dtype) == (bool, bool)


def test_inputs_belong_to_their_columns_indicators_last():
    encoder, _ = fitted(mixed_frame())
    assert encoder.n_levels.tolist() == [0, 0, 0, 0, 3]
    assert encoder.missable.tolist() == [True, False, False, False, True]
    np.testing.assert_allclose(encoder.missing_rate, [1 / 60, 0, 0, 0, 1 / 60])
    assert encoder.input_owner.tolist() == [0, 1, 2, 3, 4, 4, 4, 0, 4]


def test_training_rows_are_in_their_domain_and_read_within_zero_and_one():
    encoder, table = fitted(mixed_frame())
    encoded = encoder.encode(table)
    assert not encoded.impossible.any()
    assert encoded.observed.sum() == 60 * 5 - 2
    assert (encoded.inputs >= 0).all()
    assert (encoded.inputs <= 1).all()


def test_real_targets_are_fractions_of_the_training_range():
    encoded = one_column([10.0, 20, 30], "real", [10, 15, 30, 50, 0])
    np.testing.assert_allclose(encoded.targets[:, 0], [0, 0.25, 1, 2, -0.5])
    np.testing.assert_allclose(encoded.inputs[:, 0], [0, 0.25, 1, 2, -0.5])


def test_far_real_values_grow_logarithmically():
    encoded = one_column([0.0, 0.5, 1.0], "real", [3.0, -2.0, 101.0])
    expected = [2 + np.log(2), -1 - np.log(2), 2 + np.log(100)]
    np.testing.assert_allclose(encoded.targets[:, 0], expected, rtol=1e-6)
    np.testing.assert_array_equal(encoded.inputs[:, 0], [2, -1, 2])


@pytest.mark.parametrize("training", [[0.0, 0.3, 1.0], [0.0, 1e-300, 3e-300], [5.0, 5.0, 5.0]])
def test_far_values_stay_finite_and_ordered(training):
    new = [-1e308, -1e300, -1e10, -5.0, 0.0, 5.0, 1e10, 1e300, 1e308]
    targets = one_column(training, "real", new).targets[:, 0]
    assert np.isfinite(targets).all()
    assert (np.diff(targets) >= 0).all()
    assert targets[0] < targets[4] < targets[-1]


def test_far_values_are_odder_the_farther_they_are():
    targets = one_column([0.0, 0.3, 1.0], "real", [2.0, 2.1, 1e10, 1e300]).targets[:, 0]
    assert (np.diff(targets) > 0).all()


def test_a_range_beyond_float64_is_encoded():
    encoded = one_column([-1.7e308, 0.0, 1.7e308], "real", [-1.7e308, 0.0, 1.7e308])
    assert np.isfinite(encoded.targets).all()
    assert (np.diff(encoded.targets[:, 0]) > 0).all()


def test_a_third_value_of_a_binary_is_outside():
    encoded = one_column([2, 7, 7, 7], "binary", [2, 7, 3, NAN])
    np.testing.assert_allclose(encoded.targets[:, 0], [0, 1, 0.2, 0])
    assert encoded.impossible[:, 0].tolist() == [False, False, True, False]
    assert encoded.observed[:, 0].tolist() == [True, True, True, False]
    assert encoded.inputs[:, 0].tolist() == [0, 1, 0.75, 0.75]


@pytest.mark.parametrize("levels", [(0, 1e-310), (0, 1e-30), (-1e308, 1e308)])
def test_numbers_far_from_a_binary_are_finite(levels):
    encoded = one_column([*levels, levels[1]], "binary", [1e300, -1e300, 1.7e308])
    assert encoded.impossible.all()
    assert np.isfinite(encoded.targets).all()


def test_counts_are_scored_raw_and_read_as_scaled_logarithms():
    encoded = one_column([0, 2, 4], "count", [0, 2, 4, 1e12])
    assert encoded.targets[:, 0].tolist() == [0, 2, 4, np.float32(1e9)]
    expected = np.log1p([0, 1, 2]) / np.log(3)
    np.testing.assert_allclose(encoded.inputs[:3, 0], expected, rtol=1e-6)
    assert encoded.inputs[3, 0] == 2


def test_negative_and_fractional_counts_are_outside():
    encoded = one_column([0, 1, 2], "count", [-1, 0.5, 1])
    assert encoded.impossible[:, 0].tolist() == [True, True, False]
    assert encoded.targets[:, 0].tolist() == [-1, 0.5, 1]  # no conditional scores the first two
    assert np.isfinite(encoded.inputs).all()


def test_positive_values_are_scored_raw_within_float32():
    encoded = one_column([0, 0.5, 3, 1], "positive", [0, 0.5, 1e300, 1e-300, -1])
    assert encoded.targets[:, 0].tolist() == [0, 0.5, np.float32(1e30), 0, -1]
    assert encoded.impossible[:, 0].tolist() == [False] * 4 + [True]
    assert np.isfinite(encoded.inputs).all()


def test_categories_are_one_hot_in_the_order_of_their_frequency():
    encoded = one_column(["b", "a", "b"], "category", ["a", "b"])
    assert encoded.targets[:, 0].tolist() == [1, 0]
    assert encoded.inputs.tolist() == [[0, 1], [1, 0]]


def test_an_unseen_category_is_outside_and_finite():
    encoded = one_column(["b", "a", "b"], "category", ["new", None])
    assert encoded.impossible[:, 0].tolist() == [True, False]
    assert encoded.observed[:, 0].tolist() == [True, False]
    assert encoded.targets[:, 0].tolist() == [0, 0]
    assert encoded.inputs.tolist() == [[0, 0], [0, 0]]


def test_rare_categories_share_the_last_code():
    names = [f"{rank:03}" for rank in range(100) for _ in range(100 - rank)]
    encoder, _ = fitted(pd.DataFrame({"x": names}))
    encoded = encode(encoder, pd.DataFrame({"x": ["000", "062", "063", "099", "100"]}))
    assert encoder.n_levels.tolist() == [MAX_LEVELS]
    assert encoded.targets[:, 0].tolist() == [0, 62, 63, 63, 0]
    assert encoded.impossible[:, 0].tolist() == [False] * 4 + [True]
    assert encoded.inputs.sum(axis=1).tolist() == [1, 1, 1, 1, 0]


def test_a_count_coded_as_category_is_looked_up_as_a_number():
    encoder, _ = fitted(pd.DataFrame({"x": [0, 1, 2, 1]}), {"x": "category"})
    encoded = encode(encoder, pd.DataFrame({"x": [1.0, 2, 9]}))
    assert encoder.n_levels.tolist() == [3]
    assert encoded.targets[:, 0].tolist() == [0, 2, 9]
    assert encoded.impossible[:, 0].tolist() == [False, False, True]


def test_numbers_declared_categories_are_encoded_by_their_text():
    encoder, table = fitted(pd.DataFrame({"x": [10115, 20095, 10115, 80331]}), {"x": "category"})
    assert encoder.schema.columns[0].kind is Kind.CATEGORY
    assert encoder.encode(table).targets[:, 0].tolist() == [0, 1, 0, 2]


def test_a_missing_number_reads_as_the_mean_and_is_indicated():
    encoded = one_column([0.0, 1, 5, NAN], "real", [NAN, 5])
    np.testing.assert_allclose(encoded.inputs, [[0.4, 1], [1, 0]])
    assert encoded.targets[:, 0].tolist() == [0, 1]


def test_missing_where_training_never_was_has_no_indicator():
    encoded = one_column([0.0, 1, 5], "real", [NAN])
    assert encoded.inputs.shape == (1, 1)
    assert not encoded.observed.any()


@pytest.mark.parametrize("declared", [None, {"x": "real"}])
@pytest.mark.parametrize("values", [[7.0, 7.0], [0, 0], [NAN, NAN]])
def test_constant_and_empty_columns_are_encoded(values, declared):
    encoder, table = fitted(pd.DataFrame({"x": values}), declared)
    encoded = encoder.encode(table)
    assert encoded.targets.tolist() == [[0], [0]]
    assert not encoded.impossible.any()
    assert np.isfinite(encoded.inputs).all()


@pytest.mark.parametrize("value", [0.0, 1.0, -3e6, 1e-4])
def test_any_other_value_is_outside_the_domain_of_a_constant(value):
    encoder, _ = fitted(pd.DataFrame({"x": [value] * 3}))
    others = pd.DataFrame({"x": [value, np.nextafter(value, np.inf), -1e300, NAN]})
    assert encode(encoder, others).impossible[:, 0].tolist() == [False, True, True, False]


@pytest.mark.parametrize("value", [0.0, 1.0, -3e6, 1e-4])
def test_any_other_value_is_far_from_a_constant_declared_real(value):
    encoder, _ = fitted(pd.DataFrame({"x": [value] * 3}), {"x": "real"})
    others = pd.DataFrame({"x": [value, value + 0.5 * max(1, abs(value))]})
    same, other = encode(encoder, others).targets[:, 0]
    assert same == 0
    assert other > 5


def test_a_text_column_declared_category_but_missing_everywhere_has_one_code():
    encoder, table = fitted(pd.DataFrame({"x": [None, None], "y": [1, 2]}), {"x": "category"})
    assert encoder.n_levels.tolist() == [1, 0]
    assert encode(encoder, pd.DataFrame({"x": ["a"], "y": [1]})).impossible.tolist() == [
        [True, False]
    ]
    assert encoder.encode(table).inputs[:, 0].tolist() == [0, 0]


def test_a_count_that_is_always_zero_is_encoded():
    encoded = one_column([0, 0, 0], "count", [0, 3])
    assert encoded.targets[:, 0].tolist() == [0, 3]
    assert np.isfinite(encoded.inputs).all()


def test_an_almost_always_zero_column_is_encoded():
    encoder, table = fitted(pd.DataFrame({"x": [0] * 999 + [4]}))
    assert encoder.schema.columns[0].hardly_varies
    assert encoder.encode(table).targets.sum() == 1


def test_duplicated_columns_are_encoded_alike():
    frame = mixed_frame()[["real", "count"]]
    encoder, table = fitted(frame.assign(real_again=frame["real"], count_again=frame["count"]))
    encoded = encoder.encode(table)
    np.testing.assert_array_equal(encoded.targets[:, :2], encoded.targets[:, 2:])


def test_two_thousand_columns_are_encoded():
    encoder, table = fitted(np.random.default_rng(0).standard_normal((20, 2000)))
    assert encoder.encode(table).inputs.shape == (20, 2000)


def test_an_empty_table_is_encoded_as_no_rows():
    encoder, _ = fitted(mixed_frame())
    assert encode(encoder, mixed_frame().head(0)).inputs.shape == (0, encoder.n_inputs)


def test_an_encoder_of_no_rows_is_finite():
    _, table = fitted(mixed_frame())
    schema = infer_schema(table)
    encoder = Encoder.fit(schema, table.take(np.array([], dtype=int)))
    assert encoder.n_rows == 0
    assert np.isfinite(encoder.encode(table).inputs).all()


def test_levels_come_from_the_schema_and_ranges_from_the_rows_given():
    table = Table.of(pd.DataFrame({"x": [0.0, 1, 2, 9], "t": ["a", "a", "b", "c"]}))
    encoder = Encoder.fit(infer_schema(table), table.take(np.arange(2)))
    encoded = encoder.encode(table)
    assert encoded.targets[:, 1].tolist() == [0, 0, 1, 2]
    assert encoded.targets[1, 0] == 1


def test_log_scale_is_the_log_span_of_real_columns_only():
    frame = pd.DataFrame({"r": [1.0, 3, 9], "n": [0, 1, 2], "t": list("aab")})
    encoder, _ = fitted(frame)
    np.testing.assert_allclose(encoder.log_scale, [np.log(8), 0, 0])


def test_mean_targets_leave_out_missing_cells():
    encoder, _ = fitted(pd.DataFrame({"r": [0, 1.5, 4.5, NAN], "n": [0, 1, 2, 5]}))
    np.testing.assert_allclose(encoder.mean_target, [4 / 9, 2])


def test_columns_may_come_in_another_order():
    encoder, table = fitted(mixed_frame())
    assert_same(encode(encoder, mixed_frame().iloc[:, ::-1]), encoder.encode(table))


def test_the_same_table_encodes_equally_from_every_library():
    frame = mixed_frame()
    encoder, table = fitted(frame)
    expected = encoder.encode(table)
    for data in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        assert fitted(data)[0] == encoder
        assert_same(encode(encoder, data), expected)


def test_the_same_numbers_encode_equally_as_frame_and_array():
    frame = mixed_frame().drop(columns="colour")
    expected = (lambda encoder, table: encoder.encode(table))(*fitted(frame))
    for data in (frame.to_numpy(), frame.to_numpy(object), frame.to_numpy().tolist()):
        encoder, table = fitted(data)
        assert_same(encoder.encode(table), expected)


def test_nullable_boolean_and_categorical_dtypes_encode_as_plain_ones():
    plain = pd.DataFrame({"n": [1.0, NAN, 3, 2], "b": ["True", None, "False", "True"]})
    special = pd.DataFrame(
        {
            "n": pd.array([1, None, 3, 2], dtype="Int64"),
            "b": pd.array([True, None, False, True], dtype="boolean"),
        }
    )
    encoder, table = fitted(plain)
    assert_same(encode(encoder, special), encoder.encode(table))
    assert_same(encode(encoder, plain.astype({"b": "category"})), encoder.encode(table))


@given(st.lists(st.integers(0, 59), max_size=20), st.integers(0, 5))
@settings(max_examples=30)
def test_a_row_is_encoded_alike_in_any_company(rows, seed):
    encoder, _ = fitted(mixed_frame())
    table = encoder.schema.match(Table.of(mixed_frame(seed=seed)))
    rows = np.array(rows, dtype=int)
    assert_same(encoder.encode(table.take(rows)), encoder.encode(table).take(rows))


cells = st.floats(allow_infinity=False) | st.integers(0, 5)


@pytest.mark.slow
@given(
    st.lists(st.tuples(cells, cells, st.none() | st.text(max_size=2)), min_size=1, max_size=12),
    st.tuples(cells, cells, st.none() | st.text(max_size=2)),
    st.sampled_from([None, "real", "count", "category"]),
)
def test_any_table_encodes_finitely_and_its_encoder_survives_json(rows, new_row, coding):
    frame = pd.DataFrame(rows, columns=["a", "b", "t"])
    encoder, table = fitted(frame, coding)
    assert reread(encoder) == encoder
    training = encoder.encode(table)
    assert not training.impossible.any()
    # A text column that is missing everywhere counts as numeric, and refuses text.
    if frame["t"].isna().all():
        new_row = (*new_row[:2], None)
    for encoded in (training, encode(encoder, pd.DataFrame([new_row], columns=frame.columns))):
        assert np.isfinite(encoded.targets).all()
        assert (encoded.inputs >= -1).all()
        assert (encoded.inputs <= 2).all()


def damaged(**changes):
    encoder, _ = fitted([[1.5], [2.0], [4.0]])
    return record_of(encoder) | changes


def damaged_stats(**changes):
    return damaged(stats=[damaged()["stats"][0] | changes])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "'one' must be a record"),
        (damaged(schema=[]), "'one.schema' must be a record"),
        (damaged(stats=[]), "not all of its columns have statistics"),
        (damaged(stats=[1]), "'one.stats.0' must be a record"),
        (damaged(n_rows=-1), "n_rows' must be an integer from 0 .*; got -1"),
        (damaged(n_rows=True), "n_rows' must be an integer from 0 .*; got True"),
        (damaged_stats(low="0"), "low' must be a finite number"),
        (damaged_stats(low=float("inf")), "low' must be a finite number"),
        (damaged_stats(span=0.0), "span' must be a number between 0"),
        (damaged_stats(unit=-1.0), "unit' must be a number between 0"),
        (damaged_stats(missing_rate=2.0), "missing_rate' must be a finite number from 0 to 1"),
    ],
)
def test_a_damaged_encoder_is_refused(data, message):
    with pytest.raises(FormatError, match=message):
        read(Encoder, data)


def test_the_table_layer_loads_neither_torch_nor_a_dataframe_package():
    code = (
        "import sys, numpy, fewlier.table as t; t.Table.of(numpy.eye(2));"
        "sys.exit(bool({'torch', 'pandas', 'polars', 'narwhals'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@given(value=st.floats(-1e300, 1e300))
def test_decoding_gives_back_what_was_encoded_however_far_away(value):
    schema = Schema((Column("r", Kind.REAL, Kind.REAL), Column("k", Kind.COUNT, Kind.COUNT)))
    cells = Table({"r": np.array([-3.0, 5.0, 1.0]), "k": np.array([0.0, 4.0, 2.0])})
    encoder = Encoder.fit(schema, cells)
    count = float(min(abs(round(value)), 10**6))
    rows = Table({"r": np.array([value]), "k": np.array([count])})
    targets = encoder.encode(rows).targets.astype(np.float64)
    decoded = encoder.decode(np.array([0, 1]), targets.T)
    far = 1 + np.log1p(abs(value))  # the exponent of a far value has the digits of a float32
    np.testing.assert_allclose(decoded[0, 0], value, rtol=1e-6 * far, atol=1e-5)
    assert decoded[1, 0] == count


def test_a_number_beyond_all_others_is_encoded_as_by_an_encoder_that_has_not_seen_it():
    frame = mixed_frame().assign(real=np.linspace(0, 1, 60) ** 2)
    encoder, table = fitted(frame)
    encoded = encoder.encode(table)
    marked = encoder.outermost(encoded, np.arange(60))
    assert marked[:, 0].nonzero()[0].tolist() == [0, 59]
    outside = encoder.as_outside(encoded, marked)
    for row in (0, 59):
        rest = table.take(np.delete(np.arange(60), row))
        fresh = Encoder.fit(encoder.schema, rest).encode(table.take(np.array([row])))
        assert outside.targets[row, 0] == pytest.approx(fresh.targets[0, 0], rel=1e-5)
        assert outside.inputs[row, 0] == pytest.approx(fresh.inputs[0, 0], rel=1e-5)
    unmarked = ~marked
    np.testing.assert_array_equal(outside.targets[unmarked], encoded.targets[unmarked])


def test_a_number_that_another_row_has_too_is_not_beyond_all_others_but_a_copy_s_is():
    encoder, table = fitted(pd.DataFrame({"x": [1.0, 1.0, 2.2, 3.1, 3.1, 2.7]}), {"x": "real"})
    encoded = encoder.encode(table)
    found = encoder.outermost(encoded, np.array([0, 0, 1, 2, 3, 4]))
    assert found[:, 0].tolist() == [True, True, False, False, False, False]
