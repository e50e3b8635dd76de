"""Folders and patterns of tables: fitted in one pass, scored into a folder, or not at all."""

import errno
import gzip
import json
import re
import resource
import signal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from cli.test_stopping import ended, line_with, started
from factories import FEATURES, payments

from fewlier import AnomalyDetector
from fewlier.files import reading, sampling

ROWS = payments(300, seed=7)
PARTS = {"2025/a": ROWS[:120], "2025/b": ROWS[120:210], "2026/a": ROWS[210:]}


def write(folder, ending, parts=PARTS):
    """Write one file per part; the content of its format."""
    for name, rows in parts.items():
        path = folder / f"{name}.{ending}"
        path.parent.mkdir(parents=True, exist_ok=True)
        if ending == "parquet":
            rows.to_parquet(path, index=False)
        else:
            rows.to_csv(path, index=False)
    return folder


@pytest.fixture
def big(tmp_path):
    return write(tmp_path / "big", "parquet")


def scores(path, rows=ROWS):
    return AnomalyDetector.load(path).anomaly_score(rows[FEATURES]).tolist()


def flags(*more):
    return ["--label", "fraud", "--ignore", "id", *more]


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("given", ["folder", "pattern", "stdin", "csv folder"])
def test_a_fit_to_many_files_is_that_to_all_their_rows(given, big, fewlier, tmp_path):
    ROWS.to_csv(tmp_path / "all.csv", index=False)
    ROWS.to_parquet(tmp_path / "all.parquet", index=False)
    (big / "_SUCCESS").touch()
    (big / "notes.md").write_text("not a table")
    table, whole, stdin = big, tmp_path / "all.parquet", b""
    if given == "pattern":
        table = big / "202?" / "*.parquet"
    elif given == "stdin":
        table, whole, stdin = "-", tmp_path / "all.csv", (tmp_path / "all.csv").read_bytes()
    elif given == "csv folder":
        table, whole = write(tmp_path / "text", "csv"), tmp_path / "all.csv"
    done = fewlier("fit", table, *flags("-o", tmp_path / "many.fewlier"), stdin=stdin)
    assert done.code == 0, done.err
    assert ("left out: 'notes.md'" in done.err) == (given == "folder")
    assert fewlier("fit", whole, *flags("-o", tmp_path / "one.fewlier")).code == 0
    assert scores(tmp_path / "many.fewlier") == scores(tmp_path / "one.fewlier")


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_a_fit_to_more_rows_than_it_keeps_says_so(big, fewlier, tmp_path, monkeypatch):
    monkeypatch.setattr(sampling, "MAX_NORMALS", 50)
    monkeypatch.setattr(reading, "_BATCH_ROWS", 40)
    done = fewlier("fit", big, *flags("-o", tmp_path / "m.fewlier", "--json"))
    summary = json.loads(done.out)
    n_anomalies = int((ROWS["fraud"] == 1).sum())
    assert summary["n_anomaly"] == n_anomalies
    assert summary["n_normal"] + summary["n_unlabelled"] == 300 - n_anomalies
    assert f"50 normal and unlabelled ones and all {n_anomalies} labelled" in summary["notes"][0]
    rows = AnomalyDetector.load(tmp_path / "m.fewlier")
    assert np.isfinite(rows.anomaly_score(ROWS[FEATURES])).all()


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["parquet", "csv", "csv.gz", "csv.bz2"])
@pytest.mark.parametrize("fdr", [(), ("--fdr", "0.3")], ids=["", "fdr"])
def test_a_folder_is_scored_as_its_rows_are(ending, fdr, model, fewlier, tmp_path):
    big = write(tmp_path / "big", ending)
    done = fewlier("score", big, "-m", model, "-o", tmp_path / "out", *fdr)
    assert done.code == 0, done.err
    ROWS.to_csv(tmp_path / "all.csv", index=False)
    whole = fewlier("score", tmp_path / "all.csv", "-m", model, "-o", tmp_path / "w.csv", *fdr)
    assert done.err == whole.err  # the same counts, drift and threshold
    expected = pd.read_csv(tmp_path / "w.csv", dtype={"id": str})
    read = pd.read_parquet if ending == "parquet" else pd.read_csv
    written = ending.replace("bz2", "gz")
    types = {} if ending == "parquet" else {"dtype": {"id": str}}
    found = [read(tmp_path / "out" / f"{name}.{written}", **types) for name in PARTS]
    pd.testing.assert_frame_equal(
        pd.concat(found, ignore_index=True), expected, check_dtype=False, check_exact=True
    )
    names = sorted(str(p.relative_to(tmp_path / "out")) for p in (tmp_path / "out").rglob("*.*"))
    assert names == sorted(f"{name}.{written}" for name in PARTS)


def test_a_file_without_rows_has_an_output_without_rows(big, model, fewlier, tmp_path):
    ROWS[:0].to_csv(big / "empty.csv", index=False)
    pq.write_table(pq.read_table(big / "2025/a.parquet").slice(0, 0), big / "none.parquet")
    assert fewlier("score", big, "-m", model, "-o", tmp_path / "out", "--fdr", "0.3").code == 0
    added = ",anomaly_score,is_anomaly,p_value,reason\n"
    header = (big / "empty.csv").read_text().strip()
    assert (tmp_path / "out" / "empty.csv").read_text() == header + added
    none = pq.read_schema(tmp_path / "out" / "none.parquet")
    assert (
        none.remove_metadata()
        == pq.read_schema(tmp_path / "out" / "2025" / "a.parquet").remove_metadata()
    )


@pytest.mark.slow
def test_an_output_folder_is_replaced_only_when_asked_and_done(big, model, fewlier, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    assert fewlier("score", big, "-m", model, "-o", out).code == 0  # an empty one may be there
    (out / "old.csv").touch()
    refused = fewlier("score", big, "-m", model, "-o", out)
    assert refused.code == 2
    assert "must be new or empty" in refused.err
    (big / "2026" / "b.parquet").write_bytes(b"PAR1 and nothing else")
    failed = fewlier("score", big, "-m", model, "-o", out, "--overwrite")
    assert failed.code == 2
    assert (out / "old.csv").exists()
    (big / "2026" / "b.parquet").unlink()
    assert fewlier("score", big, "-m", model, "-o", out, "--overwrite").code == 0
    assert not (out / "old.csv").exists()
    assert ds.dataset(out).count_rows() == 300
    assert [*tmp_path.glob(".*")] == []


@pytest.mark.slow
def test_an_output_folder_is_complete_with_its_marker_also_where_nothing_can_be_renamed(
    big, model, fewlier, tmp_path, monkeypatch
):
    """As on mounted object storage."""

    def refuse(*_):
        raise OSError(errno.ENOSYS, "Function not implemented")

    assert fewlier("score", big, "-m", model, "-o", tmp_path / "renamed").code == 0
    monkeypatch.setattr(Path, "rename", refuse)
    monkeypatch.setattr(Path, "replace", refuse)
    out = tmp_path / "out"
    assert fewlier("score", big, "-m", model, "-o", out).code == 0
    assert {"_SUCCESS"} == {path.name for path in out.glob("_*")}
    assert pq.read_table(out).equals(pq.read_table(tmp_path / "renamed"))
    assert [*tmp_path.rglob(".*")] == []
    (out / "_SUCCESS").unlink()
    (out / "_INCOMPLETE").touch()  # as after a process that was killed
    assert "must be new or empty" in fewlier("score", big, "-m", model, "-o", out).err
    assert "must be complete" in fewlier("score", out, "-m", model, "-o", tmp_path / "no").err
    assert fewlier("score", big, "-m", model, "-o", out, "--overwrite").code == 0
    assert {"_SUCCESS"} == {path.name for path in out.glob("_*")}


def test_two_files_with_one_output_are_refused_by_name(big, model, fewlier, tmp_path):
    for ending in ("csv.gz", "csv.bz2"):
        ROWS.to_csv(big / f"a.{ending}", index=False)
    done = fewlier("score", big, "-m", model, "-o", tmp_path / "out")
    assert done.code == 2
    assert "got 'a.csv.bz2' and 'a.csv.gz', which would both be written as 'a.csv.gz'" in done.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("score big -m fraud.fewlier", "must be a folder; got standard output"),
        ("score big -m fraud.fewlier -o big", "another folder than the one of the input"),
        ("score big/2025 -m fraud.fewlier -o big --overwrite", "another folder than the one"),
        ("score big -m fraud.fewlier -o fraud.fewlier", "another folder than the one"),
        ("score big -m fraud.fewlier -o new/folder", "No such file or directory"),
        ("score big/2025/a.parquet -m fraud.fewlier -o x.csv --overwrite", "is for folders"),
        ("score big -m fraud.fewlier -o out --engine ray", "ray is not installed"),
        ("score big -m fraud.fewlier -o out --workers 2", "must come with --engine"),
        ("score big/2025/a.parquet -m fraud.fewlier --engine ray", "shares out the files of a"),
        ("score nothing -m fraud.fewlier -o out", "must have a file that ends in"),
        ("fit big/*.csv --label fraud -o m.fewlier", "must have a file that ends in"),
    ],
)
def test_what_cannot_be_is_refused_at_once(
    words, message, big, model, fewlier, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nothing").mkdir()
    done = fewlier(*words.split())
    assert (done.code, done.out) == (2, b"")
    assert message in done.err
    assert model.exists()
    assert ds.dataset(big).count_rows() == 300


def damaged(path):
    """Cut the second row group of a Parquet file short: its values are gone, its end is there."""
    table = pa.Table.from_pandas(ROWS, preserve_index=False)
    pq.write_table(table, path, row_group_size=150, use_dictionary=False, compression="none")
    content, group = path.read_bytes(), pq.ParquetFile(path).metadata.row_group(1)
    start = group.column(1).data_page_offset
    path.write_bytes(content[:start] + b"\0" * 1500 + content[start + 1500 :])


GROUP = "got a damaged file: column 'amount' of row group 1, rows 150 to 299: .*thrift"
BAD = {
    "another type": (
        lambda path: ROWS.assign(visits=ROWS["visits"].astype(str)).to_parquet(path),
        r"column 'visits' must have the type of those of .*2025.a\.parquet, double; got .*string",
        None,
    ),
    "another column": (
        lambda path: ROWS.drop(columns="city").to_parquet(path),
        "it lacks 'city'",
        "without 'city'",
    ),
    "a damaged row group": (damaged, GROUP, GROUP),
    "a truncated file": (
        lambda path: path.write_bytes((path.parent / "a.parquet").read_bytes()[:-9]),
        "got a damaged file",
        "got a damaged file",
    ),
    "text for numbers": (
        lambda path: ROWS.assign(amount="much").to_parquet(path),
        r"column 'amount' must have the type of those of .*, double; got .*string",
        r"Column 'amount' must hold numbers .*'much' .*row 0\)",
    ),
}


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("make", "at_fit", "at_score"), BAD.values(), ids=BAD)
def test_a_bad_file_among_many_is_named_and_nothing_is_written(
    make, at_fit, at_score, big, model, fewlier, tmp_path, folder
):
    make(big / "2026" / "b.parquet")
    before = folder()
    done = fewlier("fit", big, *flags("-o", tmp_path / "new.fewlier"))
    assert done.code == 2
    assert re.search(rf"2026.b\.parquet: .*{at_fit}", done.err), done.err
    done = fewlier("score", big, "-m", model, "-o", tmp_path / "out")
    if at_score is None:  # text that holds numbers is read as numbers
        assert done.code == 0
        return
    assert done.code == 2
    assert re.search(rf"2026.b\.parquet: .*{at_score}", done.err), done.err
    assert folder() == before


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_text_that_turns_from_numbers_to_words_is_refused_with_its_file(
    fewlier, tmp_path, monkeypatch
):
    monkeypatch.setattr(sampling, "MAX_NORMALS", 200)
    parts = {f"part{i:03}": ROWS.assign(n=ROWS.index) for i in range(4)}
    parts["part003"] = ROWS.assign(n="none given")
    big = write(tmp_path / "text", "csv", parts)
    done = fewlier("fit", big, *flags("-o", tmp_path / "m.fewlier", "--column", "n=real"))
    assert done.code == 2
    assert "part003.csv: Column 'n' must hold numbers" in done.err
    row = int(done.err.split("(first at row ")[1].split(")")[0])
    assert 0 <= row < 300
    assert not (tmp_path / "m.fewlier").exists()


WRONG = {
    "a truth value": ("amount", [True, False], "must hold numbers.*got the type bool"),
    "a moment": (
        "visits",
        [pd.Timestamp("2024-01-01")] * 2,
        r"must hold numbers.*got the type timestamp",
    ),
    "a list": ("city", [["Bern"], ["Oslo"]], r"must hold categories.*got the type list<.*string>"),
}


@pytest.mark.parametrize(("column", "cells", "message"), WRONG.values(), ids=WRONG)
def test_a_column_of_another_type_than_in_training_is_refused_with_both(
    column, cells, message, big, model, fewlier, tmp_path
):
    """Two rows are too few to say so by their cells."""
    ROWS[:2].assign(**{column: cells}).to_parquet(big / "2026" / "b.parquet", index=False)
    done = fewlier("score", big, "-m", model, "-o", tmp_path / "out")
    assert done.code == 2
    assert re.search(rf"2026.b\.parquet: column '{column}' {message}", done.err), done.err


@pytest.mark.slow
def test_other_columns_may_differ_between_files(big, model, fewlier, tmp_path):
    ROWS.assign(id=1, note="x").to_parquet(big / "2026" / "b.parquet", index=False)
    done = fewlier("score", big, "-m", model, "-o", tmp_path / "out")
    assert done.code == 0
    assert "passed through: id, fraud, note" in done.err
    assert pq.read_table(tmp_path / "out/2026/b.parquet")["note"].to_pylist() == ["x"] * 300


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_columns_in_the_names_of_folders_are_named_and_not_read(model, fewlier, tmp_path):
    parts = {"year=2025/month=1/a": ROWS[:120], "year=2026/month=1/a": ROWS[120:]}
    big = write(tmp_path / "hive", "parquet", parts)
    note = "only the names of folders hold are not read: 'year', 'month'. In Python pyarrow.dataset"
    assert note in fewlier("score", big, "-m", model, "-o", tmp_path / "out").err
    assert note in fewlier("fit", big, *flags("-o", tmp_path / "new.fewlier")).err
    assert (tmp_path / "out" / "year=2026" / "month=1" / "a.parquet").exists()


@pytest.mark.slow
def test_files_may_be_packed_and_small(model, fewlier, tmp_path):
    big = tmp_path / "big"
    big.mkdir()
    text = ROWS[:40].to_csv(index=False).encode()
    for i in range(8):
        (big / f"{i:02}.csv.gz").write_bytes(gzip.compress(text))
    done = fewlier("score", big / "*.gz", "-m", model, "-o", tmp_path / "out", "--json")
    assert json.loads(done.out)["n_rows"] == 320
    contents = {path.read_bytes() for path in (tmp_path / "out").glob("*.gz")}
    assert len(contents) == 1


@pytest.mark.slow
def test_a_stopped_command_leaves_nothing_of_its_output(big, model, tmp_path, folder):
    out = tmp_path / "out"
    out.mkdir()
    (out / "old.csv").write_text("old")
    for i in range(100):
        ROWS.to_parquet(big / f"{i}.parquet", index=False)
    before = folder("out/old.csv")
    process = started("score", big, "-m", model, "-o", out, "--overwrite")
    line_with(b"scoring:", process)
    returned, printed, said = ended(process, signal.SIGINT)
    assert (returned, printed) == (130, b"")
    assert "no output was written." in said
    assert folder() == before
    assert not [path for path in tmp_path.rglob(".*")]


def _no_room():
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))


@pytest.mark.slow
def test_a_full_disk_is_told_and_a_rerun_starts_clean(big, model, tmp_path, folder, fewlier):
    before = folder()
    process = started("score", big, "-m", model, "-o", tmp_path / "out", preexec_fn=_no_room)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 2, said
    assert b"Nothing was written; choose another path or make room." in said
    assert folder() == before
    assert fewlier("score", big, "-m", model, "-o", tmp_path / "out").code == 0
    assert ds.dataset(tmp_path / "out").count_rows() == 300


@pytest.mark.parametrize("is_reading", [True, False])
def test_reading_shows_bytes_and_rows(is_reading, big, capsys, monkeypatch):
    from fewlier.cli import screen
    from fewlier.files.folder import TableFolder

    monkeypatch.setattr(screen, "SECONDS_BETWEEN_LINES", 0)
    with screen.fit_progress("no model was written.") as show:
        if is_reading:
            for _ in TableFolder.find(big).batches(show.reading):
                pass
        show.training(0.5)
    said = capsys.readouterr().err.splitlines()
    size = sum(path.stat().st_size for path in big.rglob("*.parquet"))
    assert [line for line in said if "reading:" in line][2:] == (
        [f"fewlier: reading: 100% done, about 1 s left ({size / 1e3:.3g} kB, 300 rows)"]
        * is_reading
    )
    assert "fewlier: fitting: 50% done" in said[-1]


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_an_output_that_would_count_as_input_is_refused(big, fewlier, tmp_path):
    model = tmp_path / "m.fewlier"
    assert fewlier("fit", big, *flags("-o", model)).code == 0
    for table in (big, big / "*" / "*.parquet"):
        refused = fewlier("score", table, "-m", model, "-o", big / "out")
        assert refused.code == 2
        assert "inside the input" in refused.err
        assert not (big / "out").exists()
    assert fewlier("score", big, "-m", model, "-o", big / "_out").code == 0
    assert (
        fewlier("score", big / "2025" / "*.parquet", "-m", model, "-o", big / "2025" / "out").code
        == 0
    )
