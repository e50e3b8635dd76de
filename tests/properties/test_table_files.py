"""Any table survives its file; any bytes give rows or an error for the user."""

import bz2
import gzip
import io
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fewlier import UserError
from fewlier.files.folder import open_table
from fewlier.files.writing import create_table

AWKWARD = st.text(st.sampled_from("ab,;|\t\"'\r\n é日 \x00\ufeff0"), max_size=6)
CELLS = AWKWARD | st.text(st.characters(codec="utf-8"), max_size=8)
# A single column shows no delimiter, so that its cells must have no comma, and the mark of UTF-8 at
# the very beginning of a file is no part of its first name.
NAMES = CELLS.filter(lambda name: not name.startswith("\ufeff"))


@st.composite
def tables(draw):
    names = draw(st.lists(NAMES, min_size=2, max_size=4, unique=True))
    n_rows = draw(st.integers(1, 5))
    columns = [draw(st.lists(CELLS, min_size=n_rows, max_size=n_rows)) for _ in names]
    return pa.table([pa.array(cells, pa.string()) for cells in columns], names=names)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz", "t.parquet"])
@given(table=tables(), delimiter=st.sampled_from(",;\t|"), n_bytes=st.sampled_from([64, 8 * 2**20]))
@example(pa.table({"x": [""]}), ",", 64)
@example(pa.table({"": ["", "\n"]}), ",", 64)
@example(pa.table({"a;b;c": ["1"], "d\r": ["\r"]}), ",", 64)
@settings(max_examples=60)
def test_any_table_of_texts_comes_back_from_its_file(name, table, delimiter, n_bytes):
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("fewlier.files.text.BLOCK_BYTES", max(n_bytes, 2 * table.nbytes + 64))
        path = Path(folder) / name
        with create_table(path, delimiter) as write:
            write(table.slice(0, 1))
            write(table.slice(1))
        with open_table(path) as file:
            assert file.columns == tuple(table.column_names)
            assert file.whole().rows.to_pydict() == table.to_pydict()


def parquet_bytes():
    sink = io.BytesIO()
    rows = {"a": [1.5, None] * 20, "b": ["x", "é"] * 20, "c": [[1], []] * 20, "d": [True] * 40}
    pq.write_table(pa.table(rows), sink, row_group_size=15)
    return sink.getvalue()


TEXT = 'a,b\n1,"x\ny"\n2,é\n'.encode() * 3
VALID = {
    "csv": TEXT,
    "gzip": gzip.compress(TEXT, mtime=0),
    "bz2": bz2.compress(TEXT),
    "zstd": pa.compress(TEXT, codec="zstd", asbytes=True),
    "parquet": parquet_bytes(),
}


def assert_rows_or_a_user_error(content):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t"
        path.write_bytes(content)
        try:
            with open_table(path) as file:
                rows = file.whole().rows
        except UserError as error:
            assert str(path) in str(error)  # noqa: PT017 - rows are as good
            return
        assert tuple(rows.column_names) == file.columns
        assert rows.num_rows > 0
        assert file.delimiter is None or set(rows.schema.types) == {pa.string()}


MAGIC = [b"PAR1", b"\x1f\x8b\x08", b"BZh9", b"\x28\xb5\x2f\xfd", b"\xef\xbb\xbf"]


@given(st.sampled_from([b"", b"a,b\n", *MAGIC]), st.binary(max_size=200))
@settings(max_examples=150)
def test_any_bytes_give_rows_or_an_error_for_the_user(beginning, content):
    assert_rows_or_a_user_error(beginning + content)


@pytest.mark.slow
@example('"\n"\r1')
@given(st.text(st.sampled_from('ab1,;|\t"\r\n '), max_size=40))
@settings(max_examples=150)
def test_any_text_gives_rows_or_an_error_for_the_user(text):
    assert_rows_or_a_user_error(text.encode())


@pytest.mark.parametrize("content", VALID.values(), ids=VALID)
@given(data=st.data())
@settings(max_examples=60)
def test_a_damaged_file_gives_rows_or_an_error_for_the_user(content, data):
    damaged = bytearray(content)
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(damaged) - 1))
        damaged[at] = data.draw(st.integers(0, 255))
    end = data.draw(st.just(len(damaged)) | st.integers(0, len(damaged)))
    assert_rows_or_a_user_error(bytes(damaged[:end]))
