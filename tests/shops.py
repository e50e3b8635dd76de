"""Shops to find neighbours of, and the neighbours of a table."""

import numpy as np
import pandas as pd
import torch

from fewlier.density.rows import Rows
from fewlier.score.neighbours.part import Neighbours
from fewlier.score.neighbours.view import View
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


def neighbours(encoder, rows, n_odd=0):
    """Return the neighbours of rows, the first of which are anomalies."""
    numbers = np.arange(n_odd, len(rows)), np.arange(n_odd)
    return Neighbours.fit(encoder, rows, numbers, CPU)


def view(scales, encoder, rows, n_odd=0):
    """Return one view of rows, the first of which are anomalies."""
    sides = [rows.take(n) for n in (np.arange(n_odd, len(rows)), np.arange(n_odd))]
    return View.fit(encoder, scales, *((Rows.of(side), side.ids()) for side in sides))


def distances(side, rows, ids=None):
    """Return how far encoded rows are from those of one side, column by column."""
    rows = Rows.of(rows)
    return side.measure(rows, side.space.place_known(rows), ids).distances
