"""`fewlier score`: what goes in comes out, with scores."""

import bz2
import csv
import gzip
import io
import json
import re

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from factories import FEATURES, payments

from fewlier import AnomalyDetector
from fewlier.files import reading
from fewlier.scoring.scored import ADDED

ROWS = payments(150, seed=1)
N = len(ROWS)


def text(**options):
    return ROWS.to_csv(index=False, **options)


def parquet(frame=ROWS):
    return frame.to_parquet(index=False)


INPUTS = {
    "commas": text().encode(),
    "semicolons and decimal commas": text(sep=";", decimal=",").encode(),
    "tabs": text(sep="\t").encode(),
    "bars": text(sep="|").encode(),
    "mark and CRLF": text(lineterminator="\r\n").encode("utf-8-sig"),
    "quotes everywhere": text(quoting=csv.QUOTE_ALL).encode(),
    "NA": text(na_rep="NA").encode(),
    "an index": ROWS.to_csv().encode(),
    "other order": ROWS[["fraud", *reversed(FEATURES), "id"]].to_csv(index=False).encode(),
    "gzip": gzip.compress(text().encode()),
    "bz2": bz2.compress(text().encode()),
    "zstd": pa.compress(text().encode(), codec="zstd", asbytes=True),
    "parquet": parquet(),
    "parquet from polars": pl.from_pandas(ROWS).write_parquet(sink := io.BytesIO())
    or sink.getvalue(),
    "parquet with types": parquet(
        ROWS.astype({"visits": "Int16", "city": "category", "fraud": "boolean"})
    ),
}


@pytest.fixture
def expected(model):
    return AnomalyDetector.load(model).anomaly_score(ROWS[FEATURES])


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "new.csv"
    path.write_text(text())
    return path


def records(content, delimiter=","):
    return list(csv.DictReader(io.StringIO(content.decode(), newline=""), delimiter=delimiter))


@pytest.mark.slow
@pytest.mark.parametrize("source", ["file", "pipe"])
@pytest.mark.parametrize("content", INPUTS.values(), ids=INPUTS)
def test_every_kind_of_input_has_the_scores_of_the_library(
    content, source, expected, model, fewlier, tmp_path
):
    (tmp_path / "in").write_bytes(content)
    name, stdin = ("-", content) if source == "pipe" else (tmp_path / "in", b"")
    done = fewlier("score", name, "-m", model, "-o", tmp_path / "out.parquet", stdin=stdin)
    assert done.code == 0, done.err
    assert done.out == b""
    out = pq.read_table(tmp_path / "out.parquet").to_pydict()
    np.testing.assert_array_equal(out["anomaly_score"], expected)
    assert out["id"] == ROWS["id"].tolist()


def test_scores_survive_csv_as_they_are(table, expected, model, fewlier):
    out = records(fewlier("score", table, "-m", model).out)
    assert [float(row["anomaly_score"]) for row in out] == expected.tolist()
    loaded = AnomalyDetector.load(model)
    assert [float(row["p_value"]) for row in out] == loaded.p_value(ROWS[FEATURES]).tolist()
    is_anomaly = [row["is_anomaly"] == "true" for row in out]
    assert is_anomaly == (expected > loaded.threshold_).tolist()
    assert 0 < sum(is_anomaly) < N


def test_anomalies_have_reasons_and_other_rows_none(table, model, fewlier):
    out = records(fewlier("score", table, "-m", model).out)
    for row in out:
        reasons = row["reason"].split("; ") if row["reason"] else []
        assert bool(reasons) == (row["is_anomaly"] == "true")
        assert all(
            re.fullmatch(
                r"(amount|visits|city) (= \S+|is missing), expected [^;:]+: \+\d+\.\d", reason
            )
            for reason in reasons
        )
    fraud = [row["reason"] for row in out if row["fraud"] == "1.0"]
    assert sum(reason.startswith("amount") for reason in fraud) > len(fraud) / 2


@pytest.mark.parametrize("sep", [",", ";", "\t", "|"])
def test_cells_columns_and_order_pass_through_as_they_are(sep, model, fewlier):
    cells = {"id": "007", "amount": " 50.10", "visits": "NA", "city": "Oslo", "note": 'a "b",;|\n'}
    frame = pd.DataFrame([cells, cells | {"id": "006"}])
    content = frame.to_csv(index=False, sep=sep).encode()
    done = fewlier("score", "-", "-m", model, stdin=content)
    out = records(done.out, sep)
    assert list(out[0]) == [*cells, *ADDED]
    assert [{name: row[name] for name in cells} for row in out] == frame.to_dict("records")
    assert "note: not columns of the model, passed through: id, note." in done.err
    done = fewlier(
        "score",
        "-",
        "-m",
        model,
        stdin=frame.rename(columns={"id": ""}).to_csv(index=False).encode(),
    )
    assert "passed through: one without a name, note." in done.err


@pytest.mark.slow
@pytest.mark.parametrize("name", ["new.csv", "new.parquet"])
def test_cells_that_cannot_be_read_are_missing_and_named(
    name, model, fewlier, monkeypatch, tmp_path
):
    monkeypatch.setattr("fewlier.files.text.BLOCK_BYTES", 500)
    monkeypatch.setattr(reading, "_BATCH_ROWS", 7)
    rows = ROWS.astype({"amount": str})
    rows.loc[[70, 90], "amount"] = ["much", "more"]
    (tmp_path / name).write_bytes(parquet(rows) if "parquet" in name else rows.to_csv().encode())
    done = fewlier("score", tmp_path / name, "-m", model, "-o", tmp_path / "out.csv", "--json")
    assert "count as missing: 2 in amount (first 'much' in row 70)." in done.err
    assert json.loads(done.out)["unread"] == {"amount": 2}
    rows.loc[[70, 90], "amount"] = None
    expected = AnomalyDetector.load(model).anomaly_score(rows[FEATURES])
    found = pd.read_csv(tmp_path / "out.csv")["anomaly_score"]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.slow
def test_the_output_is_the_same_on_standard_output_and_in_files(table, model, fewlier, tmp_path):
    shown = fewlier("score", table, "-m", model, "-o", "-").out
    for name, unpack in {"a.csv": bytes, "a.txt": bytes, "a.csv.gz": gzip.decompress}.items():
        assert fewlier("score", table, "-m", model, "-o", tmp_path / name).code == 0
        assert unpack((tmp_path / name).read_bytes()) == shown


@pytest.mark.parametrize("name", ["out.csv", "out.csv.gz", "out.tsv", "out.parquet"])
def test_the_output_opens_elsewhere_with_its_types(name, table, model, fewlier, tmp_path):
    out = tmp_path / name
    assert fewlier("score", table, "-m", model, "-o", out).code == 0
    sep = "\t" if name == "out.tsv" else ","
    if name == "out.parquet":
        frames = pd.read_parquet(out), pl.read_parquet(out), duckdb.read_parquet(str(out))
    else:
        frames = pd.read_csv(out, sep=sep), pl.read_csv(out, separator=sep), duckdb.read_csv(out)
        content = gzip.decompress(out.read_bytes()) if ".gz" in name else out.read_bytes()
        dialect = "excel-tab" if sep == "\t" else "excel"
        sheet = list(csv.reader(io.StringIO(content.decode(), newline=""), dialect))
        assert {len(row) for row in sheet} == {len(ROWS.columns) + len(ADDED)}
    pandas, polars, duck = frames
    assert len(pandas) == len(polars) == len(duck) == N
    assert [pandas[c].dtype.kind for c in [*ADDED][:3]] == ["f", "b", "f"]
    assert pandas["reason"].dropna().map(type).eq(str).all()
    assert [polars[c].dtype for c in ADDED] == [pl.Float64, pl.Boolean, pl.Float64, pl.String]
    types = dict(zip(duck.columns, map(str, duck.types), strict=True))
    assert [types[c] for c in ADDED] == ["DOUBLE", "BOOLEAN", "DOUBLE", "VARCHAR"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["new.csv", "new.parquet"])
def test_scores_do_not_depend_on_batches(name, model, fewlier, tmp_path, monkeypatch):
    (tmp_path / name).write_bytes(parquet() if name.endswith("parquet") else text().encode())
    whole = fewlier("score", tmp_path / name, "-m", model)
    monkeypatch.setattr("fewlier.files.text.BLOCK_BYTES", 2000)
    monkeypatch.setattr(reading, "_BATCH_ROWS", 31)
    parts = fewlier("score", tmp_path / name, "-m", model)
    assert whole.code == 0
    assert parts == whole
    explained = fewlier("explain", tmp_path / name, "-m", model, "--json").out
    monkeypatch.undo()
    assert fewlier("explain", tmp_path / name, "-m", model, "--json").out == explained


def test_score_says_in_json_what_it_did(table, model, fewlier, tmp_path):
    out = tmp_path / "out.csv"
    done = fewlier("score", table, "-m", model, "-o", out, "--json")
    loaded = AnomalyDetector.load(model)
    assert json.loads(done.out) == {
        "output": str(out),
        "n_rows": N,
        "n_above_threshold": out.read_text().count(",true,"),
        "threshold": loaded.threshold_,
        "fdr": None,
        "unit": loaded.score_unit_,
        "passed_through": ["id", "fraud"],
        "n_impossible": {"visits": 1},
        "unread": {},
        "drift": loaded.drift(ROWS[FEATURES]).to_json(),
    }
    assert done.err.endswith("fewlier: note: not columns of the model, passed through: id, fraud.")


@pytest.mark.slow
@pytest.mark.parametrize("source", ["file", "pipe", "parquet"])
def test_a_false_discovery_rate_is_that_of_the_whole_file(
    source, table, model, fewlier, tmp_path, monkeypatch
):
    loaded, out = AnomalyDetector.load(model), tmp_path / "out.parquet"
    (tmp_path / "new.parquet").write_bytes(parquet())
    name = {"file": table, "pipe": "-", "parquet": tmp_path / "new.parquet"}[source]
    expected = loaded.predict(ROWS[FEATURES], fdr=0.9)
    assert 0 < expected.sum() < N
    for batch in (None, 2000):
        if batch:
            monkeypatch.setattr("fewlier.files.text.BLOCK_BYTES", batch)
            monkeypatch.setattr(reading, "_BATCH_ROWS", 31)
        options = ["-m", model, "-o", out, "--fdr", 0.9]
        done = fewlier("score", name, *options, stdin=text().encode())
        assert done.code == 0, done.err
        assert "standard units, at a false-discovery rate of 0.9." in done.err
        rows = pq.read_table(out).to_pydict()
        assert rows["is_anomaly"] == (expected == 1).tolist()
        assert rows["id"] == ROWS["id"].tolist()
        assert [reason is not None for reason in rows["reason"]] == rows["is_anomaly"]
    found = json.loads(fewlier("score", table, *options, "--json").out)
    assert found["fdr"] == 0.9
    assert found["n_above_threshold"] == expected.sum()


def test_a_false_discovery_rate_that_cannot_be_kept_flags_nothing(table, model, fewlier, tmp_path):
    options = ["score", table, "-m", model, "-o", tmp_path / "out.csv", "--fdr", 0.001]
    done = fewlier(*options, "--json")
    assert "note: A false-discovery rate of 0.001 needs at least 999 held-out" in done.err
    found = json.loads(done.out)
    assert (found["n_above_threshold"], found["threshold"]) == (0, None)
    said = fewlier(*options).err
    assert "none flagged at a false-discovery rate of 0.001." in said
    done = fewlier("score", table, "-m", model, "--fdr", 3)
    assert (done.code, done.out) == (2, b"")
    assert "--fdr must be a share between 0 and 1; got 3.0" in done.err


def test_it_says_how_many_odd_rows_a_false_discovery_rate_takes(model, fewlier, tmp_path):
    loaded = AnomalyDetector.load(model)
    m = len(loaded.model_.calibration.normal_scores)
    rows = ROWS[loaded.predict(ROWS[FEATURES]) == 0]  # none of them is odd
    n, fdr = len(rows), 0.1
    rows.to_csv(tmp_path / "usual.csv", index=False)
    said = fewlier("score", tmp_path / "usual.csv", "-m", model, "--fdr", fdr).err
    least = next(k for k in range(1, n) if n / (m + 1) <= k * fdr)
    assert f"No row of {n} can be flagged" in said
    assert f"unless {least} score above all {m} held-out normal rows; 0 do" in said


@pytest.mark.parametrize("flag", ["--false-alarm-rate", "--contamination"])
def test_who_asks_for_a_rate_is_told_where_thresholds_are_set(table, model, fewlier, flag):
    done = fewlier("score", table, "-m", model, flag, 0.05)
    assert done.code == 2
    assert f"fewlier threshold {model} --false-alarm-rate 0.05" in done.err


@pytest.mark.parametrize("output", ["out.csv", "out.parquet"])
@pytest.mark.parametrize("fdr", [[], ["--fdr", 0.1]])
def test_a_table_without_rows_gives_one_without_rows(model, fewlier, tmp_path, output, fdr):
    (tmp_path / "none.csv").write_text(text().splitlines()[0] + "\n")
    done = fewlier("score", tmp_path / "none.csv", "-m", model, "-o", tmp_path / output, *fdr)
    assert (done.code, "0 rows scored" in done.err) == (0, True), done.err
    read = pd.read_csv if output.endswith("csv") else pd.read_parquet
    found = read(tmp_path / output)
    assert list(found) == [*ROWS, "anomaly_score", "is_anomaly", "p_value", "reason"]
    assert not len(found)


@pytest.mark.slow
def test_score_warns_of_rows_that_no_longer_look_like_training(
    model, fewlier, tmp_path, monkeypatch
):
    monkeypatch.setattr("fewlier.files.text.BLOCK_BYTES", 2000)
    stale = ROWS.assign(amount=ROWS["amount"] + 15)
    options = ["score", "-", "-m", model, "-o", tmp_path / "out.csv"]
    done = fewlier(*options, stdin=stale.to_csv(index=False).encode())
    assert re.search(
        r"warning: 150 rows no longer look like the training normals: .*values of amount "
        r"\(0\.\d\d\).*\. Check the data, or fit again\.",
        done.err,
    )
    found = json.loads(fewlier(*options, "--json", stdin=stale.to_csv(index=False).encode()).out)
    assert found["drift"]["columns"] == ["amount"]
    loaded = AnomalyDetector.load(model)
    assert found["drift"] == json.loads(json.dumps(loaded.drift(stale[FEATURES]).to_json()))


def test_score_says_in_words_what_it_did(model, fewlier):
    done = fewlier("score", "-", "-m", model, stdin=ROWS[FEATURES].to_csv(index=False).encode())
    assert re.fullmatch(
        r"fewlier: note: values never seen in training, or impossible, count as odd: 1 in visits. "
        r"fewlier: 150 rows scored, \d+ above the threshold of \S+ standard units.",
        done.err,
    )


def test_json_and_rows_cannot_share_standard_output(table, model, fewlier, folder):
    before = folder()
    done = fewlier("score", table, "-m", model, "--json")
    message = "fewlier: --json needs -o: rows and JSON cannot both go to standard output."
    assert done == (2, b"", message)
    assert folder() == before
