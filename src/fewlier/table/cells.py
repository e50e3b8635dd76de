"""The cells of one column: numbers or text, and how values of any type become either."""

from __future__ import annotations

import datetime
import re
from collections.abc import Collection, Iterable
from contextlib import suppress
from decimal import Decimal
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fewlier.errors import UserError
from fewlier.table.arrays import Bools, Floats

if TYPE_CHECKING:
    import narwhals as nw

Cells: TypeAlias = npt.NDArray[Any]
"""One column, shape (n,): float64 with NaN for missing, or object holding str, None for missing."""

MISSING = frozenset(
    {
        *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND"),
        *("1.#QNAN", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
    }
)
"""Texts that stand for a missing cell, in whatever format; the spellings that pandas knows."""

_DATES = (datetime.date, datetime.time, np.datetime64)
_DURATIONS = (datetime.timedelta, np.timedelta64)
_TEXT = (str, bool, np.bool_, *_DATES)
_NUMBER = (Real, Decimal, *_DURATIONS)
_SECOND = np.timedelta64(1, "s")
# The second day of the year 1 and the last but one of 9999, in days since 1970.
_CALENDAR = (-719_161, 2_932_895)
_PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "date32[day]": 1}
_PER_DAY["date64[ms]"] = _PER_DAY["ms"]
# By name, so that pandas, whose pd.NA and pd.NaT these are, need not be installed.
_MISSING_TYPES = frozenset({"NoneType", "NAType", "NaTType"})
# Below it every integer is exact in float64 and is written without an exponent.
_PLAIN_INTEGER = 1e15
# Pandas writes 17.0, or 17,0 with a decimal comma, for 17 in a column with gaps.
_WHOLE_NUMBER = re.compile(r"(-?[0-9]+)[.,]0+")


def is_text(cells: Cells) -> bool:
    """Whether a column holds text rather than numbers."""
    return cells.dtype == object


def missing(cells: Cells) -> Bools:
    """Mark the missing cells of one column, shape (n,)."""
    is_missing: Bools = cells == None if is_text(cells) else np.isnan(cells)  # noqa: E711 - of each
    return is_missing


def unmasked(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return an array with what numpy masks in it missing; others as they are."""
    if not isinstance(array, np.ma.MaskedArray):
        return array
    is_masked, values = np.ma.getmaskarray(array), np.ma.getdata(array)
    if array.dtype.kind in "iuf":
        return np.where(is_masked, np.nan, values)
    cells: npt.NDArray[Any] = values.astype(object)
    cells[is_masked] = None
    return cells


def number_text(number: float) -> str:
    """Write a number as a category: ``3.0`` is ``"3"``, as in text files and integer columns."""
    if number.is_integer() and abs(number) < _PLAIN_INTEGER:
        return str(int(number))
    return repr(float(number))


def cell_text(cell: object) -> str:
    """Write one value so that files of all formats agree: ``17`` for 17.0, nothing for None."""
    if isinstance(cell, float | np.floating):
        return "" if cell != cell else number_text(float(cell))
    text = "" if cell is None else str(cell).strip()
    whole = _WHOLE_NUMBER.fullmatch(text)
    return whole[1] if whole else text


def as_text(cells: Cells) -> Cells:
    """Return the cells of one column as text; numbers as `number_text` writes them."""
    if not is_text(cells):
        texts = (None if cell != cell else number_text(cell) for cell in cells.tolist())
        return np.fromiter(texts, dtype=object, count=len(cells))
    whole = {
        text: found[1]
        for text in {*cells} - {None}
        if "," not in text and (found := _WHOLE_NUMBER.fullmatch(text))
    }
    if not whole:
        return cells
    return np.fromiter((whole.get(cell, cell) for cell in cells), dtype=object, count=len(cells))


def without(cells: Cells, stand_ins: Collection[str]) -> Cells:
    """Return the cells of one column, missing where they are one of some texts or numbers."""
    if not stand_ins:
        return cells
    if not is_text(cells):
        return np.where(np.isin(cells, numbers_among(stand_ins)), np.nan, cells)
    gone = {text for text in set(cells) if text is not None and cell_text(text) in stand_ins}
    kept = (None if text in gone else text for text in cells)
    return np.fromiter(kept, dtype=object, count=len(cells))


def numbers_among(texts: Iterable[str]) -> list[float]:
    """Return those texts that are plain numbers."""
    numbers = []
    for text in texts:
        with suppress(ValueError):
            numbers.append(float(text))
    return numbers


def as_bits(cells: Cells) -> npt.NDArray[np.uint64]:
    """Return a number for each cell of a column, shape (n,), that equal cells share."""
    if is_text(cells):
        place = {text: number for number, text in enumerate(dict.fromkeys(cells))}
        return np.fromiter(map(place.__getitem__, cells), np.uint64, len(cells))
    return np.where(np.isnan(cells), np.nan, cells + 0.0).view(np.uint64)  # -0 is 0


def check_finite(name: str, numbers: npt.NDArray[Any]) -> Floats:
    """Return the numbers of a column as contiguous float64; refuse infinities."""
    # Contiguous, so that numpy computes alike, bit for bit, on a column and on some of its rows.
    numbers = np.ascontiguousarray(numbers, dtype=np.float64)
    infinite = np.flatnonzero(np.isinf(numbers))
    if len(infinite):
        raise UserError(
            f"Column {name!r} must hold finite numbers; got {len(infinite)} infinite",
            column=name,
            row=int(infinite[0]),
            remedy="Write them as missing or drop those rows.",
        )
    return numbers


def read_column(name: str, column: Any) -> Cells:  # noqa: ANN401 - a series or a vector
    """Return a vector of any type, or a series of narwhals, as numbers or as text."""
    vector = column if isinstance(column, np.ndarray) else _as_vector(column)
    if vector.dtype.kind in "iuf":
        return check_finite(name, vector)
    if vector.dtype.kind == "m":
        return np.ascontiguousarray(vector / _SECOND, dtype=np.float64)
    if vector.dtype.kind == "M":
        vector = _moments(vector.astype("datetime64[us]"))  # finer ones would become integers
    return _read_objects(name, vector.astype(object), as_text=holds_categories(column))


def holds_categories(column: Any) -> bool:  # noqa: ANN401 - a series or a vector
    """Whether a column's type says that it holds categories: labels, or booleans."""
    if isinstance(column, np.ndarray):
        return False
    import narwhals as nw  # here, because arrays need no DataFrame package

    return column.dtype in (nw.Categorical, nw.Enum, nw.Boolean)


def holds_dates(column: Any) -> bool:  # noqa: ANN401 - a series or a vector
    """Whether a column's type, or that of its first value, says that it holds dates or times."""
    if isinstance(column, np.ndarray) and column.dtype != object:
        return bool(column.dtype.kind == "M")
    # narwhals does not know the zones of pandas that have an underscore.
    if not isinstance(column, np.ndarray) and str(column.dtype) not in ("Object", "Unknown"):
        return str(column.dtype).startswith(("Date", "Time"))
    first = next((value for value in column if not _is_missing(value)), None)
    return isinstance(first, _DATES)


def zone_of(column: Any) -> str:  # noqa: ANN401 - a series or a vector
    """Return the time zone that a column's type names; empty if it names none."""
    if isinstance(column, np.ndarray) or str(column.dtype) == "Object":
        return ""
    return getattr(column.head(0).to_arrow().type, "tz", None) or ""


def _as_vector(series: nw.Series[Any]) -> npt.NDArray[Any]:
    """Return a series as numbers, durations or Python objects."""
    import narwhals as nw
    import pyarrow as pa

    dtype, native = series.dtype, series.to_native()
    if dtype in (nw.Date, nw.Datetime):
        return _moments(series.to_arrow())
    if dtype.is_integer() or dtype == nw.Duration:
        return series.to_numpy()  # arrow does not cast integers that floats would round
    if dtype.is_numeric():
        return series.cast(nw.Float64()).to_numpy()
    if isinstance(native, pa.ChunkedArray) and getattr(native.type, "unit", "") == "ns":
        # Python's own times have no nanoseconds.
        series = nw.from_native(native.cast(pa.time64("us"), safe=False), series_only=True)
    return np.fromiter(series.to_list(), dtype=object, count=len(series))


def _moments(column: Any) -> npt.NDArray[Any]:  # noqa: ANN401 - of numpy or arrow
    """Return dates as objects of Python, which knows the years 1 to 9999.

    Dates beyond are moved to a day from the end, which any time zone can show: databases write
    infinity, and a date out there is an impossible value, not a gap.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    column = pa.array(column) if isinstance(column, np.ndarray) else column
    dtype = column.type
    unit = dtype.unit if pa.types.is_timestamp(dtype) else str(dtype)
    if unit != "ns":  # which are all within
        low, high = (day * _PER_DAY[unit] for day in _CALENDAR)
        number = pa.int32() if pa.types.is_date32(dtype) else pa.int64()
        inside = pc.max_element_wise(column.cast(number), low, skip_nulls=False)
        inside = pc.min_element_wise(inside, high, skip_nulls=False)
        column = inside.cast(number).cast(dtype)
    else:  # Python's own dates have no nanoseconds
        column = column.cast(pa.timestamp("us", dtype.tz), safe=False)
    return np.fromiter(column.to_pylist(), dtype=object, count=len(column))


def _read_objects(name: str, values: npt.NDArray[Any], *, as_text: bool) -> Cells:
    """Read Python objects: numbers if all of them are, else text; numbers where all are missing."""
    for cell_type in set(map(type, values)) - {str}:
        _check_type(name, cell_type, values)
    gaps = {value for value in set(values) if _is_missing(value)}
    present = np.fromiter((value not in gaps for value in values), np.bool_, len(values))
    found = values[present]
    types = set(map(type, found))
    if types and (as_text or any(issubclass(one, _TEXT) for one in types)):
        cells = np.full(len(values), None, dtype=object)
        cells[present] = found if types == {str} else [*map(_text, found)]
        return cells
    numbers = np.full(len(values), np.nan)
    try:
        numbers[present] = np.fromiter(map(_number, found), np.float64, len(found))
    except OverflowError as error:
        raise UserError(
            f"Column {name!r} must hold finite numbers; got an integer beyond float64. "
            "Rescale the column or leave it out.",
            column=name,
        ) from error
    return check_finite(name, numbers)


def _check_type(name: str, cell_type: type, values: npt.NDArray[Any]) -> None:
    """Refuse a column that holds values of a type that is neither number nor text."""
    if cell_type.__name__ in _MISSING_TYPES or issubclass(cell_type, (*_TEXT, *_NUMBER)):
        return
    is_complex = issubclass(cell_type, complex | np.complexfloating)
    raise UserError(
        f"{'Complex data not supported: column' if is_complex else 'Column'} {name!r} must hold "
        f"numbers or text; got {cell_type.__name__}",
        column=name,
        row=[*map(type, values)].index(cell_type),
        remedy="Spread its content over columns of numbers or text, or leave it out.",
    )


def _is_missing(value: object) -> bool:
    if isinstance(value, str):
        return value.strip() in MISSING
    # NaN, of whatever type, is the only number that differs from itself.
    return type(value).__name__ in _MISSING_TYPES or bool(value != value)


def _number(value: Any) -> float:  # noqa: ANN401 - whatever a cell may hold
    return float(value / _SECOND if isinstance(value, _DURATIONS) else value)


def _text(value: Any) -> str:  # noqa: ANN401 - whatever a cell may hold
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    is_fraction = isinstance(value, _NUMBER) and not isinstance(value, Integral)
    return number_text(_number(value)) if is_fraction else str(value)
