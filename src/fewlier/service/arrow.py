"""Rows as an Arrow stream, as pyarrow, polars and DuckDB write it."""

import io
import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import ipc

from fewlier.errors import UserError
from fewlier.service.limits import Limits, Refusal
from fewlier.service.rows import REASONS, Rows, split_names
from fewlier.table import Table
from fewlier.table.arrays import Floats
from fewlier.table.schema import Schema

MEDIA_TYPE = "application/vnd.apache.arrow.stream"

_is = pa.types
_TEXTS = (_is.is_string, _is.is_large_string, _is.is_string_view)
_TIMES = (_is.is_date, _is.is_time, _is.is_timestamp, _is.is_duration)
_NUMBERS = (_is.is_boolean, _is.is_integer, _is.is_floating, _is.is_decimal, _is.is_null)
# Names may be no UTF-8, or stand twice.
_DAMAGE = (pa.ArrowException, ValueError, KeyError, OSError, struct.error)
# Fields in the tables of Arrow's format (Message.fbs), from a message to its compression: it has a
# header, whose type comes before it; a batch of a dictionary has a record batch.
_COMPRESSION = {"record batch": (2, 3), "dictionary": (2, 1, 3)}


def read_arrow(body: bytearray, limits: Limits, schema: Schema, asked: Sequence[str]) -> Rows:
    """Return the rows of a stream; what could grow without bound is refused before it is read.

    Parameters
    ----------
    body : bytearray
        The stream.
    limits : Limits
        What it may ask for.
    schema : Schema
        The columns of training.
    asked : sequence of str
        Columns that are to come back.
    """
    try:
        _refuse_compressed(body)
        with ipc.open_stream(pa.py_buffer(body)) as stream:
            _check_types(stream.schema)
            own, passed = split_names(stream.schema.names, schema, asked)
            rows = pa.Table.from_batches(_batches(stream, limits), stream.schema)
        return Table.of(rows.select(own)), {name: rows.column(name) for name in passed}
    except UserError:
        raise
    except _DAMAGE as error:
        damage = f"got a damaged one: {str(error)[:200]}"
        raise UserError(f"A request must be an Arrow stream; {damage}.") from error


def _batches(stream: ipc.RecordBatchStreamReader, limits: Limits) -> Iterator[pa.RecordBatch]:
    n_rows, n_bytes = 0, 0.0
    for batch in stream:
        n_rows += batch.num_rows
        limits.check_rows(n_rows)
        batch.validate()
        n_bytes += sum(map(_text_bytes, batch.columns))
        if n_bytes > limits.body:
            most = f"at most {limits.body} bytes; one that is in several cells counts for each"
            raise Refusal(413, f"The texts of a request may have {most}.")
        batch.validate(full=True)
        yield batch


def write_arrow(facts: Mapping[str, Any], columns: Mapping[str, Any]) -> bytes:
    """Return columns as a stream of one batch, with facts as the metadata of its schema.

    Reasons are JSON: their values are numbers or text.
    """
    arrays = dict(columns)
    if REASONS in arrays:
        arrays[REASONS] = [json.dumps(why) for why in arrays[REASONS]]
    metadata = {
        name: one if isinstance(one, str) else json.dumps(one) for name, one in facts.items()
    }
    rows = pa.table(arrays).replace_schema_metadata(metadata)
    sink = io.BytesIO()
    with ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    return sink.getvalue()


def _check_types(schema: pa.Schema) -> None:
    for name, dtype in zip(schema.names, schema.types, strict=True):
        plain = dtype.value_type if _is.is_dictionary(dtype) else dtype
        if not any(is_type(plain) for is_type in _TEXTS + _TIMES + _NUMBERS):
            holds = "numbers, text, booleans, dates or times"
            raise UserError(f"Column {name!r} must hold {holds}; got {str(dtype)[:100]}.")


def _text_bytes(column: pa.Array) -> float:
    """Return the bytes of a column's texts when each cell has its own; none is looked at yet."""
    if not _is.is_dictionary(column.type):
        return float(_lengths(column).sum())
    lengths, rows = _lengths(column.dictionary), column.indices.drop_null()
    n_bytes = lengths.nbytes + float(lengths.sum())
    if len(lengths) and len(rows):
        places = rows.to_numpy(zero_copy_only=False).astype(np.int64)
        n_bytes += float(lengths.take(places, mode="clip").sum())
    return n_bytes


def _lengths(texts: pa.Array) -> Floats:
    """Return the bytes that each text says it has, of whatever bytes; 0 of what is no text."""
    if not (len(texts) and any(is_text(texts.type) for is_text in _TEXTS)):
        return np.zeros(len(texts))
    start, end = texts.offset, texts.offset + len(texts)
    places = texts.buffers()[1]
    if _is.is_string_view(texts.type):  # 16 bytes each, of which the first four are the length
        lengths = np.frombuffer(places, np.int32)[::4][start:end].astype(np.float64)
    else:
        dtype = np.int64 if _is.is_large_string(texts.type) else np.int32
        lengths = np.diff(np.frombuffer(places, dtype)[start : end + 1].astype(np.float64))
    is_there = texts.is_valid().to_numpy(zero_copy_only=False)
    return np.where(is_there, np.maximum(lengths, 0.0), 0.0)


def _refuse_compressed(body: bytearray) -> None:
    """Refuse batches that are compressed: some kilobytes of them may be gigabytes of rows."""
    for message in ipc.MessageReader.open_stream(pa.py_buffer(body)):
        metadata = message.metadata.to_pybytes()
        path = _COMPRESSION.get(message.type, ())
        place: int | None = struct.unpack_from("<I", metadata)[0]
        for number in path:
            place = place and _table(metadata, place, number)
        if path and place:
            raise Refusal(415, "An Arrow stream must not be compressed. Write it without.")


def _table(metadata: bytes, table: int, number: int) -> int | None:
    """Return the place of the table in a field of another, in FlatBuffers' format; None if none."""
    layout = table - struct.unpack_from("<i", metadata, table)[0]
    entry, size = 4 + 2 * number, struct.unpack_from("<H", metadata, layout)[0]
    offset = struct.unpack_from("<H", metadata, layout + entry)[0] if entry < size else 0
    place: int = table + offset
    return place + int(struct.unpack_from("<I", metadata, place)[0]) if offset else None
