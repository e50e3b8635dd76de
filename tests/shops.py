"""Shops to find neighbours of, and the neighbours of a table."""

import numpy as np
import pandas as pd
import torch

from fewlier.density.rows import Rows
from fewlier.score.neighbours.part import Neighbours
from fewlier.score.neighbours.view import View
from fewlier.score.part import Known
from fewlier.table import Encoder, Table, infer_schema

N, N_ODD = 300, 6
COLUMNS = ["size", "visits", "city"]
CPU = torch.device("cpu")


def shops(n=N, seed=0, n_odd=N_ODD, gaps=0.1):
    """Return shops of several kinds of columns; the first are odd."""
    rng = np.random.default_rng(seed)
    odd = np.arange(n) < n_odd
    table = pd.DataFrame(
        {
            "size": rng.normal(10, 2, n) + 9 * odd,
            "visits": rng.poisson(30, n).astype(float),
            "city": rng.choice(["Bern", "Oslo", "Rome"], n, p=[0.6, 0.3, 0.1]),
        }
    )
    return table.mask(rng.random(table.shape) < gaps, None)


def encoded(frame, like=None, kinds=None):
    """Return an encoder and encoded rows: a new encoder, or that of another table."""
    table = Table.of(frame)
    schema = like.schema if like else infer_schema(table, kinds)
    matched = schema.match(table)
    encoder = like or Encoder.fit(schema, matched)
    return encoder, encoder.encode(matched)


def known(encoder, rows, normals, anomalies):
    """Return normals and anomalies, given by number, as parts learn from them."""
    both = np.concatenate([normals, anomalies])
    encoded = rows.take(both)
    return Known.of(encoder, encoded, (encoded.ids(), np.isin(both, anomalies)), 0)


def fit(encoder, rows, normals, anomalies):
    """Return the neighbours of rows, given normals and anomalies by number."""
    return Neighbours.fit(known(encoder, rows, normals, anomalies), {})


def neighbours(encoder, rows, n_odd=0):
    """Return the neighbours of rows, the first of which are anomalies."""
    return fit(encoder, rows, np.arange(n_odd, len(rows)), np.arange(n_odd))


def view(scales, encoder, rows, n_odd=0):
    """Return one view of rows, the first of which are anomalies."""
    return View.fit(scales, known(encoder, rows, np.arange(n_odd, len(rows)), np.arange(n_odd)))


def distances(view, rows, ids=None, *, from_anomalies=False):
    """Return how far encoded rows are from the normals or anomalies, column by column."""
    rows = Rows.of(rows)
    points = view.space.place_known(rows)
    if from_anomalies:
        found, _ = view.anomalies.measure(points, view.space.owner, view.near, ids)
        return torch.where(rows.has_value, found, view.near)
    return view.from_normals(rows, points, ids)[0]
