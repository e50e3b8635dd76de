"""The label column of a table: which of its values mean anomaly, normal or neither."""

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from itertools import islice
from typing import final

import numpy as np

from fewlier.errors import LabelWarning, UserError, parameter, warn
from fewlier.process.escape import suggest
from fewlier.table.arrays import Codes, Ints
from fewlier.table.cells import MISSING, cell_text
from fewlier.table.frame import rows_text
from fewlier.table.labels import ANOMALY, NORMAL, UNLABELLED, WORDS, Labels, read_labels

_TRUTH = {"1": 1.0, "true": 1.0, "0": 0.0, "false": 0.0, "-1": -1.0}
_TAKEN = {
    ANOMALY: "Values not named as normal count as anomalies, each as a kind",
    NORMAL: "Values not named as anomalies count as normal",
    UNLABELLED: "Values not named leave their rows unlabelled",
}
MAX_KINDS = 1000
"""Most kinds of anomalies of a column of labels."""
_MAX_SPELLINGS = 100 * MAX_KINDS  # from which on that is found out before the end
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

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from fewlier import AnomalyDetector
    >>> from fewlier.table.label_column import LabelColumn
    >>> column = LabelColumn("status", normal=("paid",))
    >>> np.asarray(column.read(["paid", "chargeback", None]))
    array([ 0.,  1., nan])
    >>> amount = np.random.default_rng(0).normal(50, 10, 200)
    >>> orders = pd.DataFrame({"amount": amount, "status": "paid"})
    >>> orders.loc[190:] = [400.0, "chargeback"]
    >>> AnomalyDetector(random_state=0).fit(orders, column).summary_.labelled_kinds
    {'chargeback': 10}
    """

    name: str
    anomaly: tuple[str, ...] = ()
    normal: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse missing values, and values on both sides."""
        if "" in self.meanings:
            raise UserError(
                "A label that means anomaly or normal must be a value; got a missing one. Rows "
                "without a label are unlabelled anyway."
            )
        both = set(map(_folded, self.anomaly)) & set(map(_folded, self.normal))
        if both:
            raise UserError(f"A label cannot mean both anomaly and normal; got {min(both)!r}.")

    @property
    def meanings(self) -> dict[str, int]:
        """What each named value means, by its text in lower case."""
        meanings = dict.fromkeys(map(_folded, self.anomaly), ANOMALY)
        return meanings | dict.fromkeys(map(_folded, self.normal), NORMAL)

    def meaning(self, name: str) -> str:
        """Return what a named value means, in words."""
        return WORDS[self.meanings[_folded(name)]]

    @property
    def rest(self) -> int:
        """What the values mean that are not named, where some are."""
        if self.anomaly and self.normal:
            return UNLABELLED
        return NORMAL if self.anomaly else ANOMALY

    def check(self, columns: Sequence[str]) -> None:
        """Refuse a table without this column."""
        if self.name not in columns:
            raise UserError(
                f"the label column must be among its columns; got {self.name!r}. "
                f"{suggest(self.name, columns)}",
                column=self.name,
            )

    def read(self, cells: Iterable[object], *, is_complete: bool = True) -> Labels:
        """Return the labels of a whole column, such as ``frame["class"]``.

        Values that may be slips give a `LabelWarning`; `Labels.notes` has the rest. The labels of
        a fit are complete: every named value must occur. Other tables need not be.
        """
        reader = LabelReader(self)
        labels = reader.read(reader.add(cells), is_complete=is_complete)
        for doubt in labels.doubts:
            warn(doubt, LabelWarning)
        return labels


@final
class LabelReader:
    """Reads a label column batch by batch, and keeps each value once, not once a row."""

    def __init__(self, column: LabelColumn) -> None:
        self.column = column
        self._places: dict[str | None, int] = {}  # of each spelling; None is a missing label
        self._n_rows: Counter[int] = Counter()  # with the spelling of each place

    def add(self, cells: Iterable[object], index: Ints | None = None) -> Ints:
        """Read further cells, and return the place of each row's spelling, which `read` takes.

        Values other than 1 and 0 need some to be named. With `index`, the cells are the different
        ones, and it says which of them each row has.
        """
        texts = (_known_text(c) if isinstance(c, Hashable) else label_text(c) for c in cells)
        found = [self._places.setdefault(text, len(self._places)) for text in texts]
        rows = np.array(found, dtype=np.int64)
        rows = rows if index is None else rows[index]
        n_rows = np.bincount(rows, minlength=1)
        self._n_rows.update(dict(enumerate(n_rows.tolist())))
        unknown = [t for t in self._places if t is not None and t.casefold() not in _TRUTH]
        if unknown and not self.column.meanings:
            raise UserError(
                f"Label column {self.column.name!r} must hold 1 and 0, or true and false, or "
                f"nothing where the label is unknown; got {unknown[0]!r}",
                column=self.column.name,
                row=int(np.argmax(rows == self._places[unknown[0]])),
                got=unknown[0],
                remedy="Say which values mean anomaly, "
                f"{parameter('anomaly', ['VALUE'])}, or which mean normal, "
                f"{parameter('normal', ['VALUE'])}.",
            )
        if len(self._places) > _MAX_SPELLINGS:
            self._check_kinds(self._kinds())
        return rows

    @property
    def counts(self) -> dict[str, int]:
        """Rows of each value, the most frequent first, as it is spelled most often."""
        spellings: dict[str, Counter[str]] = defaultdict(Counter)
        for text, place in self._places.items():
            if text is not None:
                spellings[text.casefold()][text] = self._n_rows[place]
        totals = {count.most_common(1)[0][0]: count.total() for count in spellings.values()}
        return dict(sorted(totals.items(), key=lambda total: -total[1]))

    @property
    def codes(self) -> Codes:
        """What the spelling of each place means, as far as has been read."""
        meanings, rest = self.column.meanings, self.column.rest
        if not meanings:
            codes = {value: int(number) for value, number in _TRUTH.items()}
            meanings, rest = codes, UNLABELLED
        values = (text and text.casefold() for text in self._places)
        return np.array([meanings.get(v, rest) if v else UNLABELLED for v in values], np.int8)

    def _kinds(self) -> list[str]:
        """Name the values that mean anomaly, the most frequent first."""
        meanings, rest = self.column.meanings, self.column.rest
        return [v for v in self.counts if meanings.get(v.casefold(), rest) == ANOMALY]

    def _check_kinds(self, kinds: Sequence[str]) -> None:
        if len(kinds) > MAX_KINDS:
            raise UserError(
                f"label column {self.column.name!r} must name at most {MAX_KINDS:,} kinds of "
                f"anomalies; got {len(kinds):,}, such as {_quoted(kinds[0])}. Give the column that "
                "says what is normal, or name the values that mean anomaly.",
                column=self.column.name,
            )

    def read(self, rows: Ints, *, is_complete: bool = True) -> Labels:
        """Return the labels of rows, given by the places of their spellings.

        A complete table must have every value that is named; for any other a note is enough.
        """
        column, counts = self.column, self.counts
        values = [text and text.casefold() for text in self._places]
        if not counts:
            n_rows = self._n_rows.total()
            note = f"Label column {column.name!r} is empty: all {n_rows} rows are unlabelled."
            return Labels(read_labels(None, len(rows)), notes=(note,))
        meanings = column.meanings
        if not meanings:
            numbers = np.array([_TRUTH[value] if value else np.nan for value in values])
            return Labels(read_labels(numbers, len(numbers))[rows])
        others = {value: n for value, n in counts.items() if value.casefold() not in meanings}
        absent = [n for n in (*column.anomaly, *column.normal) if _folded(n) not in values]
        if is_complete and absent:
            raise _absent(column, absent[0], others)
        kinds = self._kinds()
        self._check_kinds(kinds)
        place = {kind.casefold(): number for number, kind in enumerate(kinds)}
        kind_of = np.array([place.get(value or "", -1) for value in values], dtype=np.int64)
        notes, doubts = _notes(column, others, absent), tuple(_doubts(column, others))
        return Labels(self.codes[rows], tuple(kinds), kind_of[rows], notes, doubts)


def _notes(
    column: LabelColumn, others: Mapping[str, int], absent: Sequence[str]
) -> tuple[str, ...]:
    """Say what values without a name count as, and which named ones are absent."""
    where = f"label column {column.name!r}"
    notes = [f"{_TAKEN[column.rest]}, in {where}: {listed_counts(others)}."] if others else []
    if absent:
        values = ", ".join(f"{_quoted(name)} ({column.meaning(name)})" for name in absent)
        notes.append(f"No row of {where} has {values}.")
    return tuple(notes)


def _doubts(column: LabelColumn, others: Mapping[str, int]) -> Iterator[str]:
    """Say which of these values may be slips of a named one."""
    for name in (*column.anomaly, *column.normal):
        for value in _slips(name, others):
            yield (
                f"Label {_quoted(value)} ({rows_text(others[value])}) is close to {_quoted(name)} "
                f"but counts as {WORDS[column.rest]}. If it is a slip, correct it, or name it as "
                f"{column.meaning(name)} too."
            )


def _absent(column: LabelColumn, name: str, others: Mapping[str, int]) -> UserError:
    """Return the error for a named value that no row has."""
    remedy = f"Name one of the others: {listed_counts(others)}." if others else "Leave it out."
    if close := _slips(name, others):
        remedy = f"Did you mean {_quoted(close[0])} ({rows_text(others[close[0]])})?"
    elif "," in name:
        remedy = f"Name each of several values by itself. {remedy}"
    return UserError(
        f"label column {column.name!r} does not hold {_quoted(name)}, named as "
        f"{column.meaning(name)}. {remedy}"
    )


def label_text(cell: object) -> str | None:
    """Return a cell as the text that labels are compared by; None where it is missing."""
    text = str(cell).lower() if isinstance(cell, bool | np.bool_) else cell_text(cell)
    return None if text in MISSING else text


@lru_cache(maxsize=1024, typed=True)
def _known_text(cell: Hashable) -> str | None:
    """Return `label_text`, which is slower, of a cell; most cells of a label column are alike."""
    return label_text(cell)


def listed_counts(counts: Mapping[str, int]) -> str:
    """Return values with their counts, the first few of them: ``'normal.' 9,000; 'smurf.' 200``."""
    shown = [f"{_quoted(value)} {n:,}" for value, n in islice(counts.items(), _MAX_VALUES)]
    more = [*counts.values()][_MAX_VALUES:]
    if more:
        shown.append(f"and {len(more):,} more values with {rows_text(sum(more))}")
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
