"""Arrow in and out: a stream of record batches, as pyarrow, polars and DuckDB write it."""

import struct
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import ipc

from fewlier.errors import UserError
from fewlier.service.limits import Limits, Refusal
from fewlier.table import Table
from fewlier.table.arrays import Floats
from fewlier.table.schema import Schema

MEDIA_TYPE = "application/vnd.apache.arrow.stream"

_is = pa.types
_PLAIN = (
    *(_is.is_boolean, _is.is_integer, _is.is_floating, _is.is_decimal, _is.is_string),
    *(_is.is_large_string, _is.is_string_view, _is.is_date, _is.is_time, _is.is_timestamp),
    *(_is.is_duration, _is.is_null),
)
# Places of fields in the tables of Arrow's format (Message.fbs): a message has a header, whose
# type comes before it; a batch of a dictionary has a record batch; a record batch a compression.
_HEADER, _BATCH_OF_DICTIONARY, _COMPRESSION = 2, 1, 3


def read_arrow(body: bytes, limits: Limits, schema: Schema | None = None) -> Table:
    """Return the rows of a stream; what could grow without bound is refused before it is read.

    Where there is a schema, so are other columns than it has.
    """
    try:
        return Table.of(_read(body, limits, schema))
    except UserError:
        raise
    except (pa.ArrowException, ValueError, OSError, struct.error) as error:  # names may be no UTF-8
        raise UserError(
            f"A request must be an Arrow stream; got a damaged one: {str(error)[:200]}."
        ) from error


def _read(body: bytes, limits: Limits, schema: Schema | None) -> pa.Table:
    _refuse_compressed(body)
    batches, n_rows, n_bytes = [], 0, 0.0
    with ipc.open_stream(pa.py_buffer(body)) as stream:
        _check_types(stream.schema)
        if schema is not None:
            schema.check_names(stream.schema.names)
        for batch in stream:
            n_rows += batch.num_rows
            limits.check_shape(n_rows, batch.num_columns)
            batch.validate()
            n_bytes += sum(map(_text_bytes, batch.columns))
            if n_bytes > limits.body:
                raise Refusal(
                    413,
                    f"The texts of a request may have at most {limits.body} bytes, where one that "
                    "stands in several cells counts for each.",
                )
            batch.validate(full=True)
            batches.append(batch)
        rows = pa.Table.from_batches(batches, stream.schema)
    if not n_rows:
        raise UserError("A request must have a row; got none.")
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        _check_cells(name, column, limits)
    return rows


def write_arrow(columns: Mapping[str, pa.Array], facts: Mapping[str, str]) -> bytes:
    """Return columns as a stream of one batch, with facts as the metadata of its schema."""
    rows = pa.table(dict(columns)).replace_schema_metadata(dict(facts))
    sink = pa.BufferOutputStream()
    with ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    written: bytes = sink.getvalue().to_pybytes()
    return written


def _check_types(schema: pa.Schema) -> None:
    for field in schema:
        is_coded = _is.is_dictionary(field.type)
        dtype = field.type.value_type if is_coded else field.type
        if not any(is_type(dtype) for is_type in _PLAIN):
            raise UserError(
                f"Column {field.name!r} must hold numbers, text, booleans, dates or times; got "
                f"{str(field.type)[:100]}."
            )


def _is_text(dtype: pa.DataType) -> bool:
    return bool(_is.is_string(dtype) or _is.is_large_string(dtype) or _is.is_string_view(dtype))


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
    if not len(texts) or not _is_text(texts.type):
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


def _check_cells(name: str, column: pa.ChunkedArray, limits: Limits) -> None:
    """Refuse texts that are too long, the first of them by its row."""
    dtype = column.type.value_type if _is.is_dictionary(column.type) else column.type
    if not _is_text(dtype):
        return
    n_before = 0
    for chunk in column.chunks:
        texts = chunk.dictionary if _is.is_dictionary(chunk.type) else chunk
        lengths = pc.utf8_length(texts.cast(pa.large_string()))
        longest = pc.max(lengths).as_py() or 0
        if longest > limits.cell:
            place = pc.index(lengths, longest).as_py()
            rows = chunk.indices if _is.is_dictionary(chunk.type) else None
            row = place if rows is None else max(pc.index(rows, place).as_py(), 0)
            limits.check_cell(name, n_before + row, longest)
        n_before += len(chunk)


def _refuse_compressed(body: bytes) -> None:
    """Refuse batches that are compressed: some kilobytes of them may be gigabytes of rows."""
    for message in ipc.MessageReader.open_stream(pa.py_buffer(body)):
        if message.type not in ("record batch", "dictionary"):
            continue
        metadata = message.metadata.to_pybytes()
        table = _follow(metadata, 0, _field(metadata, _follow(metadata, 0, 0), _HEADER))
        if table is not None and message.type == "dictionary":
            table = _follow(metadata, 0, _field(metadata, table, _BATCH_OF_DICTIONARY))
        if table is not None and _field(metadata, table, _COMPRESSION) is not None:
            raise Refusal(415, "An Arrow stream must not be compressed. Write it without.")


def _follow(metadata: bytes, start: int, place: int | None) -> int | None:
    """Return the place of the table that a field refers to."""
    if place is None:
        return None
    return start + place + int(struct.unpack_from("<I", metadata, place)[0])


def _field(metadata: bytes, table: int | None, number: int) -> int | None:
    """Return the place of a field of a table in FlatBuffers' format; None where it is absent."""
    if table is None:
        return None
    layout = table - struct.unpack_from("<i", metadata, table)[0]
    size, *_ = struct.unpack_from("<H", metadata, layout)
    entry = 4 + 2 * number
    offset = struct.unpack_from("<H", metadata, layout + entry)[0] if entry < size else 0
    return table + offset if offset else None
