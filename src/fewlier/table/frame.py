"""`Table`: any DataFrame or 2-D array as named columns; `Origin`: what it was, to go back there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, final

import numpy as np
import numpy.typing as npt

from fewlier.errors import UserError, noting, raise_all
from fewlier.process.escape import list_some
from fewlier.table.arrays import Ints, hash_rows
from fewlier.table.cells import (
    Cells,
    as_bits,
    holds_categories,
    holds_dates,
    read_column,
    unmasked,
    without,
    zone_of,
)
from fewlier.table.text_forms import Unread

if TYPE_CHECKING:
    import narwhals as nw
    import pyarrow as pa

_STREAM = "__arrow_c_stream__"


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of named columns, each of numbers or of text.

    Parameters
    ----------
    cells : dict of str to array of shape (n_rows,)
        The columns in order. A column is float64 with NaN where a cell is missing, or object
        holding str with None where a cell is missing. There is at least one.
    categorical : frozenset of str
        Text columns that hold categories by their type, even if these look like numbers.
    temporal : mapping of str to str
        Text columns that hold dates or times by their type, written as in ISO 8601, and the time
        zone that it names, or an empty text.
    unread : dict of str to Unread
        By column, cells that are missing only because they could not be read.
    written : dict of str to array of shape (n_rows,)
        By column, the user's text that cells were read from, where they were dates.
    level_counts : dict of str to mapping of str to int
        Where the rows are a sample: by text column, how many of all rows have each level.

    Examples
    --------
    >>> Table.of([[1, "a"], [2.5, None]]).cells
    {'x0': array([1. , 2.5]), 'x1': array(['a', None], dtype=object)}
    """

    cells: dict[str, Cells]
    categorical: frozenset[str] = frozenset()
    temporal: Mapping[str, str] = field(default_factory=dict)
    unread: dict[str, Unread] = field(default_factory=dict)
    written: dict[str, Cells] = field(default_factory=dict)
    level_counts: dict[str, Mapping[str, int]] = field(default_factory=dict)

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

        Numbers become float64 and durations seconds. Text, booleans and categoricals become text,
        and so do dates and times, written as in ISO 8601. Missing cells are null, NaN, NaT and the
        texts in `MISSING`, with or without spaces around them. A column that mixes text and
        numbers is text; a column without any value is numeric. The columns of an array are called
        ``x0``, ``x1``, and so on.

        Parameters
        ----------
        data : DataFrame, Arrow stream, array or list
            The rows.
        ignore : collection of str
            Columns that are not read: all of their cells are missing.
        problems : dict of str to UserError, or None
            Collects the errors of single columns, whose cells are then missing; without it they
            are raised.

        Raises
        ------
        UserError
            For nested values, infinities, complex or sparse data, anything that is not
            2-D, two columns of one name, or no column at all.
        """
        columns = _columns_of(data)
        found: dict[str, UserError] = {} if problems is None else problems
        cells = {}
        for name, column in columns.items():
            cells[name] = np.full(len(column), np.nan)
            if name not in ignore:
                with noting(found, name):
                    cells[name] = read_column(name, column)
        if problems is None:
            raise_all(found.values())
        read = {n: column for n, column in columns.items() if n not in ignore and n not in found}
        return cls(
            cells,
            frozenset(name for name, column in read.items() if holds_categories(column)),
            {name: zone_of(column) for name, column in read.items() if holds_dates(column)},
        )

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
        return hash_rows(map(as_bits, self.cells.values()))

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

    def without(self, stand_ins: Callable[[str], Collection[str]]) -> Table:
        """Return the rows, with cells missing that hold what stands for it in their column."""
        cells = {name: without(cells, stand_ins(name)) for name, cells in self.cells.items()}
        return replace(self, cells=cells)

    def renamed(self, names: Iterable[str]) -> Table:
        """Return the columns under other names, in order."""
        new = dict(zip(self.names, names, strict=True))
        return Table(
            {new[name]: cells for name, cells in self.cells.items()},
            frozenset(new[name] for name in self.categorical),
            {new[name]: zone for name, zone in self.temporal.items()},
        )

    def followed_by(self, other: Table) -> Table:
        """Return the rows of this table and then those of another with the same columns."""
        cells, written = (
            {name: np.concatenate([cells, after[name]]) for name, cells in before.items()}
            for before, after in ((self.cells, other.cells), (self.written, other.written))
        )
        return replace(self, cells=cells, unread={}, written=written)


@final
@dataclass(frozen=True, eq=False)
class Origin:
    """Where rows came from, so that what is found of them can go back there.

    Parameters
    ----------
    library : str
        The DataFrame library as narwhals calls it; "pyarrow" for arrays and streams, too.
    index : pandas.Index or None
        Labels of the rows, if they came in a pandas DataFrame.
    """

    library: str = "pyarrow"
    index: Any | None = None

    @classmethod
    def of(cls, data: object) -> Origin:
        """Return the origin of rows that `Table.of` reads; a lazy frame is not computed."""
        if isinstance(data, np.ndarray | list | tuple):
            return cls()
        import narwhals as nw  # here, because arrays need no DataFrame package

        frame = nw.from_native(data, pass_through=True)
        if isinstance(frame, nw.DataFrame):
            return cls(frame.implementation.value, nw.maybe_get_index(frame))
        if isinstance(frame, nw.LazyFrame) and frame.implementation.is_polars():
            return cls(frame.implementation.value)
        return cls()

    def take(self, rows: Ints) -> Origin:
        """Return the origin of some rows, given by their positions."""
        return Origin(self.library, None if self.index is None else self.index.take(rows))

    def frame(self, lines: pa.Table) -> Any:  # noqa: ANN401 - of any library
        """Return a table of the library, one line for each row, with the labels of the rows."""
        import narwhals as nw

        backend: Any = self.library
        frame = nw.from_arrow(lines, backend=backend).to_native()
        return frame if self.index is None else frame.set_axis(self.index)


def all_unread(
    unread: Mapping[str, Unread], more: Mapping[str, Unread], n_before: int
) -> dict[str, Unread]:
    """Add the unread cells of further rows, which have `n_before` rows before them."""
    total = dict(unread)
    for name, (n, row, text) in more.items():
        first = total.get(name, Unread(0, row + n_before, text))
        total[name] = first._replace(n=first.n + n)
    return total


def unread_note(unread: Mapping[str, Unread], place: Callable[[int], str] = str) -> str:
    """Say which cells could not be read; `place` says where a row is."""
    cells = list_some(
        f"{n} in {name} (first {text[:40]!r} in row {place(row)})"
        for name, (n, row, text) in unread.items()
    )
    return f"cells in another form than the rest of their column count as missing: {cells}."


def impossible_note(counts: Mapping[str, int]) -> str:
    """Say which columns have values that they cannot have, and in how many cells."""
    cells = list_some(f"{n} in {name}" for name, n in counts.items() if n)
    return f"values never seen in training, or impossible, count as odd: {cells}."


def has_names(data: object) -> bool:
    """Whether the columns have names; those of arrays have none."""
    # The type is asked, because a lazy frame would compute its columns.
    return any(hasattr(type(data), name) for name in ("columns", "column_names", _STREAM))


def _columns_of(data: object) -> dict[str, Any]:
    """Return the columns of a DataFrame or array by name: series or vectors."""
    rows: Any = _as_frame(data)
    if rows is not None:
        names, columns = [*map(str, rows.columns)], rows.iter_columns()
    else:
        rows = _as_array(data)
        names, columns = [f"x{d}" for d in range(rows.shape[1])], rows.T
    check_names(names, len(rows))
    return dict(zip(names, columns, strict=True))


def _as_frame(data: object) -> nw.DataFrame[Any] | None:
    """Wrap any kind of DataFrame; None where `data` is not one."""
    if isinstance(data, np.ndarray | list | tuple):
        return None
    import narwhals as nw  # here, because arrays need no DataFrame package

    try:
        frame = nw.from_native(data, pass_through=True)
    except nw.exceptions.DuplicateError:
        # pyarrow keeps its names in `column_names`, pandas in `columns`; polars has no duplicates.
        names: Any = getattr(data, "column_names", None) or getattr(data, "columns", ())
        check_names([*map(str, names)], 0)
        raise
    if isinstance(frame, nw.DataFrame):
        return frame
    if hasattr(data, _STREAM):
        return _read_stream(data)
    return frame.collect() if isinstance(frame, nw.LazyFrame) else None


def _read_stream(data: object) -> nw.DataFrame[Any] | None:
    """Read rows from Arrow; None where they are single values, as in a Series."""
    import narwhals as nw
    import pyarrow as pa

    try:
        rows = pa.RecordBatchReader.from_stream(data)
    except (pa.ArrowInvalid, pa.ArrowTypeError):  # the latter where a Series mixes types
        return None
    check_names(rows.schema.names, 0)
    frame: nw.DataFrame[Any] = nw.from_native(rows.read_all(), eager_only=True)
    return frame


def _as_array(data: object) -> npt.NDArray[Any]:
    """Return `data` as a 2-D array, which holds objects when it was a list."""
    if hasattr(data, "toarray"):
        raise UserError(
            f"The data must be dense; got a sparse {type(data).__name__}. Call its toarray() first."
        )
    # Straight from a list, numpy would turn [1, "a"] into two texts.
    dtype = None if hasattr(data, "__array__") else object
    array = unmasked(np.asanyarray(data, dtype=dtype))
    if array.ndim != 2:
        raise UserError(
            "The data must be a DataFrame, an Arrow stream or a 2-D array; got "
            f"{type(data).__name__} of shape {array.shape}. Reshape your data to one line per row, "
            "with array.reshape(1, -1), or frame.iloc[[i]] in pandas, if it is a single row."
        )
    return array


def check_names(names: list[str], n_rows: int) -> None:
    """Refuse a table without a column, or with two of one name."""
    if not names:
        raise UserError(
            "The table must have a column; got 0 feature(s) "
            f"(shape=({n_rows}, 0)) while a minimum of 1 is required."
        )
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise UserError(
            f"Column names must be unique; got {name!r} {count} times. Rename or drop columns."
        )


def rows_text(n: int) -> str:
    """Write a number of rows."""
    return "1 row" if n == 1 else f"{n:,} rows"
