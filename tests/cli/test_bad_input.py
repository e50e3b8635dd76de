"""What the user can fix: exit code 2, one message with the file and a remedy, nothing changed."""

import gzip
import io
import pickle  # noqa: TID251 - to show that it is refused
import re

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from factories import FEATURES, payments, small

from fewlier.files import reading

ROWS = payments(80, seed=2)
TEXT = ROWS.to_csv(index=False)


def parquet(frame):
    sink = io.BytesIO()
    pq.write_table(frame if isinstance(frame, pa.Table) else pa.Table.from_pandas(frame), sink)
    return sink.getvalue()


def csv(frame):
    return frame.to_csv(index=False).encode()


def changed(column, value, row=5, rows=ROWS):
    rows = rows.astype({column: object})
    rows.loc[row, column] = value
    return rows


@pytest.fixture
def refused(fewlier, folder, tmp_path, monkeypatch):
    """Return a function that runs a command, which must fail well, and gives its message."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments, stdin=b""):
        before = folder()
        done = fewlier(*arguments, stdin=stdin)
        assert done.code == 2
        assert done.out == b""
        assert done.err.startswith("fewlier: ")
        assert "Traceback" not in done.err
        assert folder() == before
        return done.err.removeprefix("fewlier: ")

    return run


TABLES = {  # content, and what commands say of it
    "empty": (b"", "the file is empty"),
    "ragged": (TEXT.encode() + b"1,2\n", "must have 5 cells.*got 2 in row 80: '1,2'. Correct"),
    "twice a name": (TEXT.replace("id", "city", 1).encode(), "'city' 2 times. Rename or drop"),
    "a column is missing": (csv(ROWS.drop(columns="visits")), "visits"),
    "all columns are missing": (csv(ROWS[["id", "fraud"]]), "amount.*visits.*city"),
    "text for numbers": (
        csv(ROWS.assign(amount="much")),
        r"'amount' must hold numbers written like 1200.50; got 80 texts of 80 that are not, such "
        r"as 'much' \(first at row 0\). Write them as in",
    ),
    "numbers in another form in parquet": (
        parquet(ROWS.assign(visits="1.234,5")),
        r"'visits' must hold numbers written like 1200.50; got 80 texts .*'1.234,5'",
    ),
    "infinity": (csv(changed("amount", "inf")), r"finite.*first at row 5\). Write them as missing"),
    "infinity in parquet": (
        parquet(ROWS.assign(amount=float("inf"))),
        r"finite numbers; got 80 infinite \(first at row 0\)",
    ),
    "UTF-16": (TEXT.encode("utf-16"), "got text in UTF-16. Save it as CSV"),
    "latin-1": (TEXT.replace("Oslo", "Tromsø").encode("latin-1"), "UTF-8.* Save it as UTF-8"),
    "a spreadsheet": (
        b"PK\x03\x04\x14\x00",
        "got a spreadsheet, zip or model. Save it as CSV",
    ),
    "cut gzip": (gzip.compress(TEXT.encode())[:-30], "can be read; Truncated compressed stream"),
    "cut parquet": (parquet(ROWS)[:-30], "must be CSV or Parquet; got a damaged file"),
    "no columns": (parquet(pa.table({})), "must have a column"),
    "garbage": (bytes(range(250, 0, -1)), "must be UTF-8; got other bytes"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("content", "message"), TABLES.values(), ids=TABLES)
def test_a_bad_table_is_refused(content, message, model, refused, tmp_path):
    (tmp_path / "new.data").write_bytes(content)
    found = refused("score", "new.data", "-m", model, "-o", "out.csv")
    assert found.startswith("new.data: ")
    assert re.search(message, found), found


@pytest.mark.parametrize("command", ["explain", "evaluate"])
def test_figures_need_rows(command, model, refused, tmp_path):
    (tmp_path / "new.data").write_bytes(b"amount,visits,city,fraud\n")
    label = ["--label", "fraud"] if command == "evaluate" else []
    found = refused(command, "new.data", "-m", model, *label)
    assert found.startswith("new.data: a table must have rows; got only a header.")


@pytest.mark.parametrize("name", ["ragged", "a column is missing", "infinity"])
@pytest.mark.parametrize("command", ["score", "explain", "evaluate", "update"])
def test_every_command_says_the_same_of_a_bad_table(name, command, model, refused, tmp_path):
    content, message = TABLES[name]
    before, after = {
        "score": (["-m", model], ["-o", "out.csv"]),
        "explain": (["-m", model], []),
        "evaluate": (["-m", model], ["--label", "fraud"]),
        "update": ([model], ["--label", "fraud"]),
    }[command]
    (tmp_path / "new.data").write_bytes(content)
    found = refused(command, *before, "new.data", *after)
    assert found.startswith("new.data: ")
    assert re.search(message, found), found
    from_pipe = refused(command, *before, "-", *after, stdin=content)
    assert from_pipe == found.replace("new.data", "standard input")


@pytest.mark.parametrize("name", ["new.csv", "new.parquet"])
def test_rows_are_counted_over_batches(name, model, refused, monkeypatch, tmp_path):
    monkeypatch.setattr("fewlier.files.text.BLOCK_BYTES", 500)
    monkeypatch.setattr(reading, "_BATCH_ROWS", 7)
    rows = changed("amount", float("inf"), row=70).astype({"amount": float})
    (tmp_path / name).write_bytes(parquet(rows) if name == "new.parquet" else csv(rows))
    found = refused("score", name, "-m", model, "-o", "out.csv")
    assert re.search(rf"{name}: Column 'amount' .*finite.*\(first at row 70\)", found), found


@pytest.mark.parametrize("column", ["anomaly_score", "is_anomaly", "p_value", "reason"])
def test_columns_that_scoring_adds_must_be_free(column, model, refused, tmp_path):
    (tmp_path / "new.csv").write_bytes(csv(ROWS.assign(**{column: 1})))
    found = refused("score", "new.csv", "-m", model, "-o", "out.csv")
    assert f"new.csv: the table already has columns that scoring adds: '{column}'." in found
    assert "rename" in found


MODELS = {
    "cut": lambda content: content[:-100],
    "cut at half": lambda content: content[: len(content) // 2],
    "a changed bit": lambda content: content[:-3000] + b"\x55" + content[-2999:],
    "a pickle": lambda _: pickle.dumps({"a": 1}),
    "empty": lambda _: b"",
    "a table": lambda _: TEXT.encode(),
}
WITH_MODEL = {
    "score": ["score", "new.csv", "-m", "bad.fewlier", "-o", "out.csv"],
    "explain": ["explain", "new.csv", "-m", "bad.fewlier"],
    "evaluate": ["evaluate", "new.csv", "-m", "bad.fewlier", "--label", "fraud"],
    "update": ["update", "bad.fewlier", "new.csv", "--label", "fraud"],
    "threshold": ["threshold", "bad.fewlier", "--false-alarm-rate", "0.2"],
}


@pytest.mark.parametrize("damage", [*MODELS.values(), None], ids=[*MODELS, "absent"])
@pytest.mark.parametrize("command", WITH_MODEL)
def test_a_bad_model_is_refused(command, damage, model_bytes, refused, tmp_path):
    (tmp_path / "new.csv").write_text(TEXT)
    if damage is not None:
        (tmp_path / "bad.fewlier").write_bytes(damage(model_bytes))
    assert "bad.fewlier" in refused(*WITH_MODEL[command])
    assert damage is not None or "No such file" in refused(*WITH_MODEL[command])


@pytest.mark.parametrize("name", ["cut", "a pickle", "empty", "a table", None])
def test_inspect_refuses_a_bad_model(name, model_bytes, refused, tmp_path):
    if name is not None:
        (tmp_path / "bad.fewlier").write_bytes(MODELS[name](model_bytes))
    assert "bad.fewlier" in refused("inspect", "bad.fewlier")


OUTPUTS = {
    "absent/out.csv": "'absent/out.csv': No such file or directory.*choose another path",
    "folder.csv": "'folder.csv': it is a folder",
    "new.csv/out.csv": "'new.csv/out.csv': Not a directory",
    "/proc/out.csv": "'/proc/out.csv': No such file",
    "new.csv": "another file than the input; got 'new.csv' for both. Choose another path",
    "link.csv": "another file than the input; got 'link.csv' for both",
    "fraud.fewlier": "another file than the input; got 'fraud.fewlier' for both",
    "out.xlsx": r"must end in .csv, .tsv, .txt, .parquet, .pq.*; got 'out.xlsx'",
    "out": "must end in .csv",
}


@pytest.mark.parametrize(("output", "message"), OUTPUTS.items(), ids=OUTPUTS)
def test_a_bad_output_is_refused_before_the_work(output, message, model, refused, tmp_path):
    (tmp_path / "new.csv").write_text(TEXT)
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "link.csv").symlink_to("new.csv")
    assert re.search(message, refused("score", "new.csv", "-m", model, "-o", output))


SCARCE = {
    "one row": (csv(ROWS.head(1)), "train.data"),
    "all anomalous": (csv(ROWS.drop(columns="id").assign(fraud=1)), "normal"),
    "an ambiguous mark": (
        csv(ROWS[["city", "fraud"]].assign(amount="1.200")),
        r"'amount' does not show whether '1.200' has a fraction.*--column amount=1200.50 or",
    ),
    "label absent": (
        csv(ROWS.drop(columns="fraud")),
        "label column must be among.*'fraud'.*'id'",
    ),
    "strange label": (
        csv(changed("fraud", "yes")),
        r"Label column 'fraud' must hold 1 and 0.*got 'yes' \(first at row 5\).*--anomaly VALUE",
    ),
    "label of 2": (csv(changed("fraud", 2.0)), r"got '2' \(first at row 5\)|2.0"),
    "infinite": (
        csv(changed("amount", "inf")),
        r"finite.*\(first at row 5\). Write them as missing",
    ),
    "empty": (b"", "the file is empty"),
    "header alone": (b"amount,fraud\n", "got only a header"),
    "ragged": (TEXT.encode() + b"1,2\n", "got 2 in row 80"),
    "twice a name": (TEXT.replace("id", "city", 1).encode(), "'city' 2 times"),
    "label alone": (csv(ROWS[["fraud"]]), "must have a column to learn from; none is left"),
    "no columns": (parquet(pa.table({})), "must have a column"),
    "ids alone": (csv(ROWS[["id", "fraud"]]), r"none is left: 'id' \(an identifier"),
}


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("content", "message"), SCARCE.values(), ids=SCARCE)
def test_fit_refuses_a_bad_table(content, message, refused, tmp_path):
    (tmp_path / "train.data").write_bytes(content)
    found = refused("fit", "train.data", "--label", "fraud", "-o", "new.fewlier")
    assert found.startswith("train.data: ")
    assert re.search(message, found), found


FIT = {
    "--label class --anomaly bad": "train.csv: the label column must be among.*'class'",
    "--label city --anomaly Paris": "does not hold 'Paris', named as anomaly",
    "--anomaly 1": "--anomaly must come with --label",
    "--label fraud --column visits": "--column must be NAME=KIND, .*; got 'visits'",
    "--label fraud --column visits=counts": "visits.*counts",
    "--label fraud --column visit=count": "visit",
    "--label fraud --ignore id,when": "--ignore when must name a column of the table; got 'when'",
    "--label fraud --ignore id --column id=real": "must name a column once; got 'id' again",
    "--label fraud --column city=real --column visits=odd": "2 columns .*'visits' .*'city' ",
    "--label fraud --ignore id,amount,visits,city": "must have a column to learn from",
    "--label fraud --false-alarm-rate 2": "--false-alarm-rate.*2",
    "--label fraud --validation absent.csv": "absent.csv: .*No such file",
    "--label fraud -o -": "must be written to a file; got standard output. Give -o a path",
    "--label fraud -o train.csv": "another file than the input; got 'train.csv' for both",
    "--label fraud -o absent/x": "'absent/x': No such file",
    "--label fraud --validation bare.csv": "bare.csv: the label column .*'fraud'",
    "--label fraud --ignore id --validation odd.csv": "train.csv, odd.csv: .*'city'",
}


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("options", "message"), FIT.items(), ids=FIT)
def test_fit_refuses_bad_options(options, message, refused, tmp_path):
    (tmp_path / "train.csv").write_text(TEXT)
    (tmp_path / "bare.csv").write_bytes(csv(ROWS[["id", *FEATURES]]))
    (tmp_path / "odd.csv").write_bytes(csv(ROWS.drop(columns="city")))
    output = [] if "-o" in options else ["-o", "new.fewlier"]
    assert re.search(message, refused("fit", "train.csv", *options.split(), *output))


UPDATE = {
    "--label class": "new.csv: the label column must be among its columns; got 'class'",
    "--label city": "new.csv: Label column 'city' must hold 1 and 0.*--anomaly VALUE",
    "--label fraud -o -": "must be written to a file; got standard output",
    "--label fraud -o new.csv": "another file than the input; got 'new.csv' for both",
    "--label fraud -o absent/x": "'absent/x': No such file",
    "--label fraud -o folder": "'folder': it is a folder",
}


@pytest.mark.parametrize(("options", "message"), UPDATE.items(), ids=UPDATE)
def test_update_refuses_bad_options(options, message, model, refused, tmp_path):
    (tmp_path / "new.csv").write_text(TEXT)
    (tmp_path / "folder").mkdir()
    assert re.search(message, refused("update", model, "new.csv", *options.split()))


@pytest.mark.parametrize("output", [[], ["-o", "other.fewlier"]])
def test_update_refuses_a_model_that_keeps_no_rows(output, refused, tmp_path):
    (tmp_path / "new.csv").write_bytes(csv(ROWS))
    small(keep_rows=False, max_epochs=1).fit(ROWS[FEATURES]).save(tmp_path / "light.fewlier")
    found = refused("update", "light.fewlier", "new.csv", "--label", "fraud", *output)
    assert "kept no training rows. Fit again with --keep-rows" in found


def test_evaluate_needs_labels_of_both_kinds(model, refused, tmp_path):
    for rows, found in [
        (ROWS.assign(fraud=0), "0 anomalous, 80 normal and 0 unlabelled"),
        (ROWS.assign(fraud=1), "80 anomalous, 0 normal and 0 unlabelled"),
        (ROWS.assign(fraud=None), "0 anomalous, 0 normal and 80 unlabelled"),
    ]:
        (tmp_path / "test.csv").write_bytes(csv(rows))
        message = refused("evaluate", "test.csv", "-m", model, "--label", "fraud")
        needs = "an evaluation needs rows labelled anomalous, and normal or unlabelled ones"
        assert f"test.csv: {needs} to compare them with; got {found}" in message
        assert "Label some of each" in message


def test_a_file_that_cannot_be_csv_is_refused_with_another_ending(model, refused, tmp_path):
    rows = pa.Table.from_pandas(ROWS).append_column("tags", pa.array([[1]] * len(ROWS)))
    (tmp_path / "new.parquet").write_bytes(parquet(rows))
    message = refused("score", "new.parquet", "-m", model, "-o", "out.csv")
    assert "Column 'tags' must hold values that CSV can hold; got list" in message
    assert "Write Parquet instead" in message
    assert isinstance(pd.read_parquet(tmp_path / "new.parquet"), pd.DataFrame)
