"""Rows that come in batches: Arrow streams, datasets and iterables, of any length."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from typing import Any

import pyarrow as pa

from fewlier.errors import UserError
from fewlier.files.reading import Batch, batch_rows, naming
from fewlier.process.escape import list_names
from fewlier.table.columns import Kind
from fewlier.table.schema import Schema

STREAM = "the stream"
"""What errors call rows that come from no file."""


def is_stream(data: object) -> bool:
    """Whether rows come in batches, and so need not be in memory all at once."""
    is_reader = isinstance(data, pa.RecordBatchReader | Iterator)
    return is_reader or _is_dataset(data) or hasattr(data, "to_arrow_reader")


def read_stream(data: object) -> Iterator[Batch]:
    """Yield the rows of a stream, or of a DataFrame, in batches.

    A `pyarrow.RecordBatchReader`, a dataset or scanner of `pyarrow.dataset`, a DuckDB relation,
    anything with ``__arrow_c_stream__``, or an iterable of such tables or of record batches.
    """
    start = 0
    for rows in _tables(data):
        yield rows if isinstance(rows, Batch) else Batch(STREAM, rows, start, None)
        start += 0 if isinstance(rows, Batch) else rows.num_rows


def _tables(data: object) -> Iterator[pa.Table | Batch]:
    for part in _parts(data):
        if isinstance(part, Batch):
            yield part
        elif hasattr(part, "__arrow_c_stream__") or isinstance(part, pa.RecordBatch):
            yield _without_views(pa.table(part))
        else:
            raise UserError(
                "A stream must consist of record batches or tables of Arrow; got "
                f"{type(part).__name__}."
            )


def _without_views(rows: pa.Table) -> pa.Table:
    """Return rows whose text Arrow can compute with; some of its functions know no views."""
    plain = {pa.string_view(): pa.string()}
    return rows.cast(
        pa.schema([field.with_type(plain.get(field.type, field.type)) for field in rows.schema])
    )


def _parts(data: Any) -> Iterable[object]:  # noqa: ANN401 - whatever a caller has
    """Return what the rows come in."""
    if _is_dataset(data):
        batches: Iterable[object] = data.to_batches()
        return batches
    if hasattr(data, "to_arrow_reader"):  # a DuckDB relation, which would be computed as a whole
        data = data.to_arrow_reader()
    elif hasattr(data, "__arrow_c_stream__") and not isinstance(data, pa.RecordBatchReader):
        data = pa.RecordBatchReader.from_stream(data)
    if isinstance(data, Iterable):
        return data
    raise UserError(
        "Rows with y='column' must be a DataFrame or come in batches: an Arrow stream, a dataset "
        "of pyarrow, a DuckDB relation, or an iterable of record batches; got "
        f"{type(data).__name__}."
    )


def _is_dataset(data: object) -> bool:
    return any(
        f"{kind.__module__}.{kind.__name__}"
        in ("pyarrow._dataset.Dataset", "pyarrow._dataset.Scanner")
        for kind in type(data).__mro__
    )


def rebatched(batches: Iterable[Batch]) -> Iterator[Batch]:
    """Yield the rows of each file `batch_rows` at a time, however they come."""
    for _, of_file in groupby(batches, key=lambda batch: batch.file):
        waiting: list[Batch] = []
        n_waiting = 0
        for batch in of_file:
            start, most = 0, batch_rows(batch.rows.num_columns)
            while n_waiting + batch.rows.num_rows - start >= most:
                n_taken = most - n_waiting
                part = replace(batch, rows=batch.rows.slice(start, n_taken))
                yield _together([*waiting, replace(part, start=batch.start + start)])
                waiting, n_waiting, start = [], 0, start + n_taken
            if start < batch.rows.num_rows:
                rest = replace(batch, rows=batch.rows.slice(start), start=batch.start + start)
                waiting.append(rest)
                n_waiting += rest.rows.num_rows
        if waiting:
            yield _together(waiting)


def _together(batches: list[Batch]) -> Batch:
    if len(batches) == 1:
        return batches[0]
    with naming(batches[0].file):
        for batch in batches[1:]:
            check_same(batches[0].rows.schema, batch.rows.schema, "the first rows")
    return replace(batches[0], rows=concatenated([batch.rows for batch in batches]))


def concatenated(tables: Iterable[pa.Table]) -> pa.Table:
    """Join rows whose types are of the same family."""
    tables = list(tables)
    target = tables[0].schema
    for table in tables[1:]:
        if table.schema != target:
            fields = [_joint(one, table.schema.field(one.name)) for one in target]
            target = pa.schema(fields)
    # Not safely: integers beyond 2^53 are rounded as in every fit, and nanoseconds are dropped.
    parts = [table.select(target.names).cast(target, safe=False) for table in tables]
    joined = pa.concat_tables(parts)
    return joined.unify_dictionaries()


def _joint(one: pa.Field, other: pa.Field) -> pa.Field:
    """Return a column of a type that holds both."""
    if one.type == other.type or pa.types.is_null(other.type):
        dtype = one.type
    elif pa.types.is_null(one.type):
        dtype = other.type
    elif pa.types.is_timestamp(one.type) and pa.types.is_timestamp(other.type):
        dtype = pa.timestamp("us", one.type.tz)  # the units differ
    else:
        plain = one.type.value_type if pa.types.is_dictionary(one.type) else one.type
        joint = {"numbers": pa.float64(), "text": pa.large_string()}
        dtype = joint.get(_family(one.type), plain)
    return pa.field(one.name, dtype)


def _family(dtype: pa.DataType) -> str:
    """Return what a type has in common with others that may stand in the same column."""
    types = pa.types
    if types.is_integer(dtype) or types.is_floating(dtype) or types.is_decimal(dtype):
        return "numbers"
    if types.is_dictionary(dtype):
        return _family(dtype.value_type)
    if types.is_string(dtype) or types.is_large_string(dtype) or types.is_string_view(dtype):
        return "text"
    return f"times of {dtype.tz}" if types.is_timestamp(dtype) else str(dtype)


def check_same(expected: pa.Schema, found: pa.Schema, where: str) -> None:
    """Refuse columns that are others than expected, or of a type of another family."""
    absent = [name for name in expected.names if name not in found.names]
    extra = [name for name in found.names if name not in expected.names]
    if absent or extra:
        words = {"lacks": absent, "adds": extra}
        what = " and ".join(f"{w} {list_names(names)}" for w, names in words.items() if names)
        raise UserError(f"the columns must be {where}; it {what}. Give all files the same columns.")
    for field in expected:
        mine, theirs = found.field(field.name).type, field.type
        is_null = pa.types.is_null(mine) or pa.types.is_null(theirs)
        if not is_null and _family(mine) != _family(theirs):
            raise UserError(
                f"column {field.name!r} must have the type of {where}, {theirs}; got {mine}. "
                "Write it again with one type.",
                column=field.name,
            )


def check_types(model: Schema, found: pa.Schema) -> None:
    """Refuse columns of a type that cannot be read as what a model has in them."""
    types = pa.types
    for column in model.columns:
        dtype = found.field(column.source).type
        plain = dtype.value_type if types.is_dictionary(dtype) else dtype
        is_moment = types.is_timestamp(plain) or types.is_date(plain) or types.is_time(plain)
        is_wrong, what = types.is_nested(plain) or types.is_binary(plain), "categories"
        if column.date:
            is_wrong, what = is_wrong or types.is_boolean(plain), "dates or times"
        elif column.kind is not Kind.CATEGORY:
            is_wrong, what = is_wrong or types.is_boolean(plain) or is_moment, "numbers"
        if is_wrong:
            raise UserError(
                f"column {column.source!r} must hold {what}, as in training; got the type {dtype}. "
                "Write it again with a type of these.",
                column=column.source,
            )
