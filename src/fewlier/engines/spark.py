"""Spark: the partitions of a DataFrame scored in Arrow batches."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import torch

from fewlier.errors import missing_package
from fewlier.files.atomic import PathLike
from fewlier.scoring.batches import BatchScorer
from fewlier.scoring.scored import added, check_free

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def score(df: "DataFrame", model: PathLike, *, with_reason: bool = True) -> "DataFrame":
    """Return a DataFrame of Spark with the columns that scoring adds.

    Each task loads the model once and computes in one thread; rows stay in their partitions, in
    their order.

    Parameters
    ----------
    df : pyspark.sql.DataFrame
        Rows with the columns of the model; others pass through.
    model : path
        A model file that every executor can read.
    with_reason : bool
        Whether to say of each anomaly why it is one.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import pandas as pd
    >>> from fewlier import AnomalyDetector
    >>> from fewlier.engines.spark import score
    >>> from pyspark.sql import SparkSession
    >>> spark = SparkSession.builder.getOrCreate()
    >>> amount = np.append(np.random.default_rng(0).normal(50, 10, 199), 400)
    >>> payments = pd.DataFrame({"amount": amount})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     AnomalyDetector(random_state=0).fit(payments).save(f"{folder}/fraud.fewlier")
    ...     scored = score(spark.createDataFrame(payments), f"{folder}/fraud.fewlier")
    ...     found = scored.toPandas()  # Spark computes when it is asked for rows
    >>> found["is_anomaly"].tail(2).tolist()
    [False, True]
    """
    try:
        from pyspark.sql import types
        from pyspark.sql.pandas.types import from_arrow_schema
    except ImportError as error:
        raise missing_package(
            "fewlier.engines.spark needs Spark and Java 17", error, "spark"
        ) from error
    check_free(df.columns)
    new = from_arrow_schema(pa.schema(added(with_reason)))
    schema = types.StructType([*df.schema.fields, *new.fields])
    scorer = BatchScorer(Path(model).absolute(), with_reason=with_reason)

    def score_partition(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        torch.set_num_threads(1)
        return (_score(scorer, batch) for batch in batches)

    return df.mapInArrow(score_partition, schema)


def _score(scorer: BatchScorer, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Score rows as `BatchScorer` does, whatever the time zone of the session.

    A moment comes with that zone. If the model was trained on clocks without a zone, what the
    clock of the session shows counts; of training dates with a zone, their own.
    """
    columns, plain = rows.columns, rows
    for column in scorer.model.encoder.schema.columns:
        if column.date and not column.date.form.is_zoned and column.source in rows.schema.names:
            moments = plain[column.source]
            if pa.types.is_timestamp(moments.type) and moments.type.tz:
                place = plain.schema.get_field_index(column.source)
                plain = plain.set_column(place, column.source, pc.local_timestamp(moments))
    scored = scorer(plain)
    new = scored.columns[len(columns) :]
    schema = scorer.schema(rows.schema)
    return pa.RecordBatch.from_arrays([*columns, *new], schema=schema)
