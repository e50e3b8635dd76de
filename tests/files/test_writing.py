"""Tables out: the same rows come back, and what cannot be written is told before any work."""

import gzip
import io
import os
import re
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fewlier import UserError
from fewlier.files.folder import open_table
from fewlier.files.writing import check_output, create_table, writes_parquet

PARTS = [
    pa.table({"id": ["007", None], "n": [0.1, 1e300], "ok": [True, None]}),
    pa.table({"id": ["x;y\tz"], "n": pa.array([None], pa.float64()), "ok": [False]}),
]
CSV = "id,n,ok\n007,0.1,true\n,1e+300,\nx;y\tz,,false\n"


def written(path, parts=PARTS, **options):
    with create_table(path, **options) as write:
        for rows in parts:
            write(rows)
    return path


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("name", ["t.csv", "t.txt", "T.CSV"])
def test_csv_has_one_header_and_quotes_only_where_needed(name, tmp_path):
    assert written(tmp_path / name).read_text() == CSV


def test_tsv_has_tabs_whatever_the_input_had(tmp_path):
    expected = CSV.replace("x;y\tz", '"x;y z"').replace(",", "\t").replace("y z", "y\tz")
    assert written(tmp_path / "t.tsv", delimiter=";").read_text() == expected
    packed = written(tmp_path / "t.tsv.gz", delimiter=";").read_bytes()
    assert gzip.decompress(packed).decode() == expected


def test_csv_takes_the_delimiter_of_the_input(tmp_path):
    text = written(tmp_path / "t.csv", delimiter=";").read_text()
    assert text == CSV.replace(",", ";").replace("x;y\tz", '"x;y\tz"')


def test_gzip_is_the_same_for_the_same_rows(tmp_path):
    packed = written(tmp_path / "t.csv.gz").read_bytes()
    assert gzip.decompress(packed).decode() == CSV
    assert written(tmp_path / "u.csv.gz").read_bytes() == packed


@pytest.mark.parametrize("name", ["t.parquet", "t.pq"])
def test_parquet_keeps_types_and_rows(name, tmp_path):
    assert pq.read_table(written(tmp_path / name)).equals(pa.concat_tables(PARTS))


def test_standard_output_gets_csv(monkeypatch):
    stdout = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(sys, "stdout", stdout)
    written("-")
    assert stdout.buffer.getvalue().decode() == CSV


def test_a_device_gets_csv_and_stays(tmp_path):
    written(os.devnull)
    assert Path(os.devnull).is_char_device()
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    written(tmp_path / "pipe")
    assert os.read(reader, 1000).decode() == CSV
    os.close(reader)


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet"])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("n_parts", [0, 1])
def test_a_failure_leaves_the_folder_as_it_was(n_parts, error, name, tmp_path):
    (tmp_path / name).write_bytes(b"old")

    def rows_and_then_a_failure():
        yield from PARTS[:n_parts]
        raise error

    with pytest.raises(error):
        written(tmp_path / name, rows_and_then_a_failure())
    assert contents(tmp_path) == {name: b"old"}


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet"])
def test_a_full_disk_is_told_with_the_path_and_leaves_nothing(name, tmp_path):
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    rows = pa.table({"x": [os.urandom(8).hex() for _ in range(40_000)]})
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(UserError, match=r"File too large. Nothing was written; .*make room"):
            written(tmp_path / name, [rows, rows])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert contents(tmp_path) == {}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux's full device")
def test_a_full_device_is_told(tmp_path):
    with pytest.raises(UserError, match=r"'/dev/full': No space left on device"):
        written("/dev/full")
    assert contents(tmp_path) == {}


def test_what_csv_cannot_hold_is_refused_with_a_remedy(tmp_path):
    rows = pa.table({"tags": pa.array([[1]], pa.list_(pa.int8()))})
    with pytest.raises(
        UserError, match=r"'tags' must hold values that CSV can hold; got list.*Parquet"
    ):
        written(tmp_path / "t.csv", [rows])
    assert contents(tmp_path) == {}


@pytest.mark.parametrize("name", ["t.xlsx", "t", "t.csv.zip", "t.parquet.gz", "csv", ".gz"])
def test_an_unknown_ending_is_refused_with_those_that_are_known(name):
    known = re.escape("must end in .csv, .tsv, .txt, .parquet, .pq or a text's .gz; got ")
    with pytest.raises(UserError, match=f"{known}'{name}'"):
        writes_parquet(name)


UNWRITABLE = {
    "absent/t.csv": "No such file or directory",
    "folder.csv": "it is a folder",
    "file/t.csv": "Not a directory",
    "loop.csv": "loop",
    "x" * 300 + ".csv": "File name too long",
}


@pytest.mark.parametrize(("name", "reason"), UNWRITABLE.items(), ids=UNWRITABLE.values())
def test_an_output_that_cannot_be_written_is_refused_before_any_work(name, reason, tmp_path):
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "loop.csv").symlink_to(tmp_path / "loop.csv")
    with pytest.raises(UserError) as caught:
        check_output(tmp_path / name, tmp_path / "file")
    assert re.search(f"{name}.*{reason}.*choose another path or make room", str(caught.value))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder.csv", "loop.csv"]


@pytest.mark.parametrize("given", ["t.csv", "link.csv", "./t.csv"])
def test_an_output_that_would_replace_an_input_is_refused(given, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_bytes(b"x")
    Path("link.csv").symlink_to("t.csv")
    with pytest.raises(UserError, match=f"another file than the input; got {given!r} for both"):
        check_output(given, "other.csv", "t.csv")
    assert contents(tmp_path) == {"t.csv": b"x", "link.csv": b"x"}


@pytest.mark.parametrize("path", ["-", "new.csv", os.devnull, "t.csv"])
def test_an_output_that_can_be_written_passes_and_is_not_touched(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_bytes(b"x")
    check_output(path, "-", "input.csv")
    assert contents(tmp_path) == {"t.csv": b"x"}


def test_rows_that_cannot_be_told_from_lines_are_quoted(tmp_path):
    rows = pa.table({"a;b;c": ["x\ry", ""], "d": ["", "\r"]})
    written(tmp_path / "t.csv", [rows])
    with open_table(tmp_path / "t.csv") as file:
        assert file.whole().rows.equals(rows)


def test_a_reader_that_has_gone_is_no_error_of_the_path(monkeypatch):
    reader, writer = os.pipe()
    os.close(reader)
    stdout = io.TextIOWrapper(open(writer, "wb", buffering=0), write_through=True)  # noqa: PTH123, SIM115
    monkeypatch.setattr(sys, "stdout", stdout)
    with pytest.raises(BrokenPipeError):
        written("-")
    stdout.close()
