"""DataFrame in, DataFrame of the same library out, with the index that it had."""

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from factories import FEATURES, payments, small

from fewlier.scoring.batches import BatchScorer
from fewlier.scoring.scored import ADDED

ROWS = payments(40, seed=1)[FEATURES]
LIBRARIES = {
    "pandas": (lambda rows: rows, pd.DataFrame),
    "polars": (pl.from_pandas, pl.DataFrame),
    "polars, lazy": (lambda rows: pl.from_pandas(rows).lazy(), pl.DataFrame),
    "pyarrow": (lambda rows: pa.Table.from_pandas(rows, preserve_index=False), pa.Table),
    "duckdb": (lambda rows: duckdb.from_arrow(pa.Table.from_pandas(rows)), pa.Table),
    "arrays": (lambda rows: rows.to_numpy(dtype=object), pa.Table),
}


@pytest.fixture(scope="module")
def detector():
    table = payments(120)
    return small(max_epochs=1, lambdas=(0,)).fit(table[FEATURES], table["fraud"])


def as_lines(frame):
    """Return a frame of any library as a list of dicts."""
    arrow = pa.Table.from_pandas(frame, preserve_index=False) if hasattr(frame, "loc") else frame
    return (arrow if isinstance(arrow, pa.Table) else arrow.to_arrow()).to_pylist()


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_each_library_gets_its_own_frames(detector, library):
    convert, expected = LIBRARIES[library]
    scored = detector.score_frame(convert(ROWS), with_reason=True)
    explained = detector.explain(convert(ROWS)).to_frame()
    assert type(scored) is type(explained) is expected
    of_arrow = detector.explain(pa.Table.from_pandas(ROWS)).to_frame()
    assert as_lines(scored) == as_lines(detector.score_frame(ROWS, with_reason=True))
    assert [line["contribution"] for line in as_lines(explained)] == (
        of_arrow["contribution"].to_pylist()
    )


def test_scores_are_those_of_the_methods_and_reasons_those_of_the_command(detector, tmp_path):
    scored = detector.score_frame(ROWS)
    assert [*scored] == [name for name in ADDED if name != "reason"]
    assert scored["anomaly_score"].tolist() == detector.anomaly_score(ROWS).tolist()
    assert scored["is_anomaly"].tolist() == detector.predict(ROWS).astype(bool).tolist()
    assert scored["p_value"].tolist() == detector.p_value(ROWS).tolist()
    detector.save(tmp_path / "m.fewlier")
    (batch,) = pa.Table.from_pandas(ROWS, preserve_index=False).to_batches()
    by_batch = BatchScorer(tmp_path / "m.fewlier")(batch).select(list(ADDED)).to_pylist()
    with_reason = detector.score_frame(ROWS, with_reason=True)
    assert as_lines(with_reason) == by_batch
    assert with_reason["reason"].notna().tolist() == scored["is_anomaly"].tolist()
    assert scored["is_anomaly"].any()


@pytest.mark.parametrize(
    "index",
    [
        [f"order {n}" for n in range(40)],
        pd.RangeIndex(7, 87, 2, name="id"),
        pd.MultiIndex.from_product([["a", "b"], range(20)], names=["shop", "day"]),
        pd.Index(np.arange(40) // 4),
    ],
    ids=["texts", "named", "levels", "repeated"],
)
def test_the_index_of_pandas_is_kept(detector, index):
    rows = ROWS.set_axis(index)
    assert detector.score_frame(rows).index.equals(rows.index)
    explained = detector.explain(rows).to_frame()
    assert explained.index.equals(rows.index.take(explained["row"]))
    assert explained.index.names == rows.index.names
    assert explained["row"].nunique() == 40
    some = detector.explain(rows).take(np.array([3, 1])).to_frame()
    assert some.index.unique().tolist() == rows.index.take([3, 1]).unique().tolist()


def test_no_row_is_a_frame_of_no_rows(detector):
    scored = detector.score_frame(ROWS[:0], with_reason=True)
    assert [*scored] == [*ADDED]
    assert len(scored) == 0
