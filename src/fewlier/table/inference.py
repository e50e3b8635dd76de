"""Finding out what the columns of a table are, and checking what the user says they are."""

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from fewlier.errors import UserError, declaration, noting, raise_all
from fewlier.process.escape import list_some
from fewlier.table.arrays import Bools
from fewlier.table.cells import (
    Cells,
    as_text,
    check_finite,
    is_text,
    missing,
    number_text,
    without,
)
from fewlier.table.column_values import ColumnValues, Values, most_frequent
from fewlier.table.columns import CODINGS, MAX_COUNT, Column, Kind, impossible_numbers
from fewlier.table.date_parts import date_parts
from fewlier.table.dates import DateForm
from fewlier.table.declarations import (
    NONE_STANDS_IN,
    Declared,
    StandIns,
    find_forms,
    read_declarations,
)
from fewlier.table.frame import Table, check_names
from fewlier.table.numbers import PLAIN, NumberForm
from fewlier.table.schema import LeftOut, Schema

# What the inference of kinds turns on; chosen on labelled tables, see docs/METHOD.md.
MIN_ROWS_PER_VALUE = 10
MAX_DISPERSION = 2.0
MIN_SKEWNESS = 2.0
LARGE_INTEGER = 1000
ROUND = 100
# A text column looks like an id if more than half of its texts are distinct, and it has enough.
MAX_DISTINCT_SHARE = 0.5
MIN_TEXTS_TO_JUDGE = 20
# Digits, and what may stand around them in numbers, dates and times.
_FIGURES = re.compile(r"[^\w]*\d[\d\s.,:'/+\-%$\u20ac\u00a3()TZ]*")
# Texts with this many words or more are sentences rather than names.
MIN_WORDS = 3

IGNORED = "as declared"
"""Why a column is left out that is declared to be."""


def infer_schema(
    table: Table,
    overrides: Mapping[str, str] | str | None = None,
    is_normal: Bools | None = None,
    problems: Mapping[str, UserError] | None = None,
    stand_ins: StandIns = NONE_STANDS_IN,
) -> Schema:
    """Find out what the columns of a training table are.

    Identifiers and free text are left out, unless they are declared a category.

    Parameters
    ----------
    table : Table
        The training rows.
    overrides : mapping of str to str, str, or None
        A mapping declares the columns it names: by a kind that fits the data, by an
        example of how its numbers are written, such as ``"1.234,5"``, by both,
        ``"count:1.234,5"``, by the pattern of its dates, such as ``"%d/%m/%Y"``, or by
        ``"ignore"``, to leave it out. One kind for all, such as ``"real"``, is the coding of every
        column that can take it.
    is_normal : array of bool, or None
        The rows that are not labelled anomalies: whether a column varies is judged by them. None
        stands for all rows.
    problems : mapping of str to UserError, or None
        Errors of columns found before, which are raised together with those found here.
    stand_ins : StandIns
        What stands for missing cells.

    Raises
    ------
    UserError
        If the table has no row, `overrides` names an unknown column or kind or contradicts
        the data, a column may be read in two ways, or none is left to learn from.
    """
    if not table.n_rows:
        raise UserError("The training table must have rows; got 0. Give at least one.")
    found = dict(problems or {})
    schema = find_columns(table, overrides, is_normal, found, stand_ins)
    raise_all([found[name] for name in dict.fromkeys([*table.names, *found]) if name in found])
    if not schema.columns:
        left = list_some(f"{name!r} ({reason})" for name, _, reason in schema.left_out)
        raise UserError(
            f"The training table must have a column to learn from; none is left: {left}."
        )
    return schema


def find_columns(
    table: Table,
    overrides: Mapping[str, str] | str | None,
    is_normal: Bools | None,
    problems: dict[str, UserError],
    stand_ins: StandIns = NONE_STANDS_IN,
) -> Schema:
    """Find out what columns are, as `infer_schema` does, but collect errors in `problems`.

    The schema lacks the columns that have one, and may have no column at all.
    """
    normal = np.ones(table.n_rows, np.bool_) if is_normal is None else is_normal
    declared = read_declarations(table.names, overrides or {}, stand_ins, problems)
    table = table.without(stand_ins.of)
    forms = find_forms(table, declared, problems)
    columns: list[Column] = []
    left_out: list[LeftOut] = []
    for position, name in enumerate(table.names):
        if name in problems:
            continue
        with noting(problems, name):
            found = _find(table, name, declared[name], forms.get(name), normal)
            if isinstance(found, str):
                left_out.append(LeftOut(name, position, found))
            else:
                columns += (replace(column, missing=declared[name].missing) for column in found)
    if columns:
        check_names([column.name for column in columns], table.n_rows)
    return Schema(tuple(columns), tuple(left_out))


def _find(
    table: Table, name: str, said: Declared, form: NumberForm | DateForm | None, normal: Bools
) -> list[Column] | str:
    """Return what the model reads from a column: several columns from dates; or why nothing."""
    cells = table.cells[name]
    if isinstance(form, DateForm):
        return _read_from_dates(name, cells, form, normal, table.temporal.get(name, ""))
    is_category = said.kind is Kind.CATEGORY or name in table.categorical
    if form is not None and is_text(cells) and not is_category:
        numbers = check_finite(name, form.read(name, cells, is_training=True)[0])
        cells = without(numbers, said.missing)
    values = ColumnValues(cells, normal)
    if reason := IGNORED if said.is_ignored else why_left_out(values, said):
        return reason
    return [replace(_make(name, values, said), form=form or PLAIN)]


def why_left_out(values: ColumnValues, said: Declared) -> str:
    """Say why nothing can be learned from a column; empty if something can.

    An identifier or free text has a value of its own in most rows; unless the user says what it is.
    """
    if said.kind is not None or not is_text(values.cells):
        return ""
    texts = values.texts()
    n_cells = texts.total()
    if n_cells <= MIN_TEXTS_TO_JUDGE or len(texts) <= MAX_DISTINCT_SHARE * n_cells:
        return ""
    n_words = sum(len(text.split()) * n for text, n in texts.items()) / n_cells
    n_figures = sum(
        n for text, n in texts.items() if not text.isdecimal() and bool(_FIGURES.fullmatch(text))
    )
    what = "free text" if n_words >= MIN_WORDS else "an identifier"
    if n_figures > MAX_DISTINCT_SHARE * n_cells:
        what = "an identifier, or numbers or dates in more than one form"
    return f"{what}: {len(texts)} different texts in {n_cells} cells"


def _make(name: str, values: ColumnValues, said: Declared) -> Column:
    """Make a column: as declared, or as found, scored in the way that is declared for all."""
    if said.kind is not None:
        return _make_declared(name, values, said.kind)
    kind, coding = _infer_kind(values)
    if said.coding in CODINGS[kind] and not _breach(said.coding, values):
        coding = said.coding
    return _with_levels(name, kind, coding, values)


def _read_from_dates(
    source: str, cells: Cells, form: DateForm, normal: Bools, zone: str
) -> list[Column]:
    """Make the columns that are read from a column of dates."""
    moments, _ = form.read(source, as_text(cells), is_training=True)
    columns = []
    for part in date_parts(source, form, moments, normal, zone):
        values = ColumnValues(part.cells(moments), normal)
        kind = Kind.CATEGORY if is_text(values.cells) else Kind.REAL
        varies = kind is Kind.REAL and not hardly_varies(values.usual)
        coding = Kind.REAL if varies else Kind.CATEGORY
        columns.append(replace(_with_levels(part.name, kind, coding, values), date=part))
    return columns


def takes_few_values(values: Values) -> bool:
    """Whether numbers are integers >= 0 with few values that are each frequent.

    Such values are scored one by one: no bell or Poisson curve is as narrow as a scale from 1 to
    5, and a value that was never seen is odd wherever it lies.
    """
    enough_rows = values.n >= MIN_ROWS_PER_VALUE * values.n_distinct
    return enough_rows and values.low >= 0 and values.are_integers and not _are_round(values)


def _are_round(values: Values) -> bool:
    """Whether integers are amounts, all multiples of a hundred: 250,000 may come between them."""
    return math.gcd(*map(int, values.few or ())) >= ROUND


def hardly_varies(values: Values) -> bool:
    """Whether numbers are all the same except for fewer than ten, and a tenth.

    No curve can be learned from so few others, and a single value has no unit in which another
    could be far away. So values are scored one by one, and a new value is the odder the more rows
    there were.
    """
    few = values.few
    if few is None:
        return False
    n_others = values.n - max(few.values(), default=0)
    enough_rows = values.n >= MIN_ROWS_PER_VALUE * max(len(few), n_others)
    return n_others == 0 or (n_others < MIN_ROWS_PER_VALUE and enough_rows)


def looks_like_counts(values: Values) -> bool:
    """Whether numbers, three of them distinct, are plausibly Poisson.

    They are if they are integers from 0 or 1 on whose variance is not far above their mean;
    others (years, codes, sums of money) are better served by a mixture of Gaussians.
    """
    # The bound on the maximum only keeps the variance from overflowing.
    is_candidate = values.low in (0, 1) and values.high <= MAX_COUNT and values.are_integers
    return is_candidate and values.variance <= MAX_DISPERSION * values.mean


def is_strongly_skewed(values: Values) -> bool:
    """Whether numbers, not all equal, have a long right tail.

    Small integers never do: their few values are better served by a mixture of Gaussians.
    """
    if values.high <= LARGE_INTEGER and values.are_integers:
        return False
    return values.skewness > MIN_SKEWNESS


def _make_declared(name: str, values: ColumnValues, coding: Kind) -> Column:
    """Make the column that the user declared, if it fits the data."""
    cells = values.cells
    if coding is not Kind.CATEGORY and is_text(cells):
        row = int(np.argmax(PLAIN.parse(cells)[1]))
        raise UserError(
            column=name,
            row=row,
            expected="numbers",
            got=cells[row],
            remedy=f"Correct it, or declare {declaration(name, Kind.CATEGORY.value)}.",
        )
    if breach := _breach(coding, values):
        found, first = breach
        raise UserError(
            f"Column {name!r} is declared {coding.value!r} but has {found}",
            column=name,
            row=first,
            remedy=f"Declare {declaration(name, Kind.REAL.value)} or drop those rows.",
        )
    kind, usual = _infer_kind(values)
    can_take = coding is usual or coding in CODINGS[kind]
    return _with_levels(name, kind if can_take else coding, coding, values)


def _with_levels(name: str, kind: Kind, coding: Kind, values: ColumnValues) -> Column:
    """Make a column with the levels that its cells have.

    Those of a column that hardly varies are the values of normal rows: what labelled anomalies
    alone have stays odd.
    """
    if kind is Kind.BINARY:
        found = tuple(values.everyone.few or ())
        # A declared binary may show only one of its values, which then is 0 or 1: see _breach.
        return Column(name, kind, coding, found if len(found) == 2 else (0.0, 1.0))
    if coding is not Kind.CATEGORY:
        return Column(name, kind, coding)
    counts = values.texts(usual=kind is Kind.REAL)
    if kind is Kind.COUNT:  # the integers of counts are written out, however many digits they have
        counts = Counter({str(int(float(text))): n for text, n in counts.items()})
    return Column(name, kind, coding, most_frequent(counts))


def _infer_kind(values: ColumnValues) -> tuple[Kind, Kind]:
    """Return what the cells are, and how to score them."""
    if is_text(values.cells) or missing(values.cells).all():  # without a value it has no type
        return Kind.CATEGORY, Kind.CATEGORY
    found = values.everyone
    if found.n_distinct > 2 and takes_few_values(found):
        return Kind.COUNT, Kind.CATEGORY
    if hardly_varies(values.usual):
        return Kind.REAL, Kind.CATEGORY
    kind = Kind.REAL
    if found.n_distinct == 2:
        kind = Kind.BINARY
    elif found.n_distinct > 2 and looks_like_counts(found):
        kind = Kind.COUNT
    elif found.n_distinct > 2 and found.low >= 0 and is_strongly_skewed(found):
        kind = Kind.POSITIVE
    return kind, kind


def _breach(coding: Kind, values: ColumnValues) -> tuple[str, int | None] | None:
    """Say how values contradict a coding, and in which row first; None if they do not."""
    if coding is Kind.BINARY:
        return _breach_of_binary(values)
    for adjective, is_impossible in impossible_numbers(coding, values.cells).items():
        if n := int(is_impossible.sum()):
            return f"{n} {adjective} value{'s' * (n > 1)}", int(is_impossible.argmax())
    return None


def _breach_of_binary(values: ColumnValues) -> tuple[str, int | None] | None:
    """Say how values contradict that they are two, or 0 and 1; None if they do not."""
    few = values.everyone.few
    if few is not None and (len(few) == 2 or set(few) <= {0.0, 1.0}):
        return None
    if few is not None and len(few) == 1:
        return f"the value {number_text(*few)} only", None
    present = np.flatnonzero(~missing(values.cells))
    found, first = np.unique(values.cells[present], return_index=True)
    return f"{len(found)} different values", int(present[np.sort(first)[2]])
