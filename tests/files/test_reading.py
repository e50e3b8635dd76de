"""Files of rows: what is recognised, and what is refused."""

import bz2
import gzip
import io
import os
import re
import sys
import threading

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fewlier import UserError
from fewlier.files import reading
from fewlier.files.folder import open_table

ROWS = {"id": ["007", "008"], "name": ["a, b; c", 'say "hi"\nto all'], "size": ["1.5", "NA"]}
TEXT = 'id,name,size\n007,"a, b; c",1.5\n008,"say ""hi""\nto all",NA\n'
BODY = {",": TEXT} | {d: pd.DataFrame(ROWS).to_csv(index=False, sep=d) for d in ";\t|"}


def zstd(content):
    return bytes(pa.compress(content, codec="zstd", asbytes=True))


def streamed(content):
    """Compress as the zstd command does, without the size of the content in the frame."""
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as file:
        file.write(content)
    return sink.getvalue().to_pybytes()


def parquet(table, **options):
    sink = io.BytesIO()
    pq.write_table(pa.table(table), sink, **options)
    return sink.getvalue()


CONTENTS = {
    "comma": TEXT.encode(),
    "semicolon": BODY[";"].encode(),
    "tab": BODY["\t"].encode(),
    "bar": BODY["|"].encode(),
    "mark of UTF-8": TEXT.encode("utf-8-sig"),
    "mark and quotes": b'\xef\xbb\xbf"id"' + TEXT.encode()[2:],
    "no newline at the end": TEXT.rstrip("\n").encode(),
    "empty lines": TEXT.replace("size\n", "size\n\n\n").encode() + b"\n\n",
    "gzip": gzip.compress(TEXT.encode()),
    "gzip of two parts": gzip.compress(TEXT[:20].encode()) + gzip.compress(TEXT[20:].encode()),
    "bz2": bz2.compress(TEXT.encode()),
    "zstd": zstd(TEXT.encode()),
    "zstd of a stream": streamed(TEXT.encode()),
    "gzip with mark": gzip.compress(BODY[";"].encode("utf-8-sig")),
    "parquet": parquet(ROWS),
    "parquet with gzip inside": parquet(ROWS, compression="gzip"),
}


@pytest.fixture
def piped(monkeypatch):
    """Return a function that makes some bytes come from standard input, through a real pipe."""
    open_files = []

    def arrange(content):
        reader, writer = os.pipe()

        def feed():
            with open(writer, "wb") as file:  # noqa: PTH123 - a descriptor
                file.write(content)

        thread = threading.Thread(target=feed)
        stdin = open(reader)  # noqa: PTH123, SIM115 - a descriptor; closed below
        open_files.append((stdin, thread))
        monkeypatch.setattr(sys, "stdin", stdin)
        thread.start()
        return "-"

    yield arrange
    for stdin, thread in open_files:
        thread.join(timeout=10)
        stdin.close()


@pytest.fixture(params=["file", "pipe"])
def given_as(request, tmp_path, piped):
    """Return a function that puts bytes into a file of any name, or onto standard input."""

    def arrange(content):
        if request.param == "pipe":
            return piped(content)
        path = tmp_path / "table.data"
        path.write_bytes(content)
        return path

    return arrange


def read(path):
    with open_table(path) as file:
        return file.columns, file.whole().rows.to_pydict()


def error_of(path):
    with pytest.raises(UserError) as caught:
        read(path)
    return str(caught.value)


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
def test_a_table_is_recognised_by_what_it_holds(content, given_as):
    columns, rows = read(given_as(content))
    assert columns == tuple(ROWS)
    assert rows == ROWS


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_lines_may_end_as_on_other_systems(end, given_as):
    content = "a,b\n1,x\n2,y\n".replace("\n", end).encode()
    assert read(given_as(content))[1] == {"a": ["1", "2"], "b": ["x", "y"]}


def test_an_empty_line_of_a_single_column_is_a_missing_cell(given_as):
    assert read(given_as(b"size\n1\n\n3\n"))[1] == {"size": ["1", "", "3"]}


def test_cells_of_csv_are_text_whatever_they_look_like(given_as):
    cells = ["007", "1.50", "true", "2020-01-01", "NaN", "", " x ", "1e5"]
    content = ("a,b\n" + "".join(f"{cell},0\n" for cell in cells)).encode()
    assert read(given_as(content))[1]["a"] == cells


def test_columns_of_parquet_keep_their_types(given_as):
    table = pa.table(
        {
            "n": pa.array([1, None], pa.int8()),
            "when": pa.array([0, 1], pa.timestamp("ms")),
            "tags": pa.array([["x"], []], pa.list_(pa.string())),
        }
    )
    with open_table(given_as(parquet(table))) as file:
        assert file.delimiter is None
        assert file.whole().rows.equals(table)


@pytest.mark.parametrize(
    "content", [TEXT.encode(), gzip.compress(TEXT.encode()), parquet(ROWS)], ids=len
)
def test_the_share_that_is_read_is_known_of_files_and_not_of_csv_pipes(content, given_as):
    path = given_as(content)
    with open_table(path) as file:
        list(file.batches())
        is_pipe = path == "-" and file.delimiter is not None
        assert file.share_read() == (None if is_pipe else 1.0)


def test_batches_follow_each_other(tmp_path, monkeypatch):
    frame = pd.DataFrame({"n": range(500), "text": ["x" * 20] * 500})
    frame.to_csv(tmp_path / "n.csv", index=False)
    frame.to_parquet(tmp_path / "n.parquet")
    monkeypatch.setattr("fewlier.files.text.BLOCK_BYTES", 1000)
    monkeypatch.setattr(reading, "_BATCH_ROWS", 37)
    for name in ("n.csv", "n.parquet"):
        with open_table(tmp_path / name) as file:
            batches, shares = [], []
            for batch in file.batches():
                batches.append(batch)
                shares.append(file.share_read())
        assert len(batches) > 10
        assert shares == sorted(shares)
        assert shares[-1] == 1
        assert [int(n) for b in batches for n in b.rows["n"].to_pylist()] == list(range(500))
        lengths = [b.rows.num_rows for b in batches]
        assert [b.start for b in batches] == [sum(lengths[:i]) for i in range(len(batches))]


@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
@pytest.mark.parametrize("most", [7, 65_536])
def test_a_damaged_row_group_is_named_with_its_column(most, compression, tmp_path, monkeypatch):
    """Bytes are flipped in the middle of a file whose beginning and end are sound."""
    monkeypatch.setattr(reading, "_BATCH_ROWS", most)
    path, rng = tmp_path / "t.parquet", np.random.default_rng(0)
    table = pa.table({"a": rng.normal(size=400), "b": rng.normal(size=400)})
    pq.write_table(table, path, row_group_size=100, compression=compression, use_dictionary=False)
    content = bytearray(path.read_bytes())
    start = pq.ParquetFile(path).metadata.row_group(2).column(1).data_page_offset
    content[start : start + 40] = (byte ^ 0xFF for byte in content[start : start + 40])
    path.write_bytes(content)
    said = error_of(path)
    assert "t.parquet: a table must be CSV or Parquet; got a damaged file: " in said
    assert "column 'b' of row group 2, rows 200 to 299: " in said


def test_small_row_groups_are_read_together(tmp_path):
    pq.write_table(pa.table({"n": range(1000)}), tmp_path / "t.parquet", row_group_size=10)
    with open_table(tmp_path / "t.parquet") as file:
        assert [batch.rows.num_rows for batch in file.batches()] == [1000]


@pytest.mark.parametrize("content", [b"a,b,,\n1,2,,\n3,4, ,\n", b"a;b;;\n1;2;;\n3;4;;\n"])
def test_empty_columns_without_a_name_are_dropped(content, given_as):
    assert read(given_as(content)) == (("a", "b"), {"a": ["1", "3"], "b": ["2", "4"]})


def test_an_index_without_a_name_stays_beside_them(given_as):
    assert read(given_as(b",a,\n0,1,\n1,3,\n"))[0] == ("", "a")


FOREIGN = {
    "values without a name": (b"a,,\n1,,\n2,,x\n", r"without a name must be empty.*'x' .*row 1"),
    "an empty file": (b"", "the file is empty"),
    "a mark alone": (b"\xef\xbb\xbf", "the file is empty"),
    "empty lines": (b"\n\n\n", "the file is empty"),
    "a header alone": (b"a,b\n", "must have rows; got only a header. Add rows"),
    "parquet without rows": (parquet({"a": pa.array([], pa.int8())}), "must have rows"),
    "parquet without columns": (parquet({}), "must have a column"),
    "two columns of one name": (b"a,b,a\n1,2,3\n", r"unique; got 'a' 2 times. Rename or drop"),
    "the same in parquet": (
        parquet(pa.table([[1], [2]], names=["a", "a"])),
        r"unique; got 'a' 2 times. Rename or drop",
    ),
    "more cells": (b"a,b\n1,2\n\n3,4\n5,6,7\n", r"have 2 cells.* got 3 in row 2: '5,6,7'. Correct"),
    "fewer cells": (b"a,b\n1,2\n5\n", r"must have 2 cells.* got 1 in row 1: '5'. Correct"),
    "an open quote": (b'a,b\n"1,2\n3,4\n', "must have 2 cells.* put quotes around"),
    "UTF-16": ("a,b\n1,2\n".encode("utf-16"), "got text in UTF-16. Save it as CSV"),
    "UTF-16, other end first": (b"\xfe\xff\x00a", "got text in UTF-16. Save it as CSV"),
    "latin-1 names": ("é,b\n1,2\n".encode("latin-1"), "must be UTF-8;.* Save it as UTF-8"),
    "latin-1 cells": ("a,b\né,2\n".encode("latin-1"), "must be UTF-8;.* Save it as UTF-8"),
    "a spreadsheet": (b"PK\x03\x04rest", "got a spreadsheet, zip or model. Save it as CSV"),
    "feather": (b"ARROW1\x00\x00", "got an Arrow or Feather file. Save it as CSV"),
    "cut gzip": (gzip.compress(TEXT.encode())[:-20], "Truncated compressed stream"),
    "cut bz2": (bz2.compress(TEXT.encode())[:-20], "Truncated compressed stream"),
    "cut zstd": (zstd(TEXT.encode())[:-5], "can be read;"),
    "damaged gzip": (gzip.compress(TEXT.encode())[:15] + bytes(100), "can be read;"),
    "cut parquet": (
        parquet(ROWS)[:-20],
        "must be CSV or Parquet; got a damaged file: Parquet magic",
    ),
    "the start of parquet": (b"PAR1", "must be CSV or Parquet; got a damaged file"),
    "a quote that is never closed": (b'a,b\n1,"2\n3,4\n', "must be closed"),
    "a row that is ragged and latin-1": (b"a,b\n1,2\n\xe9", "got 1 in row 1"),
    "binary": (bytes(range(250, 0, -1)) * 9, "must be UTF-8; got other bytes"),
}


@pytest.mark.parametrize(("content", "message"), FOREIGN.values(), ids=FOREIGN)
def test_what_is_no_table_is_refused_with_the_name_of_the_file(content, message, given_as):
    path = given_as(content)
    name = "standard input" if path == "-" else str(path)
    error = error_of(path)
    assert error.startswith(f"{name}: ")
    assert error.count(name) == 1
    assert re.search(message, error), error


def test_latin_1_far_down_in_a_file_is_refused_too(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"a,b\n" + b"1,2\n" * 400_000 + b"\xe9,2\n")
    assert "text must be UTF-8" in error_of(tmp_path / "t.csv")


def test_a_ragged_row_is_counted_over_batches(tmp_path, monkeypatch):
    monkeypatch.setattr("fewlier.files.text.BLOCK_BYTES", 64)
    (tmp_path / "t.csv").write_text('a,b\n"1\n",2\n' + "1,2\n" * 200 + "1,2,3\n")
    assert "got 3 in row 201: '1,2,3'" in error_of(tmp_path / "t.csv")


@pytest.mark.parametrize(("name", "reason"), [("absent.csv", "No such file"), (".", "directory")])
def test_a_path_that_cannot_be_opened_is_refused(tmp_path, name, reason):
    assert re.search(f"must be a file that can be read; .*{reason}", error_of(tmp_path / name))


def test_a_cell_larger_than_a_block_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("fewlier.files.text.BLOCK_BYTES", 64)
    (tmp_path / "t.csv").write_text('a,b\n1,"' + "x\n" * 200 + '"\n')
    assert "t.csv: a table must be CSV or Parquet; got a damaged file: straddling" in error_of(
        tmp_path / "t.csv"
    )
