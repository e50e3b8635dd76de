"""Data as the user knows it: tables, typed columns, and their encoding as arrays; no torch.

Read in this order: cells, forms, frame, dates, numbers, aspects, columns, declarations,
recognition, inference, encode, labels, label_column, text, reading, choice, writing, check.
"""

from fewlier.table.columns import CODINGS, Column, Kind, Schema
from fewlier.table.encode import MAX_LEVELS, ColumnStats, Encoded, Encoder
from fewlier.table.frame import Table
from fewlier.table.inference import infer_schema

__all__ = [
    "CODINGS",
    "MAX_LEVELS",
    "Column",
    "ColumnStats",
    "Encoded",
    "Encoder",
    "Kind",
    "Schema",
    "Table",
    "infer_schema",
]
