"""Fits to rows that come in batches, from whatever streams them."""

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from factories import FEATURES, payments, small

from fewlier import FewlierWarning, UserError
from fewlier.files import reading, sampling
from fewlier.table.label_column import LabelColumn

ROWS = payments(300, seed=2).drop(columns="id")
TABLE = pa.Table.from_pandas(ROWS, preserve_index=False)
QUICK = {
    "false_alarm_rate": 0.5,
    "hidden": (4,),
    "max_epochs": 1,
    "lambdas": (10,),
    "selection": "best",
}


def query():
    connection = duckdb.connect()
    connection.register("payments", TABLE)
    return connection.sql("FROM payments")


STREAMS = {
    "iterable of batches": lambda: TABLE.to_batches(max_chunksize=7),
    "generator of tables": lambda: (TABLE.slice(start, 90) for start in range(0, 300, 90)),
    "reader": lambda: TABLE.to_reader(13),
    "dataset": lambda: ds.dataset(TABLE),
    "scanner": lambda: ds.dataset(TABLE).scanner(batch_size=50),
    "duckdb relation": query,
    "polars batches": lambda: pl.from_arrow(TABLE).lazy().collect_batches(chunk_size=33),
    "arrow table": lambda: TABLE,
    "pandas with its column": lambda: ROWS,
    "polars with its column": lambda: pl.from_arrow(TABLE),
}


@pytest.fixture(scope="module")
def expected():
    detector = small(**QUICK).fit(ROWS[FEATURES], ROWS["fraud"])
    return detector.anomaly_score(ROWS[FEATURES]).tolist()


@pytest.mark.parametrize("make", STREAMS.values(), ids=STREAMS)
def test_a_stream_that_is_kept_whole_gives_the_fit_of_a_frame(make, expected):
    detector = small(**QUICK).fit(make(), y="fraud")
    assert detector.anomaly_score(ROWS[FEATURES]).tolist() == expected
    assert detector.feature_names_in_.tolist() == FEATURES
    assert len(detector.labels_) == 300


def test_without_labels_a_stream_needs_no_column():
    features = TABLE.drop_columns("fraud")
    found = small(**QUICK).fit(features.to_reader(40))
    expected = small(**QUICK).fit(ROWS[FEATURES])
    rows = ROWS[FEATURES]
    assert found.anomaly_score(rows).tolist() == expected.anomaly_score(rows).tolist()


def test_words_are_read_by_a_label_column_and_keep_their_kinds():
    words = pa.array(["ok", "ok", "theft", "slip", None] * 60)
    rows = TABLE.drop_columns("fraud").append_column("what", words)
    with pytest.warns(FewlierWarning, match="the stream: Values not named as normal count as"):
        detector = small(**QUICK).fit(iter([rows]), LabelColumn("what", normal=("ok",)))
    assert detector.summary_.labelled_kinds == {"theft": 60, "slip": 60}
    assert detector.summary_.n_unlabelled == 60


@pytest.mark.slow
def test_a_fit_to_a_sample_counts_all_rows_and_keeps_no_scores_of_them(monkeypatch):
    monkeypatch.setattr(sampling, "MAX_NORMALS", 100)
    monkeypatch.setattr(reading, "_BATCH_ROWS", 64)
    monkeypatch.setattr(reading, "_BATCH_ROWS", 64)
    detector = small(**QUICK)
    detector.fit(iter(TABLE.to_batches(max_chunksize=11)), y="fraud")
    n_anomalies = int((ROWS["fraud"] == 1).sum())
    summary = detector.summary_
    counts = (summary.n_normal, summary.n_anomaly, summary.n_unlabelled)
    assert counts == (int((ROWS["fraud"] == 0).sum()), n_anomalies, 60)
    assert "Of 300 rows, 100 normal and unlabelled ones" in str(summary)
    with pytest.raises(AttributeError, match="need the training rows"):
        detector.labels_  # noqa: B018 - looked up, and so computed
    detector.update(ROWS[FEATURES].head(5), np.ones(5))
    detector.fit(ROWS[FEATURES], ROWS["fraud"])
    assert len(detector.labels_) == 300


@pytest.mark.slow
def test_a_level_that_no_kept_row_has_is_known(monkeypatch):
    monkeypatch.setattr(sampling, "MAX_NORMALS", 50)
    monkeypatch.setattr(reading, "_BATCH_ROWS", 64)
    monkeypatch.setattr(reading, "_BATCH_ROWS", 64)
    rows = ROWS.assign(city=np.where(np.arange(300) % 100 == 7, "Bergen", ROWS["city"]))
    table = pa.Table.from_pandas(rows.drop(columns="fraud"), preserve_index=False)
    for seed in range(3):  # a sample of 50 rows mostly has none of the three
        detector = small(**QUICK | {"random_state": seed}).fit(iter([table]))
        (city,) = [c for c in detector.model_.encoder.schema.columns if c.name == "city"]
        assert set(city.levels) == {"Bern", "Oslo", "Rome", "Bergen"}
        known = pd.DataFrame({"amount": [50.0], "visits": [6.0], "city": ["Bergen"]})
        encoded = detector.explain(known).scored.encoded
        assert not encoded.impossible.any()


def test_a_column_that_is_not_there_is_told():
    with pytest.raises(UserError, match=r"the table: .*got 'froud'\. Did you mean 'fraud'"):
        small().fit(ROWS, y="froud")
    with pytest.raises(UserError, match=r"the stream: .*got 'froud'\. Did you mean 'fraud'"):
        small().fit(TABLE.to_reader(), y="froud")
