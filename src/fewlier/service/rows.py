"""Rows as JSON: a document that says each thing once, and its rows or columns as a table."""

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from fewlier.errors import UserError
from fewlier.process.escape import suggest
from fewlier.scoring.scored import added
from fewlier.service.limits import Limits, Refusal
from fewlier.table import Table
from fewlier.table.cells import Cells, read_column
from fewlier.table.schema import Schema

Json = dict[str, Any]
REASONS = "reasons"
OUTPUTS = (*added(with_reason=False), REASONS)
"""What an answer says of a row."""

_NUMBERS, _OTHERS = {int, float, type(None)}, {str, bool}
_NO_SIGNS = bytes(set(range(256)) - set(b',"'))
_QUOTE = ord('"')


Rows = tuple[Table, dict[str, Any]]
"""The rows of a request, and the columns that come back: lists, or vectors of Arrow."""


def split_names(
    names: Collection[str], schema: Schema, asked: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Return which columns the model reads, and which come back: those asked for, and an `id`."""
    for name in asked:
        if name not in names:
            found = f"got {name!r}. {suggest(name, names)}"
            raise UserError(f"'id' must name columns of the request; {found}")
        if name in OUTPUTS:
            raise UserError(f"A column that comes back must not be called {name!r}. Rename it.")
    passed = [*dict.fromkeys([*asked, *({"id"} & set(names))])]
    own = [name for name in names if name not in passed or name in schema.sources]
    schema.check_names(own)
    return own, passed


def read_json(body: bytearray, limits: Limits, schema: Schema, asked: Sequence[str]) -> Rows:
    """Return the rows of ``{"rows": [{...}, ...]}`` or ``{"columns": {...}}``.

    Parameters
    ----------
    body : bytearray
        The document.
    limits : Limits
        What it may ask for.
    schema : Schema
        The columns of training.
    asked : sequence of str
        Columns that are to come back.
    """
    document = parse(body, limits.rows * (len(schema.given) + len(asked) + 1))
    if document == {"rows": []}:  # of which nobody knows what columns they would have
        document = {"columns": {name: [] for name in (*schema.sources, *asked)}}
    columns = _columns(document, limits)
    own, passed = split_names(columns, schema, asked)
    cells = {name: _read_cells(name, columns[name]) for name in {*own, *passed}}
    return Table({name: cells[name] for name in own}), {name: columns[name] for name in passed}


def write_json(facts: Mapping[str, Any], columns: Mapping[str, Sequence[Any]]) -> bytes:
    """Return facts, and one object for each row; JSON has no NaN."""
    rows = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    whole = {**facts, "rows": rows}
    return json.dumps(whole, allow_nan=False, separators=(",", ":")).encode("ascii")


def parse(body: bytearray, most: int) -> Json:
    """Read a JSON object of about so many values at most.

    A name that is given twice, NaN and infinity are refused.
    """
    if body.count(b",") > 2 * most and _n_values(body) > 2 * most:
        raise Refusal(413, f"A request may have at most {most} cells; got many more.")
    try:
        document = json.loads(
            body.decode("utf-8-sig"), object_pairs_hook=_unique, parse_constant=_no_constant
        )
    except UserError:
        raise
    except (ValueError, RecursionError) as error:  # also of bytes that are not UTF-8
        raise UserError(f"A request must be JSON in UTF-8; {str(error)[:200]}.") from error
    if not isinstance(document, dict):
        raise UserError(f"A request must be a JSON object; got {_kind(document)}.")
    return document


def _n_values(body: bytearray) -> int:
    """Count the commas outside of texts; parsing takes much memory for each."""
    # Without escapes, every quote begins or ends a text.
    plain = body.replace(rb"\\", b"").replace(rb"\"", b"").translate(None, _NO_SIGNS)
    is_quote = np.frombuffer(plain, np.uint8) == _QUOTE
    return int((~np.logical_xor.accumulate(is_quote) & ~is_quote).sum())


def _columns(found: Json, limits: Limits) -> dict[str, list[Any]]:
    """Return the columns of a document, all of one length; none where it has no rows."""
    if found.keys() not in ({"rows"}, {"columns"}):
        either = "either 'rows', a list of objects, or 'columns', an object of lists"
        raise UserError(f"A request must have {either}, and no more; got {sorted(found)[:5]}.")
    columns = found["columns"] if "columns" in found else _transposed(found["rows"], limits)
    if not isinstance(columns, dict):
        raise UserError(f"'columns' must be an object of lists; got {_kind(columns)}.")
    n_rows = -1
    for name, cells in columns.items():
        if not isinstance(cells, list):
            raise UserError(f"Column {name!r} must be a list of cells; got {_kind(cells)}.")
        if len(cells) != n_rows >= 0:
            got = f"got {n_rows} cells in the first and {len(cells)} in {name!r}"
            raise UserError(f"All columns must have the same length; {got}.")
        n_rows = len(cells)
        limits.check_rows(n_rows)
    return columns


def _transposed(rows: object, limits: Limits) -> dict[str, list[Any]]:
    """Return rows as columns; all rows must have the same."""
    if not isinstance(rows, list):
        raise UserError(f"'rows' must be a list of objects; got {_kind(rows)}.")
    limits.check_rows(len(rows))
    for number, row in enumerate(rows):
        if not isinstance(row, dict):
            raise UserError(f"Row {number} must be an object; got {_kind(row)}.")
        if row.keys() != rows[0].keys():
            name = min(rows[0].keys() ^ row.keys())
            what = f"Row {number} {'adds' if name in row else 'lacks'} column {name!r}"
            raise UserError(f"{what}: all must have those of row 0. A missing cell is null.")
    return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}


def _read_cells(name: str, cells: list[Any]) -> Cells:
    """Return a column of JSON values as numbers or text."""
    kinds = set(map(type, cells))
    if not kinds <= _NUMBERS | _OTHERS:
        row = next(row for row, cell in enumerate(cells) if isinstance(cell, dict | list))
        found = f"got {_kind(cells[row])} in row {row}, column {name!r}"
        raise UserError(f"A cell must be a number, text, true, false or null; {found}.")
    try:
        return read_column(name, np.array(cells, np.float64 if kinds <= _NUMBERS else object))
    except OverflowError as error:
        raise UserError(f"Column {name!r} has an integer beyond float64.") from error


def _unique(pairs: list[tuple[str, Any]]) -> Json:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise UserError(f"JSON must give each name once; got {twice[:100]!r} twice in one object.")
    return found


def _no_constant(text: str) -> NoReturn:
    raise UserError(f"JSON has no {text}; write null where a number is missing.")


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "a truth value"}
    return "null" if value is None else names.get(type(value), "a number")
