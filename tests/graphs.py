"""Models of every kind that `fewlier export` writes, and rows for them."""

from datetime import datetime

import numpy as np
import pandas as pd
import torch
from factories import FEATURES, payments, small, visits

from fewlier import Flow
from fewlier.export.onnx.check import feed
from fewlier.export.onnx.columns import NO_DATE, inputs_of
from fewlier.table import Table

ZONES = ("+02:00", "-05:30", "Z")


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


def calls(seed=1, n=150):
    """Return a table of calls in the mornings of three time zones, as text with gaps."""
    rng = np.random.default_rng(seed)
    begun = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 60, n), "D")
    begun += pd.to_timedelta(rng.normal(9 * 60, 40, n).round(), "min")
    zones = rng.choice(ZONES, n)
    written = [f"{clock:%Y-%m-%dT%H:%M:%S}{zone}" for clock, zone in zip(begun, zones, strict=True)]
    table = pd.DataFrame({"begun": written, "minutes": rng.lognormal(2, 1, n)})
    return table.mask(rng.random((n, 2)) < 0.05, None)


def dates_of(cells):
    """Return ISO texts with time zones as the graph takes them: microseconds, and offsets."""
    read = [None if pd.isna(cell) else datetime.fromisoformat(cell) for cell in cells]
    moments = [NO_DATE if at is None else round(at.timestamp() * 1e6) for at in read]
    offsets = [0 if at is None else round(at.utcoffset().total_seconds() / 60) for at in read]
    return np.array(moments, np.int64), np.array(offsets, np.int32)


def stars(seed=0, n=600):
    """Return a table of few integers, where many rows are as near to each other."""
    return pd.DataFrame(np.random.default_rng(seed).integers(1, 6, (n, 5)), columns=[*"abcde"])


def labels(n):
    """Label the first rows as anomalies, and no other."""
    return np.where(np.arange(n) < 8, 1, np.nan)


def _visits(density="made", **changes):
    """Fit a member in each fold; more make a graph larger, not another."""
    return small(density, **{"lambdas": (10,)} | changes).fit(visits(), labels(120))


def _payments():
    bills = payments()
    return small().fit(bills[FEATURES], bills["fraud"])


MODELS = {
    "payments": _payments,
    "visits": _visits,
    "stays": lambda: small(columns={"nights": "count"}, lambdas=(10,)).fit(stays(), labels(150)),
    "calls": lambda: small(lambdas=(10,)).fit(calls(), labels(150)),
    "stars": lambda: small(lambdas=(10,)).fit(stars(), labels(600)),
    "one class": lambda: small().fit(visits()),
    "best": lambda: _visits(selection="best"),
    "vae": lambda: _visits("vae"),
    "autoencoder": lambda: _visits("autoencoder"),
    "flow, affine": lambda: _visits(Flow(kind="maf", hidden=(16,))),
    "flow, splines": lambda: _visits(Flow(kind="nsf", hidden=(16,))),
    "flow, best": lambda: _visits(Flow(kind="nsf", hidden=(16,)), selection="best"),
}
"""By name, what fits a detector; all tables have gaps but that of stars."""

TABLES = {"payments": lambda seed: payments(seed=seed)[FEATURES]}
TABLES |= {"stays": stays, "calls": calls, "stars": stars}


def fresh(name, seed=5):
    """Return new rows for a model."""
    return TABLES.get(name, visits)(seed=seed)


def inputs_for(model, rows):
    """Return rows as a table in the form of the schema, and as the inputs of a graph."""
    matched, dates = model.encoder.schema.match(Table.of(rows)), {}
    if "begun" in rows and pd.api.types.is_datetime64_dtype(rows["begun"]):
        dates["begun"] = rows["begun"].to_numpy("datetime64[us]").astype(np.int64)
    elif "begun" in rows:
        dates["begun"], dates["begun.offset"] = dates_of(rows["begun"])
    return matched, feed(model.encoder, matched, dates)


def tensors_of(model, columns):
    """Return the inputs of a graph in its order."""
    return [torch.from_numpy(columns[one.name].copy()) for one in inputs_of(model.encoder)]
