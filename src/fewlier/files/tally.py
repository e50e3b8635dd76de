"""What is counted of every column over the rows of a stream, of which few are kept."""

from collections import Counter
from collections.abc import Mapping
from typing import TypeAlias, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fewlier.errors import CellError, FileError
from fewlier.table import dates, numbers
from fewlier.table.arrays import Floats, Ints
from fewlier.table.cells import Cells, as_text, check_finite, missing, number_text, without
from fewlier.table.columns import Column, Kind
from fewlier.table.dates import DateForm
from fewlier.table.declarations import NONE_STANDS_IN, Declared, StandIns, read_declarations
from fewlier.table.frame import Table
from fewlier.table.numbers import PLAIN, NumberForm
from fewlier.table.values import MAX_COUNTED, Counted

Found: TypeAlias = Counted | Counter[str] | None


@final
class Tallies:
    """The tallies of all columns.

    Parameters
    ----------
    declared : mapping of str to str
        What the user said of columns, as for the inference of kinds, which refuses what is wrong.
    stand_ins : StandIns
        What stands for missing cells, which are not counted.
    """

    def __init__(self, declared: Mapping[str, str], stand_ins: StandIns = NONE_STANDS_IN) -> None:
        self._declared, self._stand_ins = declared, stand_ins
        self._columns: dict[str, _ColumnTally] = {}

    def add(self, rows: pa.Table) -> None:
        """Count further rows, all of the same columns."""
        if not self._columns:
            said = read_declarations(rows.column_names, self._declared, {})
            self._columns = {
                name: _ColumnTally(name, said.get(name, Declared()), self._stand_ins.of(name))
                for name in rows.column_names
            }
        for name, tally in self._columns.items():
            tally.add(rows[name])  # an error counts rows from the first of these

    def found(self, name: str, form: NumberForm | DateForm | None) -> Found:
        """Return what was counted of a column, its numbers or its texts, given its form.

        None where only the kept rows can say: of dates, and of texts of more than `MAX_COUNTED`
        spellings that are no numbers.
        """
        tally = self._columns.get(name)
        return tally and tally.found(form)

    def unread(self, column: Column) -> int | None:
        """Return how many cells are not in the form of the column's numbers.

        None where only the kept rows can say.
        """
        tally = self._columns.get(column.source)
        if tally is None or column.date:
            return None
        return 0 if column.kind is Kind.CATEGORY else tally.unread(column.form)

    def levels(self, column: Column) -> Mapping[str, int]:
        """Return how many rows have each level of a column that is coded as category."""
        form = None if column.kind is Kind.CATEGORY else column.form
        found = None if column.date else self.found(column.name, form)
        if isinstance(found, Counted):
            is_count = column.kind is Kind.COUNT
            counts = (found.counts or Counter()).items()
            return {str(int(x)) if is_count else number_text(x): n for x, n in counts}
        return found or {}


@final
class _ColumnTally:
    """What is counted of one column: texts as long as they are few, or numbers.

    A column of text that turns out to have many spellings is counted as numbers from then on, in
    the form that those so far have; if they have none, counting ends.
    """

    def __init__(self, name: str, said: Declared, stand_ins: tuple[str, ...]) -> None:
        self._name, self._said, self._stand_ins = name, said, stand_ins
        self._texts: Counter[str] = Counter()
        self._numbers: Counted | None = None
        self._form: NumberForm | None = None  # of numbers that are read from text
        self._n_unread = 0
        self._is_closed = said.is_ignored or isinstance(said.form, DateForm)

    def add(self, column: pa.ChunkedArray) -> None:
        """Count further cells."""
        dtype = column.type
        if self._is_closed or pa.types.is_null(dtype):
            return
        is_number = pa.types.is_integer(dtype) or pa.types.is_floating(dtype)
        if is_number or pa.types.is_decimal(dtype) or pa.types.is_duration(dtype):
            self._add_numbers(self._cells(column))
        elif pa.types.is_dictionary(dtype) and self._numbers is not None and self._form is None:
            self.add(column.cast(dtype.value_type))  # numbers elsewhere in the column
        elif _is_text(dtype) or pa.types.is_boolean(dtype) or pa.types.is_dictionary(dtype):
            self._add_texts(column)
        else:
            self._is_closed = True  # dates: what is read from them is judged by the kept rows

    def found(self, form: NumberForm | DateForm | None) -> Found:
        """Return what was counted, given the form that the column turned out to have."""
        if self._is_closed or isinstance(form, DateForm):
            return None
        if self._numbers is not None:
            return self._numbers if self._form in (None, form) else None
        if form is None or (self._said.says_what_it_holds and self._said.form is None):
            return self._texts
        return self._as_numbers(form)[0]

    def unread(self, form: NumberForm) -> int | None:
        """Return how many cells are not in the form of the column's numbers."""
        if self._is_closed:
            return None
        return self._n_unread if self._numbers is not None else self._as_numbers(form)[1]

    def _cells(self, column: pa.ChunkedArray | pa.Array) -> Cells:
        return Table.of(pa.table({self._name: column})).cells[self._name]

    def _add_numbers(self, found: Cells) -> None:
        if self._numbers is None:  # the texts so far are those of a dictionary of numbers
            self._numbers, self._texts = self._as_numbers(PLAIN)[0], Counter()
        found = without(found, self._stand_ins)
        found = found[~missing(found)]
        self._numbers.add(found, np.ones(len(found), dtype=np.int64))

    def _add_texts(self, column: pa.ChunkedArray) -> None:
        is_plain = self._numbers is not None and self._form == PLAIN
        if is_plain and (read := _read_plain(column)) is not None:
            self._add_numbers(check_finite(self._name, read))
            return
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        spellings = column.value_counts()
        texts = without(as_text(self._cells(spellings.field("values"))), self._stand_ins)
        times = spellings.field("counts").to_numpy(zero_copy_only=False)
        present = np.flatnonzero(~missing(texts))
        texts, times = texts[present], times[present]
        if self._numbers is not None and self._form is not None:
            try:
                self._n_unread += self._read(self._form, self._numbers, texts, times)
            except CellError as error:
                spelling = spellings.field("values")[present[error.row]]
                row = pc.index(column, spelling).as_py()
                raise CellError(error.found, row, error.remedy) from error
            return
        for text, n in zip(texts.tolist(), times.tolist(), strict=True):
            self._texts[text] += n
        if len(self._texts) > MAX_COUNTED:
            self._turn_to_numbers()

    def _turn_to_numbers(self) -> None:
        """Count numbers from here on, if the texts so far are some."""
        texts, form = np.array([*self._texts], dtype=object), self._said.form
        if form is None and not self._said.says_what_it_holds and not dates.recognise(texts):
            found = numbers.recognise(texts)
            form = found.form if found and not found.other else None
        if isinstance(form, NumberForm):
            self._form = form
            self._numbers, self._n_unread = self._as_numbers(form)
        self._is_closed = self._numbers is None
        self._texts = Counter()

    def _as_numbers(self, form: NumberForm) -> tuple[Counted, int]:
        """Return the texts so far as numbers, and how many were not in the form."""
        total, texts = Counted(), np.array([*self._texts], dtype=object)
        times = np.array([*self._texts.values()], dtype=np.int64)
        try:
            return total, self._read(form, total, texts, times)
        except CellError as error:  # of which file is not known any more
            text = repr(texts[error.row])
            raise FileError(f"{error.found}, such as {text}. {error.remedy}") from error

    def _read(self, form: NumberForm, total: Counted, texts: Cells, times: Ints) -> int:
        """Add texts to numbers, and return how many were not in the form."""
        read, is_unread = form.parse(texts)
        numbers = without(check_finite(self._name, read[~is_unread]), self._stand_ins)
        is_known = ~missing(numbers)
        total.add(numbers[is_known], times[~is_unread][is_known])
        return int(times[is_unread].sum())


def _is_text(dtype: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_string(dtype) or types.is_large_string(dtype) or types.is_string_view(dtype)
    )


def _read_plain(column: pa.ChunkedArray) -> Floats | None:
    """Read texts as programs write numbers, fast; None where one of them is something else.

    NaN where a text is missing.
    """
    if not _is_text(column.type):
        return None
    try:
        filled = pc.if_else(pc.equal(column, ""), None, column)
        read: Floats = pc.cast(filled, pa.float64()).to_numpy()
    except pa.ArrowInvalid:
        return None
    return read
