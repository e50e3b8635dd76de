"""The score written again for ONNX is the score of the library, before it becomes a graph.

What onnxruntime makes of the graph is tested in tests/engines/onnx.
"""

import math

import numpy as np
import pandas as pd
import pytest
import torch
from factories import FEATURES, payments, small, visits
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from fewlier.graph.check import feed, made_up
from fewlier.graph.columns import NO_CODE, NO_DATE, UNSEEN, Encoding, inputs_of
from fewlier.graph.gamma import log_gamma
from fewlier.graph.whole import Whole
from fewlier.table import Table

ARRAYS = ("inputs", "targets", "observed", "impossible")


def stays(seed=1, n=150):
    """Return a table with dates, times, truth values, constants and gaps."""
    rng = np.random.default_rng(seed)
    begun = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 40 * 86_400, n), "s")
    return pd.DataFrame(
        {
            "begun": begun.astype("datetime64[us]"),
            "nights": rng.poisson(3, n).astype(float),
            "paid": rng.choice([10.0, 25.0], n),
            "late": rng.choice([True, False], n),
            "spend": rng.lognormal(2, 1, n),
            "tax": 0.07,
            "guests": rng.choice([1, 2, 4], n).astype(float),
        }
    ).mask(rng.random((n, 7)) < 0.05, None)


def stars(seed=0, n=600):
    """Return a table of few integers, where many rows are as near to each other."""
    return pd.DataFrame(np.random.default_rng(seed).integers(1, 6, (n, 5)), columns=[*"abcde"])


def labels(n):
    return np.where(np.arange(n) < 8, 1, np.nan)


@pytest.fixture(scope="module")
def models():
    bills = payments()
    return {
        "payments": small().fit(bills[FEATURES], bills["fraud"]).model_,
        "visits": small().fit(visits(), labels(120)).model_,
        "stays": small(columns={"nights": "count"}).fit(stays(), labels(150)).model_,
        "stars": small().fit(stars(), labels(600)).model_,
        "one class": small().fit(visits()).model_,
        "best": small(selection="best").fit(visits(), labels(120)).model_,
        "vae": small("vae").fit(visits(), labels(120)).model_,
        "autoencoder": small("autoencoder").fit(visits(), labels(120)).model_,
    }


NAMES = ["payments", "visits", "stays", "stars", "one class", "best", "vae", "autoencoder"]


def tensors(model, columns):
    return [torch.from_numpy(columns[one.name].copy()) for one in inputs_of(model.encoder)]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_rows_are_encoded_bit_for_bit(models, name):
    model = models[name]
    table, columns = made_up(model.encoder)
    expected, found = model.encoder.encode(table), Encoding(model.encoder)(*tensors(model, columns))
    for array in ARRAYS:
        np.testing.assert_array_equal(getattr(found, array).numpy(), getattr(expected, array))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_scores_p_values_and_decisions_are_those_of_the_library(models, name):
    model = models[name]
    table, columns = made_up(model.encoder)
    with torch.no_grad():
        found = Whole(model).eval()(*tensors(model, columns))
    scores = model.score(model.encoder.encode(table))
    np.testing.assert_allclose(found.anomaly_score, scores, rtol=2e-5, atol=2e-5)
    again = found.anomaly_score.numpy()
    np.testing.assert_array_equal(found.p_value, model.calibration.p_value(again))
    np.testing.assert_array_equal(found.is_anomaly, again > model.calibration.threshold)
    assert len(np.unique(scores)) > 100


@pytest.mark.slow
def test_where_many_rows_are_as_near_the_graph_takes_the_neighbours_of_the_library(models):
    model, rows = models["stars"], stars(seed=1).mask(np.eye(600, 5) == 1).astype(float)
    matched = model.encoder.schema.match(Table.of(rows))
    with torch.no_grad():
        found = Whole(model).eval()(*tensors(model, feed(model.encoder, matched, {})))
    scores = model.score(model.encoder.encode(matched))
    np.testing.assert_allclose(found.anomaly_score, scores, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_dates_are_microseconds_by_the_clock(models):
    model, rows = models["stays"], stays(seed=2, n=60)
    rows.loc[0, "begun"] = pd.Timestamp("1724-05-05 10:00")
    matched = model.encoder.schema.match(Table.of(rows))
    begun = rows["begun"].to_numpy("datetime64[us]").astype(np.int64)
    assert (begun == NO_DATE).any()
    columns = feed(model.encoder, matched, {"begun": begun})
    found = Encoding(model.encoder)(*tensors(model, columns))
    expected = model.encoder.encode(matched)
    for array in ARRAYS:
        np.testing.assert_array_equal(getattr(found, array).numpy(), getattr(expected, array))
    assert expected.impossible[0].any()


@pytest.mark.slow
def test_categories_are_codes(models):
    model = models["payments"]
    rows = pd.DataFrame({"amount": 50.0, "visits": 6.0, "city": ["Bern", None, "Rom"]})
    columns = feed(model.encoder, model.encoder.schema.match(Table.of(rows)), {})
    codes = next(one.codes for one in inputs_of(model.encoder) if one.name == "city")
    assert columns["city"].tolist() == [codes["Bern"], NO_CODE, UNSEEN]


@given(st.floats(1e-3, 1e9))
def test_log_gamma_is_that_of_scipy(x):
    found = float(log_gamma(torch.tensor([x], dtype=torch.float64)))
    assert math.isclose(found, special.gammaln(x), rel_tol=1e-11, abs_tol=1e-10)
