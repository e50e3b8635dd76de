"""The same data give the same table, whatever file or library they come from."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from factories import small
from hypothesis import given, settings
from hypothesis import strategies as st

from fewlier import UserError
from fewlier.files.folder import open_table
from fewlier.table import Table, infer_schema
from fewlier.table.cells import MISSING

GAPS = st.sampled_from([*MISSING, " ", " NA ", "\tnull"])
WORDS = st.sampled_from(["a", "b ", "true", "False", "3.0", "3", "07"])
NUMBERS = st.sampled_from(["0.5", "12", " -7.25", "1e3", "1.200", "9007199254740993"])
MONEY = st.sampled_from(["$1,200", "$ 3.50", "-$7", "12,000", "?"])
cells = st.sampled_from([WORDS, NUMBERS, MONEY]).flatmap(lambda kind: kind | GAPS)


def as_csv(frame, tmp):
    path = tmp / "t.csv"
    frame.to_csv(path, index=False, quoting=1)
    with open_table(path) as file:
        return file.whole().rows


def as_parquet(frame, tmp):
    path = tmp / "t.parquet"
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), path)
    with open_table(path) as file:
        return file.whole().rows


FORMATS = {
    "CSV": as_csv,
    "Parquet": as_parquet,
    "pandas": lambda frame, _: frame,
    "pandas with objects": lambda frame, _: frame.astype(object),
    "polars": lambda frame, _: pl.from_pandas(frame),
    "pyarrow": lambda frame, _: pa.Table.from_pandas(frame, preserve_index=False),
}


def read(data):
    """Return the columns of some data and its cells, or why there are none."""
    try:
        table = Table.of(data)
        schema = infer_schema(table)
        matched = schema.match(table)
    except UserError as error:
        return str(error)
    return schema, {name: found.tolist() for name, found in matched.cells.items()}, matched.unread


@pytest.mark.slow
@given(data=st.data())
@settings(max_examples=60)
def test_texts_are_read_alike(data, tmp_path_factory):
    tmp = tmp_path_factory.mktemp("same")
    n_rows = data.draw(st.integers(1, 30))
    columns = {
        n: data.draw(st.lists(cells, min_size=n_rows, max_size=n_rows)) for n in ("x0", "x1")
    }
    frame = pd.DataFrame(columns)
    expected = read(frame.to_numpy(dtype=object))
    for name, convert in FORMATS.items():
        assert repr(read(convert(frame, tmp))) == repr(expected), name


def mixed(n, seed):
    """Return numbers, integers beyond 2^53, texts and gaps in all of their spellings."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "real": rng.normal(size=n),
            "large": rng.integers(2**53, 2**55, n),
            "text": rng.choice(["a", "b", "NA", "", " ", "None"], n),
            "price": [f"${price:,.2f}" for price in rng.lognormal(6, 1, n)],
        }
    )
    frame.loc[::7, "price"] = "n/a"
    return frame


@pytest.mark.parametrize("convert", FORMATS.values(), ids=FORMATS)
def test_scores_are_the_same_from_every_format(convert, tmp_path):
    detector = small(max_epochs=1).fit(convert(mixed(80, 0), tmp_path))
    expected = small(max_epochs=1).fit(mixed(80, 0)).anomaly_score(mixed(20, 1))
    np.testing.assert_array_equal(detector.anomaly_score(convert(mixed(20, 1), tmp_path)), expected)
