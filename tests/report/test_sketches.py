"""The small pictures of columns: their bars are histograms, and values lie where they belong."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from fewlier.decision.reference import Reference
from fewlier.report.sketches import BEYOND, N_BARS, Sketch
from fewlier.table import Encoder, Table, infer_schema

N = 20_000


@pytest.fixture(scope="module")
def columns():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "height": rng.uniform(-3, 7, N),
            "money": rng.lognormal(3, 1.5, N),
            "stars": rng.choice([5.0, 1.0, 3.0], N, p=[0.5, 0.3, 0.2]),
            "city": rng.choice(["Bern", "Oslo", "Rome"], N, p=[0.2, 0.5, 0.3]),
            "never": np.full(N, np.nan),
        }
    )


@pytest.fixture(scope="module")
def encoder(columns):
    table = Table.of(columns)
    schema = infer_schema(table)
    return Encoder.fit(schema, schema.match(table))


@pytest.fixture(scope="module")
def sketches(encoder, columns):
    encoded = encoder.encode(encoder.schema.match(Table.of(columns)))
    reference = Reference.from_encoded(encoder, encoded)
    return {
        name: Sketch.from_reference(encoder, reference, d) for d, name in enumerate(columns.columns)
    }


def place(encoder, sketches, name, value):
    row = pd.DataFrame({"height": [0.0], "money": [1.0], "stars": [1.0], "city": ["Bern"]})
    row = row.assign(**{"never": np.nan, name: [value]})
    encoded = encoder.encode(encoder.schema.match(Table.of(row)))
    d = encoder.schema.names.index(name)
    return sketches[name].place(float(encoded.targets[0, d]), bool(encoded.impossible[0, d]))


@pytest.mark.parametrize(("name", "axis"), [("height", lambda x, _: x), ("money", None)])
def test_bars_of_numbers_are_their_histogram(name, axis, columns, sketches):
    values = columns[name].to_numpy()
    values = axis(values, None) if axis else np.log1p(values / values.mean())
    expected, _ = np.histogram(values, bins=N_BARS)
    found = sketches[name].heights
    assert_allclose(found / found.sum(), expected / N, atol=0.012)
    assert found.max() == 1


def test_levels_have_a_bar_each_and_numbers_among_them_their_own_order(columns, sketches):
    in_order = columns["stars"].value_counts().sort_index().to_numpy()
    assert_allclose(sketches["stars"].heights, in_order / in_order.max())
    by_frequency = columns["city"].value_counts().to_numpy()
    assert_allclose(sketches["city"].heights, by_frequency / by_frequency.max())


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("height", -3, 0.0),
        ("height", 2, 0.5),
        ("height", 7, 1.0),
        ("height", 1e9, 1 + BEYOND),
        ("height", -1e9, -BEYOND),
        ("money", 1e9, 1 + BEYOND),
        ("money", -5, 0.0),  # impossible, and nearest to nothing
        ("stars", 1, 1 / 6),
        ("stars", 3, 3 / 6),
        ("stars", 5, 5 / 6),
        ("stars", 9, 1 + BEYOND),
        ("city", "Oslo", 1 / 6),
        ("city", "Bern", 5 / 6),
        ("city", "Paris", 1 + BEYOND),
        ("never", 3.0, 1 + BEYOND),
    ],
)
def test_a_value_lies_where_it_belongs(name, value, expected, encoder, sketches):
    assert place(encoder, sketches, name, value) == pytest.approx(expected, abs=0.01)


def test_a_path_draws_its_bars_from_the_bottom_line(sketches):
    heights = sketches["stars"].heights
    assert heights.argmax() == 2
    third = 20.0
    tops = [f"V{round(14 * (1 - height), 1):g}h{third:.3g}" for height in heights]
    assert sketches["stars"].path(60, 14) == f"M0 14{''.join(tops)}V14z"
