"""Names, cells, files and streams that would do harm: shown as text, refused, or survived."""

import csv
import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from factories import small
from processes import COMMAND

from fewlier.reasons.explanation import Reason

NAMES = [
    *("speed [km/h]", "speed [m/s]", "[/red]", ":smile:", "=cmd|' /C calc'!A0", "@sum", "+1", "-1"),
    *(
        "\x1b[31mred\x1b]0;title\x07",
        "\u202egpj.exe",
        "two\nnote        lines",
        "<script>x</script>",
    ),
]
CELLS = ["[bold]a", "[/]b", "\x1b[2Jc", "=1+1"]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """Write a model of columns with such names, and a table whose rows are all flagged."""
    folder = tmp_path_factory.mktemp("hostile")
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({name: rng.normal(size=80) for name in NAMES})
    rows["[cell]"] = rng.choice(CELLS, 80)
    labels = (np.arange(80) < 4).astype(int)
    rows.iloc[:4, : len(NAMES)] += 4
    small(max_epochs=1).fit(rows, labels).save(folder / "model.fewlier")
    far = rows.assign(**dict.fromkeys(NAMES, 50.0), passed=1)
    far.to_csv(folder / "rows.csv", index=False)
    return folder


def is_harmless(text):
    return not set(text) & {chr(c) for c in (*range(10), *range(11, 32), 0x7F, 0x9B, 0x202E)}


@pytest.mark.slow
def test_inspect_shows_every_name_as_text(fewlier, hostile):
    done = fewlier("inspect", hostile / "model.fewlier")
    out = done.out.decode()
    assert (done.code, done.err) == (0, "")
    assert is_harmless(out)
    for name in (*NAMES[:8], r"\x1b[31mred\x1b]0;title\x07", r"\u202egpj.exe", r"two\nnote "):
        assert f"  {name}" in out
    assert r"\x1b[2Jc" in out


def test_explain_shows_every_name_as_text(fewlier, hostile):
    done = fewlier(
        *("explain", hostile / "rows.csv", "-m", hostile / "model.fewlier", "--columns", "13"),
        *("--top", "2"),
    )
    out = done.out.decode()
    assert done.code == 0, done.err
    assert is_harmless(out + done.err)
    for name in (
        "speed [km/h]",
        "speed [m/s]",
        "[/red]",
        ":smile:",
        r"\x1b[31mred\x1b]0;title\x07",
    ):
        assert f" {name} = 50, expected" in out


def test_scoring_notes_show_names_as_text(fewlier, hostile, tmp_path):
    header, rest = (hostile / "rows.csv").read_bytes().split(b",passed\n", 1)
    (tmp_path / "rows.csv").write_bytes(header + b",\x1b[31m[/b]passed\n" + rest)
    done = fewlier(
        *("score", tmp_path / "rows.csv", "-m", hostile / "model.fewlier", "-o", tmp_path / "o.csv")
    )
    assert done.code == 0
    assert r"passed through: \x1b[31m[/b]passed." in done.err


def test_no_reason_begins_as_a_formula(fewlier, hostile, tmp_path):
    out = tmp_path / "scored.csv"
    done = fewlier("score", hostile / "rows.csv", "-m", hostile / "model.fewlier", "-o", out)
    assert done.code == 0, done.err
    with out.open(newline="", encoding="utf-8") as file:
        reasons = [row["reason"] for row in csv.DictReader(file)]
    assert all(reasons)
    assert all(is_harmless(cell) and not cell.startswith(tuple("=+-@")) for cell in reasons)


@pytest.mark.parametrize(
    "name", ["=cmd", "+1", "-1", "@sum", " =a", "\uff1da", "\t=a", "\r=a", "\n-"]
)
def test_a_name_that_begins_as_a_formula_is_quoted_in_words(name):
    text = str(Reason(name, 912.0, 14.2, expected_low=12, expected_high=40))
    assert text.startswith(("'", "\\"))
    assert text.endswith(" = 912, expected 12–40: +14.2")


def test_other_names_are_not_quoted():
    assert str(Reason("a=b - c", None, 1.0)) == "a=b - c is missing: +1.0"


@pytest.mark.slow
def test_a_page_shows_names_as_text(fewlier, hostile, tmp_path):
    page = tmp_path / "page.html"
    name = b"rows\xff\x1b<b>.csv".decode(errors="surrogateescape")
    os.link(hostile / "rows.csv", tmp_path / name)
    done = fewlier("report", tmp_path / name, "-m", hostile / "model.fewlier", "-o", page)
    assert done.code == 0, done.err
    content = page.read_text("utf-8")
    assert r"rows\udcff\x1b&lt;b&gt;.csv" in content
    assert "&lt;script&gt;x" in content
    assert "<script>x" not in content
    assert is_harmless(content)


# What a closed or full stream does is seen in a process alone.
SHELL = {
    "standard error is closed": ("{} score nowhere.csv -m m.fewlier 2>&-", 2, "", ""),
    "standard error is full": ("{} score nowhere.csv -m m.fewlier 2>/dev/full", 2, "", ""),
    "an option is wrong and standard error full": ("{} fit --no 2>/dev/full", 2, "", ""),
    "standard output is closed": (
        "{} --version >&-",
        2,
        "",
        "fewlier: standard output must be writable; got: Bad file descriptor.",
    ),
    "standard input is closed": (
        "{} score - -m m.fewlier <&-",
        2,
        "",
        "fewlier: standard input: a table must be a file that can be read; Bad file descriptor.",
    ),
    "all are closed": ("{} score - -m m.fewlier <&- >&- 2>&-", 2, "", ""),
    "the text of an error is not ASCII": (
        "PYTHONIOENCODING=ascii {} score größe–.csv -m m.fewlier",
        2,
        "",
        "fewlier: gr",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", SHELL)
@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's full device")
def test_streams_that_fail_end_in_a_sentence_or_none(case, tmp_path):
    command, code, out, err = SHELL[case]
    done = subprocess.run(
        command.format(COMMAND), shell=True, capture_output=True, cwd=tmp_path, check=False
    )
    assert done.returncode == code, done.stderr
    assert done.stdout.decode() == out
    assert done.stderr.decode().startswith(err)
    assert b"Traceback" not in done.stderr


@pytest.mark.slow
def test_explain_prints_to_a_terminal_without_unicode(hostile):
    done = subprocess.run(
        [COMMAND, "explain", hostile / "rows.csv", "-m", hostile / "model.fewlier", "--top", "1"],
        env=os.environ | {"PYTHONIOENCODING": "ascii", "COLUMNS": "200"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert b" expected " in done.stdout


def text_that_is_not_utf8(n):
    """Return a column of text whose fourth cell is not UTF-8, as some programs write it."""
    content = pa.py_buffer(b"abab" * 3 + b"a\xff\xfeb" + b"abab" * (n - 4))
    offsets = pa.py_buffer(np.arange(n + 1, dtype=np.int32) * 4)
    return pa.Array.from_buffers(pa.string(), n, [None, offsets, content])


@pytest.fixture
def bad_text(hostile, tmp_path):
    rows = pa.Table.from_pandas(pd.read_csv(hostile / "rows.csv"), preserve_index=False)
    path = tmp_path / "bad.parquet"
    pq.write_table(rows.append_column("note", text_that_is_not_utf8(rows.num_rows)), path)
    return path


@pytest.mark.parametrize(
    "command",
    [
        ("fit", "{table}", "-o", "{folder}/new.fewlier"),
        ("score", "{table}", "-m", "{model}", "-o", "{folder}/scored.csv"),
        ("report", "{table}", "-m", "{model}", "-o", "{folder}/page.html"),
        ("explain", "{table}", "-m", "{model}"),
    ],
    ids=lambda command: command[0],
)
def test_parquet_with_text_that_is_not_utf8_is_refused(
    command, bad_text, hostile, fewlier, tmp_path
):
    parts = {"table": bad_text, "model": hostile / "model.fewlier", "folder": tmp_path}
    done = fewlier(*(part.format(**parts) for part in command))
    assert (done.code, done.out) == (2, b"")
    assert "column 'note' must hold text in UTF-8; got other bytes (first at row 3)" in done.err
    assert list(tmp_path.iterdir()) == [bad_text]


@pytest.mark.slow
def test_parquet_with_views_of_text_is_read_as_text(hostile, fewlier, tmp_path):
    rows = pa.Table.from_pandas(pd.read_csv(hostile / "rows.csv"), preserve_index=False)
    for name, texts in (("[cell]", rows["[cell]"].to_pylist()), ("note", ["viewed"] * len(rows))):
        rows = rows.drop([name]) if name in rows.column_names else rows
        rows = rows.append_column(name, pa.array(texts, pa.string_view()))
    pq.write_table(rows, tmp_path / "views.parquet")
    page = tmp_path / "page.html"
    done = fewlier(
        "report", tmp_path / "views.parquet", "-m", hostile / "model.fewlier", "-o", page
    )
    assert done.code == 0, done.err
    assert ">viewed<" in page.read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("inspect", "/dev/zero"), "a device or pipe"),
        (("score", "rows.csv", "-m", "/dev/zero", "-o", "out.csv"), "a device or pipe"),
        (("inspect", "pipe"), "a device or pipe"),
        (("score", "/dev/zero", "-m", "model.fewlier"), "a header of at most"),
        (("fit", "rows.csv", "-o", "m.fewlier", "--random-state", "4294967296"), "random-state"),
        (("fit", "rows.csv", "-o", "m.fewlier", "--random-state", "-1"), "random-state"),
        (
            ("fit", "rows.csv", "-o", "m.fewlier", "--max-epochs", "9223372036854775807"),
            "max-epochs",
        ),
        (("threshold", "model.fewlier", "--cost-miss", "1e400", "--cost-alarm", "1"), "positive"),
        (("threshold", "model.fewlier", "--cost-miss", "nan", "--cost-alarm", "1"), "positive"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_cannot_be_meant_is_refused_in_a_sentence(
    arguments, message, hostile, fewlier, tmp_path, monkeypatch
):
    for name in ("rows.csv", "model.fewlier"):
        os.link(hostile / name, tmp_path / name)
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.chdir(tmp_path)
    done = fewlier(*arguments)
    assert (done.code, done.out) == (2, b"")
    assert message in done.err
    assert {path.name for path in tmp_path.iterdir()} == {"rows.csv", "model.fewlier", "pipe"}


@pytest.mark.parametrize(
    ("miss", "alarm", "sign"), [("1e308", "1e-308", -1), ("1e-308", "1e308", 1)]
)
def test_costs_of_any_size_move_the_threshold(miss, alarm, sign, hostile, fewlier, tmp_path):
    done = fewlier(
        *("threshold", hostile / "model.fewlier", "--cost-miss", miss, "--cost-alarm", alarm),
        *("-o", tmp_path / "moved.fewlier", "--json"),
    )
    assert done.code == 0, done.err
    assert sign * json.loads(done.out)["threshold"] > 1e5
    assert fewlier("inspect", tmp_path / "moved.fewlier").code == 0


def test_more_rows_and_columns_than_there_are_can_be_asked_for(hostile, fewlier):
    many = "9" * 30
    done = fewlier(
        *("explain", hostile / "rows.csv", "-m", hostile / "model.fewlier"),
        *("--top", many, "--columns", many, "--json"),
    )
    assert done.code == 0, done.err
    assert len(json.loads(done.out)["rows"]) == 80
