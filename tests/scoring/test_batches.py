"""Batches of Arrow in, batches with scores out: alike from every library that streams Arrow."""

import decimal
import itertools
import pickle  # noqa: TID251 - what Ray and Spark send
import subprocess
import sys

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from factories import FEATURES, payments, small
from hypothesis import given, settings
from hypothesis import strategies as st

from fewlier import AnomalyDetector, UserError
from fewlier.files.folder import open_table
from fewlier.scoring.batches import BatchScorer
from fewlier.scoring.files import score_file
from fewlier.scoring.scored import ADDED

ROWS = payments(60, seed=4)
TABLE = pa.Table.from_pandas(ROWS, preserve_index=False)


@pytest.fixture(scope="module")
def path(model_bytes, tmp_path_factory):
    path = tmp_path_factory.mktemp("batches") / "fraud.fewlier"
    path.write_bytes(model_bytes)
    return path


@pytest.fixture(scope="module")
def score(path):
    return BatchScorer(path)


def batch(table=TABLE):
    return table.combine_chunks().to_batches()[0]


def whole(batches):
    """Return batches that were scored as one table, without the pandas metadata."""
    return pa.Table.from_batches(batches).replace_schema_metadata(None)


@pytest.fixture(scope="module")
def expected(score):
    return whole([score(batch())])


def test_it_adds_what_the_detector_says_of_each_row(path, expected):
    detector = AnomalyDetector.load(path)
    rows = ROWS[FEATURES]
    assert expected.select(TABLE.column_names).equals(TABLE.replace_schema_metadata(None))
    assert expected["anomaly_score"].to_pylist() == detector.anomaly_score(rows).tolist()
    assert expected["is_anomaly"].to_pylist() == detector.predict(rows).astype(bool).tolist()
    assert expected["p_value"].to_pylist() == detector.p_value(rows).tolist()
    whys = detector.explain(rows).reasons(3)
    reasons = ["; ".join(map(str, why)) for why in whys]
    flags = expected["is_anomaly"].to_pylist()
    assert any(flags)
    assert expected["reason"].to_pylist() == [
        reason if flag else None for reason, flag in zip(reasons, flags, strict=True)
    ]


def test_a_file_is_scored_as_its_batches_are(path, expected, tmp_path):
    pq.write_table(TABLE, tmp_path / "rows.parquet")
    parts = []
    with open_table(tmp_path / "rows.parquet") as file:
        score_file(AnomalyDetector.load(path), file, parts.append)
    assert pa.concat_tables(parts).equals(expected)


@pytest.mark.slow
@settings(max_examples=20)
@given(sizes=st.lists(st.integers(0, 25), max_size=6))
def test_batches_of_any_size_give_the_same_rows(sizes, score, expected):
    cuts = np.minimum(np.cumsum([0, *sizes, len(ROWS)]), len(ROWS)).tolist()
    parts = [score(batch().slice(a, b - a)) for a, b in itertools.pairwise(cuts)]
    assert {part.schema for part in parts} == {score.schema(batch().schema)}
    assert whole(parts).equals(expected)


def test_an_empty_batch_has_the_columns_and_types_of_any_other(score):
    empty = score(batch().slice(0, 0))
    assert empty.num_rows == 0
    assert empty.schema == score.schema(TABLE.schema)
    assert {name: empty.schema.field(name).type for name in ADDED} == ADDED


def test_reasons_can_be_left_out(path, expected):
    score = BatchScorer(path, with_reason=False)
    found = score(batch())
    assert found.schema == score.schema(TABLE.schema)
    assert whole([found]).equals(expected.drop_columns("reason"))


def cast(**types):
    schema = TABLE.replace_schema_metadata(None).schema
    for name, dtype in types.items():
        schema = schema.set(schema.get_field_index(name), pa.field(name, dtype))
    return schema


@pytest.mark.parametrize(
    "types",
    [
        {"city": pa.dictionary(pa.int8(), pa.string())},
        {"city": pa.large_string()},
        {"city": pa.string_view()},
        {"visits": pa.int16()},
        {"amount": pa.decimal128(12, 2), "visits": pa.decimal256(50, 0)},
        {"visits": pa.dictionary(pa.int32(), pa.int64())},
    ],
    ids=lambda types: "+".join(map(str, types.values())),
)
def test_the_type_of_a_column_changes_neither_its_scores_nor_itself(types, score, expected):
    schema = cast(**types)
    columns = []
    for field in schema:
        column = TABLE[field.name]
        if pa.types.is_decimal(field.type):
            values = [None if x is None else decimal.Decimal(str(x)) for x in column.to_pylist()]
            column = pa.array(values, field.type)
        elif pa.types.is_dictionary(field.type):
            column = column.cast(field.type.value_type).combine_chunks().dictionary_encode()
        columns.append(column.cast(field.type))
    found = score(batch(pa.Table.from_arrays(columns, schema=schema)))
    assert found.schema == score.schema(schema)
    for name in ADDED:
        assert found[name].equals(expected[name].combine_chunks()), name


def test_a_column_without_a_value_may_lack_a_type(score):
    nothing = TABLE.set_column(TABLE.column_names.index("city"), "city", pa.nulls(len(ROWS)))
    text = TABLE.set_column(
        TABLE.column_names.index("city"), "city", pa.nulls(len(ROWS), pa.string())
    )
    found, same = score(batch(nothing)), score(batch(text))
    assert found["anomaly_score"].equals(same["anomaly_score"])
    assert pa.types.is_null(found.schema.field("city").type)


def test_dates_are_scored_and_keep_their_type(tmp_path):
    rng = np.random.default_rng(0)
    rows = payments(120).drop(columns=["id", "fraud"])
    rows["paid"] = pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 9**7, 120), "s")
    detector = small(hidden=(4,), max_epochs=1).fit(rows)
    detector.save(tmp_path / "m.fewlier")
    table = pa.Table.from_pandas(rows, preserve_index=False)
    score = BatchScorer(tmp_path / "m.fewlier")
    found = score(batch(table))
    assert found["anomaly_score"].to_pylist() == detector.anomaly_score(rows).tolist()
    assert found.schema.field("paid") == table.schema.field("paid")
    assert score(batch(table).slice(0, 0)).schema == found.schema


@pytest.mark.slow
def test_another_process_gives_the_same_bits(score, expected, tmp_path):
    (tmp_path / "scorer").write_bytes(pickle.dumps(score))
    with pa.ipc.new_file(str(tmp_path / "in.arrow"), TABLE.schema) as writer:
        writer.write_table(TABLE)
    code = """if True:
        import pathlib, pickle, sys, pyarrow as pa
        score = pickle.loads(pathlib.Path("scorer").read_bytes())
        rows = pa.ipc.open_file("in.arrow").get_batch(0)
        with pa.ipc.new_file("out.arrow", score.schema(rows.schema)) as writer:
            writer.write_batch(score(rows))
    """
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    found = pa.ipc.open_file(tmp_path / "out.arrow").read_all()
    assert found.replace_schema_metadata(None).equals(expected)


def test_it_travels_without_the_model(score):
    assert score.model is score.model  # which is read once
    assert len(pickle.dumps(score)) < 500
    again = pickle.loads(pickle.dumps(score))  # noqa: S301 - written here
    assert repr(again) == repr(score)


def test_it_loads_nothing_until_it_meets_rows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    score = BatchScorer("absent.fewlier")
    assert score.path == str(tmp_path / "absent.fewlier")
    with pytest.raises(UserError, match=r"absent\.fewlier"):
        score(batch())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.drop_columns("city"), "a batch: .*without 'city'"),
        (lambda t: t.append_column("reason", t["city"]), "a batch: .*that scoring adds: 'reason'"),
        (
            lambda t: t.set_column(1, "amount", pa.array([*"ab" * 28, *"1234"])),
            r"a batch: Column 'amount' must hold numbers .*first at row 100",
        ),
    ],
)
def test_a_batch_that_does_not_fit_is_refused(change, message, score):
    with pytest.raises(UserError, match=message):
        score(batch(change(TABLE)), start=100)


# The three that docs/OPERATE.md shows.


def test_duckdb_streams_through_it(score, expected, tmp_path):
    pq.write_table(TABLE, tmp_path / "rows.parquet", row_group_size=25)
    source, connection = duckdb.connect(), duckdb.connect()  # one has a single open result
    reader = source.sql(f"FROM '{tmp_path}/*.parquet'").to_arrow_reader(25)
    scored = pa.RecordBatchReader.from_batches(score.schema(reader.schema), map(score, reader))
    connection.register("scored", scored)
    top = connection.sql("SELECT id, anomaly_score FROM scored WHERE is_anomaly ORDER BY id")
    flagged = expected.filter(expected["is_anomaly"]).sort_by("id")
    assert top.fetchall() == [
        *zip(flagged["id"].to_pylist(), flagged["anomaly_score"].to_pylist(), strict=True)
    ]


def test_polars_streams_through_it(score, expected, tmp_path):
    pq.write_table(TABLE, tmp_path / "rows.parquet", row_group_size=25)
    frames = pl.scan_parquet(tmp_path / "rows.parquet").collect_batches(chunk_size=25)
    parts = [score(rows) for frame in frames for rows in frame.to_arrow().to_batches()]
    assert pl.from_arrow(parts).equals(pl.from_arrow(expected))


def test_pyarrow_streams_through_it(score, expected, tmp_path):
    pq.write_table(TABLE, tmp_path / "rows.parquet", row_group_size=25)
    rows = ds.dataset(tmp_path / "rows.parquet")
    batches = map(score, rows.to_batches(batch_size=25))
    ds.write_dataset(batches, tmp_path / "out", schema=score.schema(rows.schema), format="parquet")
    assert ds.dataset(tmp_path / "out").to_table().replace_schema_metadata(None).equals(expected)
