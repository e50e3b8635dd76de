"""Data as the user knows it: tables, typed columns, and their encoding as arrays; no torch.

Read in this order: arrays, cells, text_forms, frame, dates, numbers, date_parts, columns,
schema, declarations, column_values, inference, matching, scaling, encode, labels, label_column,
findings.
"""

from fewlier.table.columns import CODINGS, Column, Kind
from fewlier.table.encode import Encoded, Encoder
from fewlier.table.frame import Table
from fewlier.table.inference import infer_schema
from fewlier.table.scaling import MAX_LEVELS, ColumnStats
from fewlier.table.schema import Schema

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
