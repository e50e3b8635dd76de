"""`Table`: any DataFrame or 2-D array as named columns of numbers or text, missing cells marked."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from fewlier.arrays import Bools, Floats, Ints, hash_rows
from fewlier.errors import CellError, UserError, noting, raise_all

if TYPE_CHECKING:
    import narwhals as nw

Cells: TypeAlias = npt.NDArray[Any]
"""One column, shape (n,): float64 with NaN for missing, or object holding str, None for missing."""

MISSING = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
)
"""Texts that stand for a missing cell, in whatever format; the spellings that pandas knows."""
_MISSING_TEXTS = frozenset(MISSING)

_DATES = (datetime.date, datetime.time, np.datetime64)
_DURATIONS = (datetime.timedelta, np.timedelta64)
_TEXT = (str, bool, np.bool_, *_DATES)
_NUMBER = (Real, Decimal, *_DURATIONS)
# By name, so that pandas, whose pd.NA and pd.NaT these are, need not be installed.
_MISSING_TYPES = frozenset({"NoneType", "NAType", "NaTType"})
_STREAM = "__arrow_c_stream__"
# Below it every integer is exact in float64 and is written without an exponent.
_PLAIN_INTEGER = 1e15


class Unread(NamedTuple):
    """Cells of one column that are text in a form that the column does not have.

    How many there are, the row of the first, and its text.
    """

    n: int
    row: int
    text: str


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of named columns, each of numbers or of text.

    Parameters
    ----------
    cells : dict of str to array of shape (n_rows,)
        The columns in order. A column is float64 with NaN where a cell is missing, or object
        holding str with None where a cell is missing. There is at least one.
    categorical : frozenset of str
        Text columns whose type says that they hold labels of categories, whatever these look like.
    temporal : frozenset of str
        Text columns whose type says that they hold dates or times, written as ISO 8601.
    unread : dict of str to Unread
        By column, cells that are missing only because they could not be read.
    written : dict of str to array of shape (n_rows,)
        By column, the text of the user's that its cells were read from, where that is a date.

    Examples
    --------
    >>> Table.of([[1, "a"], [2.5, None]]).cells
    {'x0': array([1. , 2.5]), 'x1': array(['a', None], dtype=object)}
    """

    cells: dict[str, Cells]
    categorical: frozenset[str] = frozenset()
    temporal: frozenset[str] = frozenset()
    unread: dict[str, Unread] = field(default_factory=dict)
    written: dict[str, Cells] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        data: object,
        *,
        ignore: Collection[str] = (),
        problems: dict[str, UserError] | None = None,
    ) -> Table:
        """Read a DataFrame (pandas, polars, pyarrow), an Arrow stream, or a 2-D array or list.

        An Arrow stream is anything with ``__arrow_c_stream__``: a DuckDB relation, or a
        `pyarrow.RecordBatchReader`, which can be read only once. A lazy frame is computed.
        Numbers become float64, durations seconds; text, booleans and categoricals become text, and
        so do dates and times, as ISO 8601 writes them. Missing are null, NaN
        and NaT, and texts that are one of `MISSING` but for spaces around them. A column that
        mixes text with numbers is text; one that is missing throughout is numeric. Columns of
        arrays are called ``x0``, ``x1``, and so on.

        Parameters
        ----------
        data : DataFrame, Arrow stream, array or list
            The rows.
        ignore : collection of str
            Columns that are not looked at: they are missing throughout.
        problems : dict of str to UserError, or None
            Takes what is wrong with single columns, which are then missing throughout; without
            it, that is raised.

        Raises
        ------
        UserError
            For nested values, infinities, complex or sparse data, anything that is not
            2-D, two columns of one name, or no column at all.
        """
        frame = _as_frame(data)
        columns = _columns_of_array(_as_array(data)) if frame is None else _columns_of_frame(frame)
        found: dict[str, UserError] = {} if problems is None else problems
        cells = {}
        for name, column in columns.items():
            cells[name] = np.full(len(column), np.nan)
            if name not in ignore:
                with noting(found, name):
                    cells[name] = _cells_of(name, column)
        if problems is None:
            raise_all(found.values())
        read = {n: column for n, column in columns.items() if n not in ignore and n not in found}
        return cls(cells, _named(read, _is_categorical), _named(read, _holds_dates))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return tuple(self.cells)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self.cells.values())))

    def ids(self) -> Ints:
        """Return a number for each row, shape (n_rows,), that its copies in this table share."""
        return hash_rows(map(_as_bits, self.cells.values()))

    def take(self, rows: npt.NDArray[Any]) -> Table:
        """Return the rows given by integer positions or by a boolean mask."""
        cells, written = (
            {name: cells[rows] for name, cells in part.items()}
            for part in (self.cells, self.written)
        )
        return replace(self, cells=cells, unread={}, written=written)

    def select(self, names: Iterable[str]) -> Table:
        """Return the named columns, in the order given."""
        return replace(self, cells={name: self.cells[name] for name in names})

    def renamed(self, names: Iterable[str]) -> Table:
        """Return the columns under other names, in order."""
        new = dict(zip(self.names, names, strict=True))
        categorical, temporal = (
            frozenset(new[name] for name in part) for part in (self.categorical, self.temporal)
        )
        return Table(
            dict(zip(new.values(), self.cells.values(), strict=True)), categorical, temporal
        )

    def followed_by(self, other: Table) -> Table:
        """Return the rows of this table and then those of another with the same columns."""
        cells, written = (
            {name: np.concatenate([cells, after[name]]) for name, cells in before.items()}
            for before, after in ((self.cells, other.cells), (self.written, other.written))
        )
        return replace(self, cells=cells, unread={}, written=written)


def all_unread(
    unread: Mapping[str, Unread], more: Mapping[str, Unread], n_before: int
) -> dict[str, Unread]:
    """Add the unread cells of further rows, which have `n_before` rows before them."""
    total = dict(unread)
    for name, (n, row, text) in more.items():
        first = total.get(name, Unread(0, row + n_before, text))
        total[name] = first._replace(n=first.n + n)
    return total


def told(facts: Iterable[str], most: int = 10) -> str:
    """Return facts about columns in one line, the first few of them."""
    facts = list(facts)
    more = f" and {len(facts) - most} more" if len(facts) > most else ""
    return ", ".join(facts[:most]) + more


def unread_note(unread: Mapping[str, Unread]) -> str:
    """Say which cells could not be read."""
    cells = told(
        f"{n} in {name} (first {text[:40]!r} in row {row})"
        for name, (n, row, text) in unread.items()
    )
    return f"cells in another form than the rest of their column count as missing: {cells}."


def is_text(cells: Cells) -> bool:
    """Tell a column of text from a column of numbers."""
    return cells.dtype == object


def missing(cells: Cells) -> Bools:
    """Mark the missing cells of one column, shape (n,)."""
    if is_text(cells):
        return np.fromiter((cell is None for cell in cells), np.bool_, len(cells))
    return np.isnan(cells)


def _as_bits(cells: Cells) -> npt.NDArray[np.uint64]:
    """Return a number for each cell of a column that equal cells share, shape (n,)."""
    if is_text(cells):
        place = {text: number for number, text in enumerate(dict.fromkeys(cells))}
        return np.fromiter(map(place.__getitem__, cells), np.uint64, len(cells))
    return np.where(np.isnan(cells), np.nan, cells + 0.0).view(np.uint64)  # -0 is 0


def number_text(number: float) -> str:
    """Write a number as a category: ``3.0`` is ``"3"``, as text files and integers have it."""
    if number.is_integer() and abs(number) < _PLAIN_INTEGER:
        return str(int(number))
    return repr(float(number))


def has_names(data: object) -> bool:
    """Whether columns have names of their own, as those of arrays do not."""
    # The type is asked, because a lazy frame would compute its columns.
    return any(hasattr(type(data), name) for name in ("columns", "column_names", _STREAM))


def row_labels(data: object) -> Any | None:  # noqa: ANN401 - pandas need not be installed
    """Return the index of a pandas DataFrame, or None if the rows have no labels."""
    import narwhals as nw

    frame = nw.from_native(data, eager_only=True, pass_through=True)
    return nw.maybe_get_index(frame) if isinstance(frame, nw.DataFrame) else None


def _as_frame(data: object) -> nw.DataFrame[Any] | None:
    """Wrap any kind of DataFrame; None where `data` is not one."""
    if isinstance(data, np.ndarray | list | tuple):
        return None
    import narwhals as nw  # here, because arrays need no DataFrame package

    try:
        frame = nw.from_native(data, pass_through=True)
    except nw.exceptions.DuplicateError as error:
        # pyarrow keeps its names in `column_names`, pandas in `columns`; polars has no duplicates.
        names: Any = getattr(data, "column_names", None) or getattr(data, "columns", ())
        raise _repeated_name_error(map(str, names)) from error
    if isinstance(frame, nw.DataFrame):
        return frame
    if hasattr(data, _STREAM):
        return _read_stream(data)
    return frame.collect() if isinstance(frame, nw.LazyFrame) else None


def _read_stream(data: object) -> nw.DataFrame[Any] | None:
    """Read rows from Arrow; None where they are single values, such as those of a Series."""
    import narwhals as nw
    import pyarrow as pa

    try:
        rows = pa.RecordBatchReader.from_stream(data)
    except pa.ArrowInvalid:
        return None
    check_names(rows.schema.names, 0)
    frame: nw.DataFrame[Any] = nw.from_native(rows.read_all(), eager_only=True)
    return frame


def _as_array(data: object) -> npt.NDArray[Any]:
    """Return `data` as a 2-D array, which holds objects when it was a list."""
    from scipy import sparse  # here, because it takes longer to import than the rest of this layer

    if sparse.issparse(data):
        raise UserError(
            f"The data must be dense; got a sparse {type(data).__name__}. Call its toarray() first."
        )
    # Straight from a list, numpy would turn [1, "a"] into two texts.
    array = np.asarray(data) if hasattr(data, "__array__") else np.asarray(data, dtype=object)
    if array.ndim != 2:
        raise UserError(
            "The data must be a DataFrame, an Arrow stream or a 2-D array; got "
            f"{type(data).__name__} of shape {array.shape}. Reshape your data to one line per row, "
            "with array.reshape(1, -1) if it is a single row."
        )
    return array


def _columns_of_frame(frame: nw.DataFrame[Any]) -> dict[str, Any]:
    names = [str(name) for name in frame.columns]
    check_names(names, len(frame))
    return dict(zip(names, frame.iter_columns(), strict=True))


def _named(columns: Mapping[str, Any], test: Callable[[Any], bool]) -> frozenset[str]:
    """Name the columns that pass a test."""
    return frozenset(name for name, column in columns.items() if test(column))


def _is_categorical(column: Any) -> bool:  # noqa: ANN401 - a series or a vector
    """Whether a column is of categories by its type: a dictionary, enumeration, or booleans."""
    if isinstance(column, np.ndarray):
        return False
    import narwhals as nw

    return column.dtype in (nw.Categorical, nw.Enum, nw.Boolean)


def _holds_dates(column: Any) -> bool:  # noqa: ANN401 - a series or a vector
    """Whether a column is of dates or times by its type, or by that of its first value."""
    if isinstance(column, np.ndarray):
        if column.dtype != object:
            return bool(column.dtype.kind == "M")
    elif str(column.dtype) != "Object":
        return str(column.dtype).startswith(("Date", "Time"))
    first = next((value for value in column if not _is_missing(value)), None)
    return isinstance(first, _DATES)


def _columns_of_array(array: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
    names = [f"x{index}" for index in range(array.shape[1])]
    check_names(names, len(array))
    return {name: array[:, j] for j, name in enumerate(names)}


def _cells_of(name: str, column: Any) -> Cells:  # noqa: ANN401 - a series or a vector
    if isinstance(column, np.ndarray):
        return _cells_of_vector(name, column)
    return _cells_of_series(name, column)


def check_names(names: list[str], n_rows: int) -> None:
    """Refuse a table without a column, or with two of one name."""
    if not names:
        raise UserError(
            "The table must have a column; got 0 feature(s) "
            f"(shape=({n_rows}, 0)) while a minimum of 1 is required."
        )
    if len(set(names)) < len(names):
        raise _repeated_name_error(names)


def _repeated_name_error(names: Iterable[str]) -> UserError:
    name, count = Counter(names).most_common(1)[0]
    return UserError(
        f"Column names must be unique; got {name!r} {count} times. Rename or drop columns."
    )


def _cells_of_series(name: str, series: nw.Series[Any]) -> Cells:
    import narwhals as nw

    dtype = series.dtype
    if dtype.is_integer():
        return _finite(name, series.to_numpy())  # arrow casts none beyond 2^53, which floats round
    if dtype.is_numeric():
        return _finite(name, series.cast(nw.Float64()).to_numpy())
    if dtype == nw.Duration:
        return _seconds(series.to_numpy())
    values = np.fromiter(_in_microseconds(series).to_list(), dtype=object, count=len(series))
    # Categories may be numbers; their dtype says that they are labels all the same.
    return _cells_of_objects(name, values, as_text=dtype in (nw.Categorical, nw.Enum))


def _in_microseconds(series: nw.Series[Any]) -> nw.Series[Any]:
    """Return dates and times of Arrow without nanoseconds, which Python's own do not have."""
    import narwhals as nw
    import pyarrow as pa

    native = series.to_native()
    if not isinstance(native, pa.ChunkedArray) or getattr(native.type, "unit", "") != "ns":
        return series
    kind = native.type
    finer = pa.timestamp("us", kind.tz) if pa.types.is_timestamp(kind) else pa.time64("us")
    return nw.from_native(native.cast(finer, safe=False), series_only=True)


def _cells_of_vector(name: str, vector: npt.NDArray[Any]) -> Cells:
    if vector.dtype.kind in "iuf":
        return _finite(name, vector)
    if vector.dtype.kind == "m":
        return _seconds(vector)
    if vector.dtype.kind == "M":
        vector = vector.astype("datetime64[us]")  # finer ones would become integers
    return _cells_of_objects(name, vector.astype(object))


def _cells_of_objects(name: str, values: npt.NDArray[Any], *, as_text: bool = False) -> Cells:
    """Read Python objects: numbers if all of them are, else text; numbers where all are missing."""
    types = set(map(type, values))
    for cell_type in types - {str}:
        _check_type(name, cell_type, values)
    if types <= {str, type(None)}:  # the cells of a CSV file, which may have millions
        texts = (None if _is_missing_text(text) else text for text in values)
        cells = np.fromiter(texts, dtype=object, count=len(values))
        return cells if cells.astype(bool).any() else np.full(len(values), np.nan)
    present = np.fromiter((not _is_missing(value) for value in values), np.bool_, len(values))
    found = values[present]
    if len(found) and (as_text or any(isinstance(value, _TEXT) for value in found)):
        text = np.full(len(values), None, dtype=object)
        text[present] = np.fromiter(map(_text, found), dtype=object, count=len(found))
        return text
    numbers = np.full(len(values), np.nan)
    try:
        numbers[present] = np.fromiter(map(_number, found), np.float64, len(found))
    except OverflowError as error:
        raise UserError(
            f"Column {name!r} must hold finite numbers; got an integer beyond float64. "
            "Rescale the column or leave it out."
        ) from error
    return _finite(name, numbers)


def _check_type(name: str, cell_type: type, values: npt.NDArray[Any]) -> None:
    """Refuse a column that holds values of a type that is neither number nor text."""
    if cell_type.__name__ in _MISSING_TYPES:
        return
    row = next(row for row, value in enumerate(values) if type(value) is cell_type)
    found = f"{cell_type.__name__} (first at row {row})"
    if issubclass(cell_type, complex | np.complexfloating):
        raise UserError(
            f"Complex data not supported: column {name!r} must hold real numbers; got {found}. "
            "Give the real and the imaginary part as two columns."
        )
    if not issubclass(cell_type, (*_TEXT, *_NUMBER)):
        raise UserError(
            f"Column {name!r} must hold numbers or text; got {found}. "
            "Spread its content over columns of numbers or text, or leave it out."
        )


def _is_missing(value: object) -> bool:
    if isinstance(value, str):
        return _is_missing_text(value)
    # NaN, of whatever type, is the only number that differs from itself.
    return type(value).__name__ in _MISSING_TYPES or bool(value != value)


def _is_missing_text(text: str | None) -> bool:
    return text is None or text.strip() in _MISSING_TEXTS


def _number(value: Any) -> float:  # noqa: ANN401 - whatever a cell may hold
    if isinstance(value, _DURATIONS):
        return float(_seconds(np.array([value], dtype="timedelta64"))[0])
    return float(value)


def _seconds(durations: npt.NDArray[Any]) -> Floats:
    """Return durations in seconds, NaN where missing."""
    seconds: Floats = durations / np.timedelta64(1, "s")
    return np.ascontiguousarray(seconds, dtype=np.float64)


def _text(value: Any) -> str:  # noqa: ANN401 - whatever a cell may hold
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return str(value) if isinstance(value, str | np.bool_ | Integral) else number_text(float(value))


def _finite(name: str, numbers: npt.NDArray[Any]) -> Floats:
    """Return numbers as contiguous float64; refuse infinities."""
    # Contiguous, so that numpy computes alike, bit for bit, on a column and on some of its rows.
    numbers = np.ascontiguousarray(numbers, dtype=np.float64)
    infinite = np.flatnonzero(np.isinf(numbers))
    if len(infinite):
        raise infinite_error(name, infinite)
    return numbers


def infinite_error(name: str, rows: npt.NDArray[np.int64]) -> CellError:
    """Return the error for infinities in these rows of a column."""
    return CellError(
        f"Column {name!r} must hold finite numbers; got {len(rows)} infinite",
        int(rows[0]),
        "Write them as missing or drop those rows.",
    )
