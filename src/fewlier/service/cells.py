"""JSON in: a document that says each thing once, and its rows or columns as a table."""

import json
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np

from fewlier.errors import UserError
from fewlier.service.limits import Limits, Refusal
from fewlier.table import Table
from fewlier.table.cells import Cells, read_column

Json = dict[str, Any]
_SCALARS = {int, float, str, bool, type(None)}
_NUMBERS = {int, float}

MAX_DEPTH = 32
"""Lists and objects of a JSON document that may be inside each other; a request needs five."""
_NO_SIGNS = bytes(set(range(256)) - set(b'{}[]"'))
_QUOTE = ord('"')
_OPEN, _CASE = ord("{"), 32  # a bit, without which it is a [


def read_json(body: bytes) -> Json:
    """Read a JSON object; a name that is given twice, NaN and infinity are refused."""
    _check_depth(body)
    try:
        document = json.loads(
            body.decode("utf-8-sig"), object_pairs_hook=_unique, parse_constant=_no_constant
        )
    except UserError:
        raise
    except ValueError as error:  # also of bytes that are not UTF-8
        raise UserError(f"A request must be JSON in UTF-8; {str(error)[:200]}.") from error
    if not isinstance(document, dict):
        raise UserError(f"A request must be a JSON object; got {_kind(document)}.")
    return document


def read_rows(document: Json, limits: Limits) -> Table:
    """Return the table of ``{"rows": [{...}, ...]}`` or ``{"columns": {...}}``."""
    if document.keys() == {"rows"}:
        return read_columns(_transposed(document["rows"], limits), limits)
    if document.keys() == {"columns"}:
        columns = document["columns"]
        if not isinstance(columns, dict):
            raise UserError(f"'columns' must be an object of lists; got {_kind(columns)}.")
        return read_columns(columns, limits)
    raise UserError(
        "A request must have either 'rows', a list of objects, or 'columns', an object of lists, "
        f"and nothing else; got {sorted(document)[:5]}."
    )


def read_columns(columns: Mapping[str, object], limits: Limits) -> Table:
    """Return named lists of cells as a table."""
    lists: dict[str, list[Any]] = {}
    for name, cells in columns.items():
        if not isinstance(cells, list):
            raise UserError(f"Column {name!r} must be a list of cells; got {_kind(cells)}.")
        lists[name] = cells
    if not lists:
        raise UserError("A request must have a column; got none.")
    first, n_rows = next((name, len(cells)) for name, cells in lists.items())
    limits.check_shape(n_rows, len(lists))
    for name, cells in lists.items():
        if len(cells) != n_rows:
            raise UserError(
                f"All columns must have the same length; got {n_rows} cells in {first!r} and "
                f"{len(cells)} in {name!r}."
            )
    if not n_rows:
        raise UserError("A request must have a row; got none.")
    return Table({name: _read_cells(name, cells, limits) for name, cells in lists.items()})


def _transposed(rows: object, limits: Limits) -> dict[str, list[Any]]:
    """Return rows as columns; all rows must have the same."""
    if not isinstance(rows, list):
        raise UserError(f"'rows' must be a list of objects; got {_kind(rows)}.")
    limits.check_shape(len(rows), 0)
    for number, row in enumerate(rows):
        if not isinstance(row, dict):
            raise UserError(f"Row {number} must be an object; got {_kind(row)}.")
        if row.keys() != rows[0].keys():
            absent, more = rows[0].keys() - row.keys(), row.keys() - rows[0].keys()
            what = f"lacks column {min(absent)!r}" if absent else f"adds column {min(more)!r}"
            raise UserError(
                f"Row {number} {what}: all rows must have the columns of row 0. Write null where a "
                "cell is missing."
            )
    return {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}


def _read_cells(name: str, cells: list[Any], limits: Limits) -> Cells:
    """Return a column of JSON values as numbers or text."""
    kinds = set(map(type, cells))
    if not kinds <= _SCALARS:
        row, cell = next((r, c) for r, c in enumerate(cells) if type(c) not in _SCALARS)
        raise UserError(
            f"A cell must be a number, text, true, false or null; got {_kind(cell)} in row {row}, "
            f"column {name!r}."
        )
    if str in kinds:
        lengths = [len(cell) if isinstance(cell, str) else 0 for cell in cells]
        longest = max(lengths)
        limits.check_cell(name, lengths.index(longest), longest)
    if kinds <= _NUMBERS:
        return read_column(name, _numbers(name, cells))
    if kinds <= _NUMBERS | {type(None)}:
        return read_column(name, _numbers(name, [np.nan if c is None else c for c in cells]))
    return read_column(name, np.fromiter(cells, dtype=object, count=len(cells)))


def _numbers(name: str, cells: list[Any]) -> Cells:
    try:
        return np.array(cells, dtype=np.float64)
    except OverflowError as error:
        raise UserError(f"Column {name!r} has an integer beyond float64.") from error


def _check_depth(body: bytes) -> None:
    """Refuse a document that is nested too deeply, before anything is built of it."""
    if body.count(b"[") + body.count(b"{") <= MAX_DEPTH:
        return
    if b"\\" in body:  # without escapes, every quote is the end of a text
        body = body.replace(rb"\\", b"").replace(rb"\"", b"")
    signs = np.frombuffer(body.translate(None, _NO_SIGNS), np.uint8)
    is_outside = ~np.logical_xor.accumulate(signs == _QUOTE)
    brackets = np.bitwise_or(signs[is_outside & (signs != _QUOTE)], np.uint8(_CASE))
    depths = np.cumsum(np.where(brackets == _OPEN, np.int8(1), np.int8(-1)), dtype=np.int32)
    if len(depths) and depths.max() > MAX_DEPTH:
        raise Refusal(
            413, f"A request may have at most {MAX_DEPTH} lists and objects inside each other."
        )


def _unique(pairs: list[tuple[str, Any]]) -> Json:
    found: Json = {}
    for name, value in pairs:
        if name in found:
            raise UserError(
                f"JSON must give each name once; got {name[:100]!r} twice in one object."
            )
        found[name] = value
    return found


def _no_constant(text: str) -> NoReturn:
    raise UserError(f"JSON has no {text}; write null where a number is missing.")


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "a truth value"}
    return "null" if value is None else names.get(type(value), "a number")
