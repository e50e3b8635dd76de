"""Spark: what a session scores is, bit for bit, what one process scores."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from factories import FEATURES, payments, save_typed_model, typed_rows
from pyspark.sql import Row

from fewlier import AnomalyDetector, UserError
from fewlier.engines.spark import score
from fewlier.scoring.batches import BatchScorer
from fewlier.scoring.scored import ADDED

ROWS = payments(500, seed=5)


@pytest.fixture(scope="session")
def detector(model):
    return AnomalyDetector.load(model)


@pytest.fixture(scope="session")
def payments_of(spark, tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    ROWS.to_parquet(path, index=False)
    return spark.read.parquet(str(path))


def test_every_row_gets_the_score_of_one_process(payments_of, model, detector):
    found = score(payments_of.repartition(5), model).orderBy("id").toArrow()
    assert found.column_names == [*ROWS.columns, *ADDED]
    assert found["id"].to_pylist() == ROWS["id"].tolist()
    rows = ROWS[FEATURES]
    assert found["anomaly_score"].to_pylist() == detector.anomaly_score(rows).tolist()
    assert found["p_value"].to_pylist() == detector.p_value(rows).tolist()
    assert found["is_anomaly"].to_pylist() == detector.predict(rows).astype(bool).tolist()
    here = BatchScorer(model)(pa.RecordBatch.from_pandas(ROWS, preserve_index=False))
    assert found["reason"].to_pylist() == here["reason"].to_pylist()


def test_partitions_without_rows_and_rows_without_reasons(payments_of, model):
    few = payments_of.limit(3).repartition(6)
    found = score(few, model, with_reason=False)
    assert found.columns == [*ROWS.columns, *list(ADDED)[:-1]]
    assert found.count() == 3
    assert score(payments_of.limit(0), model).toArrow().num_rows == 0


def test_integers_with_gaps_stay_integers(spark, model, detector):
    rows = [Row(amount=50.0, visits=v, city=c) for v, c in [(3, "Bern"), (None, None), (9, "Rome")]]
    frame = spark.createDataFrame(rows, "amount double, visits int, city string").repartition(2)
    found = score(frame, model)
    assert found.schema["visits"].dataType.typeName() == "integer"
    got = {row.visits: row.anomaly_score for row in found.collect()}
    table = pa.table(
        {
            "amount": [50.0] * 3,
            "visits": pa.array([3, None, 9], pa.int32()),
            "city": ["Bern", None, "Rome"],
        }
    )
    expected = detector.anomaly_score(table).tolist()
    assert got == dict(zip([3, None, 9], expected, strict=True))


def test_what_does_not_fit_is_told(payments_of, model):
    with pytest.raises(UserError, match="already has columns that scoring adds: 'reason'"):
        score(payments_of.withColumnRenamed("id", "reason"), model)
    with pytest.raises(Exception, match="without 'city'"):
        score(payments_of.drop("city"), model).count()


@pytest.fixture(params=["UTC", "Europe/Zurich", "America/New_York"])
def zone(request, spark):
    """Let the session have a time zone."""
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", request.param)
    yield request.param
    spark.conf.set("spark.sql.session.timeZone", before)


def scored_by_id(frame, model):
    found = score(frame, model).orderBy("id").toArrow()
    return found["anomaly_score"].to_pylist()


@pytest.mark.parametrize("is_zoned", [False, True])
def test_dates_decimals_and_dictionaries_get_the_scores_of_one_process(
    is_zoned, zone, spark, tmp_path
):
    """A model of moments with a zone needs a session with the zone that they are written in."""
    own = zone if is_zoned else None
    rows, path = typed_rows(seed=5, zone=own), str(tmp_path / "rows.parquet")
    model = save_typed_model(tmp_path / "m.fewlier", zone=own)
    pq.write_table(rows, path)
    expected = AnomalyDetector.load(model).anomaly_score(rows.drop_columns("id")).tolist()
    frame = spark.read.parquet(path).repartition(3)
    assert scored_by_id(frame, model) == expected
    if not is_zoned:  # Spark's other type of moments, of the clock of the session
        frame = frame.withColumn("at", frame["at"].cast("timestamp"))
        assert scored_by_id(frame, model) == expected
