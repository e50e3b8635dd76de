"""The label column of a table: which of its values mean anomaly, normal or neither."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from typing import final

import numpy as np

from fewlier.arrays import Ints
from fewlier.errors import CellError, LabelWarning, UserError, warn
from fewlier.shown import suggest
from fewlier.table.cells import MISSING, cell_text
from fewlier.table.labels import ANOMALY, NORMAL, UNLABELLED, Labels, read_labels

_TRUTH = {"1": 1.0, "true": 1.0, "0": 0.0, "false": 0.0, "-1": -1.0}
_MEANINGS = {ANOMALY: "an anomaly", NORMAL: "normal", UNLABELLED: "unlabelled"}
_TAKEN = {
    ANOMALY: "Values not named as normal count as anomalies, each as a kind",
    NORMAL: "Values not named as anomalies count as normal",
    UNLABELLED: "Values not named leave their rows unlabelled",
}
MAX_KINDS = 1000
"""With more kinds of anomalies, a column is not taken for labels."""
# From this similarity on, of 0 to 1, a value may be a slip of another.
_ALIKE = 0.8
# Values that a message lists, and characters of each.
_MAX_VALUES, _MAX_TEXT = 10, 60


@final
@dataclass(frozen=True)
class LabelColumn:
    """A column of labels, and what its values mean.

    Cells are 1 or true, 0 or false, or empty where nothing is known, unless values are named.
    With `anomaly` alone other values are normal; with `normal` alone they are anomalies, each a
    kind of its own; with both they leave their rows unlabelled. Values are compared without
    spaces around them and ignoring case. The value of an anomaly is its kind.
    """

    name: str
    anomaly: tuple[str, ...] = ()
    normal: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse missing values, and values on both sides."""
        for _, value in self.named:
            if label_text(value) is None:
                raise UserError(
                    f"A label that means anomaly or normal must be a value; got {value!r}, which "
                    "stands for a missing one. Rows without a label are unlabelled anyway."
                )
        both = set(map(_folded, self.anomaly)) & set(map(_folded, self.normal))
        if both:
            raise UserError(f"A label cannot mean both anomaly and normal; got {min(both)!r}.")

    @property
    def named(self) -> list[tuple[str, str]]:
        """Each value that is named, after what it means."""
        return [("anomaly", value) for value in self.anomaly] + [
            ("normal", value) for value in self.normal
        ]

    @property
    def rest(self) -> int:
        """What the values mean that are not named, where some are."""
        if self.anomaly and self.normal:
            return UNLABELLED
        return NORMAL if self.anomaly else ANOMALY

    def codes(self, values: Iterable[str]) -> dict[str, int]:
        """Return what each value means, where some are named; values are in lower case."""
        known = dict.fromkeys(map(_folded, self.anomaly), ANOMALY)
        known |= dict.fromkeys(map(_folded, self.normal), NORMAL)
        return {value: known.get(value, self.rest) for value in values}

    def check(self, columns: Sequence[str]) -> None:
        """Refuse a table without this column."""
        if self.name not in columns:
            raise UserError(
                f"the label column must be among its columns; got {self.name!r}. "
                f"{suggest(self.name, columns)}"
            )

    def read(self, cells: Iterable[object], *, is_complete: bool = True) -> Labels:
        """Return the labels of a whole column, such as ``frame["class"]``.

        Values that may be slips give a `LabelWarning`; `Labels.notes` has the rest. The labels of
        a fit are complete: every named value must occur. Other tables need not be.
        """
        reader = LabelReader(self)
        reader.add(cells)
        labels = reader.read(is_complete=is_complete)
        for doubt in labels.doubts:
            warn(doubt, LabelWarning)
        return labels


@final
class LabelReader:
    """Reads a label column batch by batch, and keeps each value once, not once a row."""

    def __init__(self, column: LabelColumn) -> None:
        self.column = column
        self._places: dict[str, int] = {}  # of values without regard to case
        self._spellings: list[Counter[str]] = []  # of each value
        self._rows: list[Ints] = []  # the place of each row's value, -1 where it has none

    def add(self, cells: Iterable[object]) -> None:
        """Read further cells; values other than 1 and 0 need some to be named."""
        places = [self._count(cell) for cell in cells]
        self._rows.append(np.array(places, dtype=np.int64))
        unknown = {place for value, place in self._places.items() if value not in _TRUTH}
        if unknown and not self.column.named:
            row = next(row for row, place in enumerate(places) if place in unknown)
            raise CellError(
                f"Label column {self.column.name!r} must hold 1 and 0, or true and false, or "
                "nothing where the label is unknown; got "
                f"{next(iter(self._spellings[places[row]]))!r}",
                row,
                "Say which values mean anomaly, anomaly=['VALUE'], or which mean normal, "
                "normal=['VALUE'].",
            )

    def _count(self, cell: object) -> int:
        """Count a cell, and return the place of its value, -1 if it is empty."""
        text = label_text(cell)
        if text is None:
            return -1
        place = self._places.setdefault(text.casefold(), len(self._places))
        if place == len(self._spellings):
            self._spellings.append(Counter())
        self._spellings[place][text] += 1
        return place

    @property
    def counts(self) -> dict[str, int]:
        """Rows of each value, the most frequent first, as it is spelled most often."""
        totals = [(spelling.most_common(1)[0][0], spelling.total()) for spelling in self._spellings]
        return dict(sorted(totals, key=lambda total: -total[1]))

    def read(self, *, is_complete: bool = True) -> Labels:
        """Return the labels of all rows.

        A complete table must have every value that is named; for any other a note is enough.
        """
        column, rows = self.column, np.concatenate(self._rows)
        if not self._places:
            note = f"Label column {column.name!r} is empty: all {len(rows)} rows are unlabelled."
            return Labels(read_labels(None, len(rows)), notes=(note,))
        if not column.named:
            numbers = np.array([*(_TRUTH[value] for value in self._places), np.nan])
            return Labels(read_labels(numbers[rows], len(rows)))
        codes, counts = column.codes(self._places), self.counts
        named = {_folded(name) for _, name in column.named}
        others = {value: n for value, n in counts.items() if _folded(value) not in named}
        absent = [pair for pair in column.named if _folded(pair[1]) not in self._places]
        if is_complete and absent:
            raise _absent(column.name, *absent[0], others)
        kinds = [value for value in counts if codes[_folded(value)] == ANOMALY]
        if len(kinds) > MAX_KINDS:
            raise UserError(
                f"label column {column.name!r} must name at most {MAX_KINDS:,} kinds of anomalies; "
                f"got {len(kinds):,}, such as {_quoted(kinds[0])}. Give the column that says what "
                "is normal, or name the values that mean anomaly."
            )
        kind_of = np.full(len(codes) + 1, -1, dtype=np.int64)
        kind_of[[self._places[_folded(kind)] for kind in kinds]] = np.arange(len(kinds))
        by_place = np.array([*codes.values(), UNLABELLED], dtype=np.int8)
        notes, doubts = _notes(column, others, absent), tuple(_doubts(column, others))
        return Labels(by_place[rows], tuple(kinds), kind_of[rows], notes, doubts)


def _notes(
    column: LabelColumn, others: Mapping[str, int], absent: Sequence[tuple[str, str]]
) -> tuple[str, ...]:
    """Say what values without a name were taken for, and which named ones are absent."""
    taken = f"{_TAKEN[column.rest]}, in label column {column.name!r}"
    notes = [f"{taken}: {listed_counts(others)}."] if others else []
    if absent:
        values = ", ".join(f"{_quoted(name)} ({meaning})" for meaning, name in absent)
        notes.append(f"No row of label column {column.name!r} has {values}.")
    return tuple(notes)


def _doubts(column: LabelColumn, others: Mapping[str, int]) -> Iterator[str]:
    """Say which of these values may be slips of a named one."""
    for meaning, name in column.named:
        for value in _slips(name, others):
            yield (
                f"Label {_quoted(value)} ({_rows(others[value])}) is close to {_quoted(name)} but "
                f"counts as {_MEANINGS[column.rest]}. If it is a slip, correct it, or name it as "
                f"{meaning} too."
            )


def _absent(column: str, meaning: str, name: str, others: Mapping[str, int]) -> UserError:
    """Return the error for a named value that no row has."""
    close = _slips(name, others)
    remedy = f"Name one of the others: {listed_counts(others)}." if others else "Leave it out."
    if close:
        remedy = f"Did you mean {_quoted(close[0])} ({_rows(others[close[0]])})?"
    elif "," in name:
        remedy = f"Name each of several values by itself. {remedy}"
    return UserError(
        f"label column {column!r} does not hold {_quoted(name)}, named as {meaning}. {remedy}"
    )


def label_text(cell: object) -> str | None:
    """Return a cell as the text that labels are compared by; None where it is missing."""
    text = str(cell).lower() if isinstance(cell, bool | np.bool_) else cell_text(cell)
    return None if text in MISSING else text


def listed_counts(counts: Mapping[str, int]) -> str:
    """Return values with their counts, the first few of them: ``'normal.' 9,000; 'smurf.' 200``."""
    shown = [f"{_quoted(value)} {n:,}" for value, n in list(counts.items())[:_MAX_VALUES]]
    n_more = len(counts) - _MAX_VALUES
    if n_more > 0:
        n_rows = sum(list(counts.values())[_MAX_VALUES:])
        shown.append(f"and {n_more:,} more values with {_rows(n_rows)}")
    return "; ".join(shown)


def _folded(cell: object) -> str:
    return (label_text(cell) or "").casefold()


def _slips(name: str, values: Iterable[str]) -> list[str]:
    """Return the values that differ by little from a name.

    Those that differ in a digit, such as class1 and class2, are meant to differ.
    """
    # The most frequent come first; a column with more values does not hold labels.
    by_text = {_folded(value): value for value in islice(values, MAX_KINDS)}
    name = _folded(name)
    close = get_close_matches(name, by_text, n=max(len(by_text), 1), cutoff=_ALIKE)
    return [by_text[text] for text in close if re.findall(r"\d", text) == re.findall(r"\d", name)]


def _quoted(value: str) -> str:
    return repr(value if len(value) <= _MAX_TEXT else f"{value[: _MAX_TEXT - 1]}…")


def _rows(n: int) -> str:
    return "1 row" if n == 1 else f"{n:,} rows"
