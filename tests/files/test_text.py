"""CSV as text: how a header is read, and files that have no end, or grow without one."""

import bz2
import gzip
import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from fewlier.errors import UserError
from fewlier.files import text as csv_text
from fewlier.files.folder import open_table
from fewlier.files.text import read_header

PACKED = {
    "gzip": gzip.compress,
    "bz2": bz2.compress,
    "zstd": lambda content: pa.compress(content, codec="zstd", asbytes=True),
}
ENDLESS = {
    "rows": b"a,b\n" + b"1,2\n" * 250_000,
    "a line": b"x" * 1_000_000,
    "a cell": b'a,b\n1,"' + b"x" * 1_000_000,
    "zeros": bytes(1_000_000),
}


def rows_of(path):
    with open_table(path) as file:
        return file.whole().rows


@pytest.mark.slow
@pytest.mark.parametrize("codec", PACKED)
@pytest.mark.parametrize("what", ENDLESS)
def test_a_bomb_is_refused_before_it_is_read(what, codec, tmp_path, monkeypatch):
    monkeypatch.setattr(csv_text, "_PEEK_BYTES", 2**19)
    (tmp_path / "bomb").write_bytes(PACKED[codec](ENDLESS[what]))
    with pytest.raises(UserError, match=r"may grow 200-fold.*unpack it first"):
        rows_of(tmp_path / "bomb")


def test_a_bomb_of_full_size_is_refused(tmp_path):
    (tmp_path / "bomb").write_bytes(gzip.compress(bytes(20_000_000)))
    with pytest.raises(UserError, match="may grow 200-fold"):
        rows_of(tmp_path / "bomb")


@pytest.mark.slow
def test_a_bomb_behind_honest_rows_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_text, "_PEEK_BYTES", 2**16)
    honest = io.StringIO("a,b\n")
    np.savetxt(honest, np.random.default_rng(0).normal(size=(2000, 2)), delimiter=",")
    content = b"a,b\n" + honest.getvalue().encode() + b"1,2\n" * 5_000_000
    (tmp_path / "bomb").write_bytes(gzip.compress(content))
    with pytest.raises(UserError, match="may grow 200-fold"):
        rows_of(tmp_path / "bomb")


@pytest.mark.parametrize("codec", PACKED)
def test_an_honest_file_of_any_size_is_read(codec, tmp_path, monkeypatch):
    monkeypatch.setattr(csv_text, "_PEEK_BYTES", 2**12)
    numbers = np.random.default_rng(0).integers(0, 1000, (50_000, 3))
    # Repetitive as tables are: it packs to a fortieth.
    numbers[:, 1:] = numbers[:1, 1:]
    text = io.StringIO()
    np.savetxt(text, numbers, delimiter=",", fmt="%d", header="a,b,c", comments="")
    (tmp_path / "table").write_bytes(PACKED[codec](text.getvalue().encode()))
    found = rows_of(tmp_path / "table")
    assert found.column_names == ["a", "b", "c"]
    assert np.array_equal(found["a"].to_numpy().astype(int), numbers[:, 0])


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs a device without an end")
def test_a_device_without_an_end_is_no_table():
    with pytest.raises(UserError, match="a header of at most 1,048,576 bytes"):
        rows_of("/dev/zero")


def test_a_header_as_long_as_it_may_be_is_read(tmp_path):
    names = [f"column_{i}" for i in range(70_000)]
    (tmp_path / "wide.csv").write_text(f"{','.join(names)}\n{','.join('1' * len(names))}\n")
    with open_table(tmp_path / "wide.csv") as file:
        assert list(file.columns) == names


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_the_one_that_gives_most_columns(delimiter):
    names = ("id", "a, b; c| d\te", 'the "x"', "")
    quoted = delimiter.join(f'"{name.replace(chr(34), chr(34) * 2)}"' for name in names)
    assert read_header(f"{quoted}\n1,2,3,4,5,6,7;;;;||||\n".encode()) == (delimiter, names)


def test_a_single_column_has_a_comma_that_never_comes():
    assert read_header(b"size\n1\n") == (",", ("size",))


def test_a_character_cut_at_the_end_of_the_head_is_no_error():
    assert read_header("a,b\né".encode()[:-1])[1] == ("a", "b")


def test_a_header_that_never_ends_is_refused():
    with pytest.raises(UserError, match=r"must begin with a header.*field larger"):
        read_header(b"x" * 200_000)
