"""Arrow streams: what is read, and what is refused before it is."""

import io
import struct
from contextlib import suppress
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import ipc

from fewlier.errors import UserError
from fewlier.service.arrow import read_arrow as read_rows
from fewlier.service.arrow import write_arrow
from fewlier.service.limits import Limits, Refusal
from fewlier.table import Table
from fewlier.table.inference import infer_schema

LIMITS = Limits(rows=1000)
ANY = SimpleNamespace(sources=(), check_names=lambda _: None)
ROWS = pa.table(
    {
        "amount": pa.array([1.5, None, 3.0]),
        "visits": pa.array([1, 2, 3], pa.int16()),
        "city": pa.array(["Bern", None, "Oslo"]).dictionary_encode(),
        "known": pa.array([True, None, False]),
        "day": pa.array([0, 1, None], pa.date32()),
    }
)


def read_arrow(body, limits, schema=ANY):
    """Return the table of a stream; any columns are fine."""
    return read_rows(body, limits, schema, ())[0]


def stream(rows, compression=None):
    sink = io.BytesIO()
    options = ipc.IpcWriteOptions(compression=compression)
    with ipc.new_stream(sink, rows.schema, options=options) as writer:
        writer.write_table(rows)
    return sink.getvalue()


def test_a_stream_is_read_as_the_library_reads_the_table():
    found, expected = read_arrow(stream(ROWS), LIMITS), Table.of(ROWS)
    assert found.temporal == expected.temporal == {"day": ""}
    for name, cells in expected.cells.items():
        np.testing.assert_array_equal(found.cells[name], cells)


def test_a_stream_that_polars_writes_is_read():
    sink = io.BytesIO()
    pl.DataFrame({"a": [1, None], "b": ["x", "y"]}).write_ipc_stream(sink)
    cells = read_arrow(sink.getvalue(), LIMITS).cells
    np.testing.assert_array_equal(cells["a"], [1, np.nan])
    assert cells["b"].tolist() == ["x", "y"]


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_a_compressed_stream_is_refused_before_it_grows(compression):
    bomb = stream(pa.table({"a": np.zeros(10**6)}), compression)
    assert len(bomb) < 40_000
    with pytest.raises(Refusal, match="must not be compressed") as refused:
        read_arrow(bomb, LIMITS)
    assert refused.value.status == 415


def test_a_compressed_dictionary_is_refused():
    words = pa.array(["x" * 1000 + str(number) for number in range(500)]).dictionary_encode()
    with pytest.raises(Refusal, match="must not be compressed"):
        read_arrow(stream(pa.table({"a": words}), "zstd"), LIMITS)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array([[1], [2]]), "'a' must hold numbers, text.*got list"),
        (pa.array([{"x": 1}]), "got struct"),
        (pa.array([b"x"]), "got binary"),
        (pa.nulls(1001), "at most 1000 rows; got 1001"),
        (pa.array([np.inf]), "'a' must hold finite numbers.*row 0"),
    ],
)
def test_columns_that_cannot_be_scored_are_refused(column, message):
    with pytest.raises(UserError, match=message):
        read_arrow(stream(pa.table({"a": column})), LIMITS)


def test_text_that_is_not_utf8_is_refused():
    offsets, text = pa.py_buffer(np.array([0, 1], np.int32)), pa.py_buffer(b"\xff")
    column = pa.StringArray.from_buffers(1, offsets, text)
    with pytest.raises(UserError, match="must be an Arrow stream; got a damaged one"):
        read_arrow(stream(pa.table({"a": column})), LIMITS)


def test_a_name_that_is_not_utf8_is_refused():
    body = stream(ROWS).replace(b"visits", b"visit\x80")
    with pytest.raises(UserError, match="must be an Arrow stream; got a damaged one"):
        read_arrow(body, LIMITS)


def test_two_columns_of_one_name_are_refused():
    rows = pa.Table.from_arrays([ROWS["amount"], ROWS["visits"]], ["amount", "amount"])
    with pytest.raises(UserError, match=r"amount.* exists 2 times"):
        read_arrow(stream(rows), LIMITS)


@given(st.binary(max_size=200))
def test_garbage_is_refused(body):
    with pytest.raises(UserError):
        read_arrow(body, LIMITS)


@given(st.data())
def test_a_damaged_stream_is_read_or_refused(data):
    body = bytearray(stream(ROWS))
    for place in data.draw(st.lists(st.integers(0, len(body) - 1), min_size=1, max_size=4)):
        body[place] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(body)))
    for damaged in (bytes(body), bytes(body[:cut])):
        with suppress(UserError):
            assert read_arrow(damaged, LIMITS).n_rows <= LIMITS.rows


def test_pandas_and_arrow_are_read_alike():
    frame = pd.DataFrame({"a": [1.0, None], "b": ["x", None]})
    found = read_arrow(stream(pa.Table.from_pandas(frame, preserve_index=False)), LIMITS)
    for name, cells in Table.of(frame).cells.items():
        np.testing.assert_array_equal(found.cells[name], cells)


TIGHT = Limits(body=100_000)
LONG = "x" * 9_000


def view(n):
    """Return n cells of text that all stand at the same place."""
    place = struct.pack("<i4sii", len(LONG), LONG[:4].encode(), 0, 0)
    buffers = [None, *map(pa.py_buffer, (place * n, LONG.encode()))]
    return pa.Array.from_buffers(pa.string_view(), n, buffers)


@pytest.mark.parametrize(
    "columns",
    [
        [pa.array([LONG] * 20).dictionary_encode()],
        [pa.array([LONG] * 3 + [None]).dictionary_encode()] * 4,
        [view(20)],
        [view(3)] * 4,
        [pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), view(20))],
        [pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), pa.array([""] * 20_000))],
    ],
    ids=["dictionary", "dictionaries", "view", "views", "dictionary of views", "empty words"],
)
def test_texts_that_would_grow_beyond_the_body_are_refused(columns):
    names = [f"x{number}" for number in range(len(columns))]
    body = stream(pa.table(columns, names))
    assert len(body) < TIGHT.body
    with pytest.raises(Refusal, match="at most 100000 bytes") as refused:
        read_arrow(body, TIGHT)
    assert refused.value.status == 413


def test_buffers_that_several_columns_share_are_counted_for_each():
    plain = stream(pa.table({f"x{number}": [LONG] * 4 for number in range(4)}))
    assert read_arrow(plain, Limits(body=len(plain))).n_rows == 4
    with pytest.raises(Refusal, match="counts for each"):
        read_arrow(plain, TIGHT)


def test_texts_within_the_body_are_read():
    words = pa.array(["x" * 10, None, "y"] * 300)
    for column in (words, words.dictionary_encode(), words.cast(pa.string_view())):
        found = read_arrow(stream(pa.table({"a": column}).slice(1, 700)), TIGHT)
        assert found.cells["a"].tolist() == words.slice(1, 700).to_pylist()


def test_columns_that_the_model_does_not_know_are_refused_before_they_are_read():
    schema = infer_schema(Table.of(ROWS.select(["amount"])))
    more = pa.table({"amount": [1.0] * 20, "more": pa.array([LONG] * 20).dictionary_encode()})
    with pytest.raises(UserError, match="unexpected 'more'"):
        read_arrow(stream(more), TIGHT, schema)


def test_an_id_comes_back_as_it_was_sent():
    rows = ROWS.append_column("id", pa.array([7, None, 9])).append_column("due", ROWS["day"])
    schema = infer_schema(Table.of(ROWS.select(["amount", "visits"])))
    body = stream(rows.select(["amount", "visits", "id", "due"]))
    table, passed = read_rows(body, LIMITS, schema, ("due", "visits"))
    assert table.names == ("amount", "visits")
    assert [*passed] == ["due", "visits", "id"]
    answer = write_arrow({"model": "pay"}, passed | {"p_value": np.zeros(3)})
    assert pa.ipc.open_stream(answer).read_all()["id"].to_pylist() == [7, None, 9]
    with pytest.raises(UserError, match="unexpected 'due'"):
        read_rows(body, LIMITS, schema, ())


def test_a_stream_without_rows_is_a_table_without_rows():
    for rows in (ROWS.slice(0, 0), pa.Table.from_batches([], ROWS.schema)):
        assert read_arrow(stream(rows), LIMITS).n_rows == 0
