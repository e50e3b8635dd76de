"""What a table holds that a fit cannot judge: columns, rows and labels for the user to look at."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import final

import numpy as np

from fewlier.errors import declaration, parameter
from fewlier.process.escape import list_some
from fewlier.table.arrays import Bools, Codes, Floats, Ints
from fewlier.table.cells import Cells, is_text, missing, number_text
from fewlier.table.column_values import MAX_COUNTED_VALUES, are_integers
from fewlier.table.declarations import IGNORE
from fewlier.table.frame import Table, rows_text
from fewlier.table.labels import ANOMALY, NORMAL
from fewlier.table.schema import Schema

# With fewer rows, numbers may never repeat, and columns may separate labels, by chance.
MIN_ROWS = 20
# A column is filled for anomalies if at most so many others, and so many of them, fill it too.
_FEW_OTHERS = 0.05
_MIN_ANOMALIES, _MAX_LEVELS = 5, 2
# With as many labelled normal rows, rows without a label, which may hide anomalies, do not count.
_ENOUGH_LABELLED = 200
# Rows in which extreme values and repeated numbers are looked for; of more, so many.
_N_EXAMINED = 10_000
# A stand-in is in so many of the rows, and this many other values are not.
_OFTEN, _MIN_OTHERS = 0.01, 10
# Numbers and texts that people write where they have no value, however few.
_STAND_INS = (-9.0, -99.0, -999.0, -9999.0, 999.0, 9999.0, 99999.0, 999999.0)
_STAND_IN_TEXTS = frozenset(
    {"?", "-", "--", ".", "missing", "n.a.", "na", "nil", "none", "null", "unknown", "undefined"}
)
_SPECIAL = re.compile(r"-[1-9]0*|-?(9{2,}|8{2,}|7{2,})|-?9+[0-9]")
# The share of numbers that differ from all others in a column of identifiers.
_NEARLY_ALL, _MANY_EQUAL = 0.99, 5
_ID_NAME = re.compile(
    r"(?:(?<![a-z])(?i:u?u?id|guid|key|index|idx|nr|no|number|num|row|zip)|[a-z](?:[UI]?ID|Id|Nr|No|Number))"
    r"(?![a-z])|#"
)
# Digits as dates, and moments from 2000 to 2030, in seconds since 1970 or parts of them.
_FIRST_DIGITS, _LAST_DIGITS = 19_000_101, 21_001_231
_FIRST_SECOND, _LAST_SECOND = 946_684_800, 1_893_456_000
_UNITS = {1: "seconds", 1000: "milliseconds", 1_000_000: "microseconds"}


@final
class Topic(Enum):
    """What a finding is about: what is claimed of its columns, and what to do."""

    LEAK = (
        "may give the label away",
        "Was it known before the label? What was written afterwards leaks the label, and new rows "
        "lack it. Then leave it out",
    )
    STAND_IN = "may stand for missing cells", "If so, declare it"
    NUMBERING = "may number or name the rows", "Leave it out, unless it is a clock"
    NAMING = "may name the rows", "If it is an identifier, leave it out"
    DIGITS = "may be dates", "If so, declare it"
    EPOCH = "may be moments", "If so, convert them to dates: as numbers, later rows look odd"
    ROWS = "", ""

    def advise(self, columns: Iterable[str], said: str) -> str:
        """Say of columns, listed already, what is claimed and what to do."""
        columns, (claim, advice) = list(columns), self.value
        more = " and so on" if said and len(columns) > 1 else ""
        return f"{list_some(columns)} {claim}. {advice}{': ' if said else ''}{said}{more}."


@final
@dataclass(frozen=True)
class Finding:
    """One thing to look at.

    Parameters
    ----------
    topic : Topic
        What it is about.
    column : str
        The user's column; empty for rows and labels, of which `found` says all.
    found : str
        What was found in it.
    said : str
        What to declare of it, if it is as it seems.
    """

    topic: Topic
    column: str
    found: str
    said: str = ""

    @property
    def remark(self) -> str:
        """What was found, and what it may be."""
        return f"{self.found}; {self.topic.value[0]}"


def notes_on(findings: Sequence[Finding], *, with_found: bool = True) -> tuple[str, ...]:
    """Return one line for each topic; `with_found` says of each column what was found in it."""
    notes = [finding.found for finding in findings if finding.topic is Topic.ROWS]
    for topic in (topic for topic in Topic if topic is not Topic.ROWS):
        own = [finding for finding in findings if finding.topic is topic]
        if own:
            columns = [f"{f.column!r}{f' ({f.found})' if with_found else ''}" for f in own]
            notes.append(topic.advise(dict.fromkeys(columns), _declared(own)))
    return tuple(notes)


def _declared(findings: Sequence[Finding]) -> str:
    """Write what declares the first of some findings of one topic, or all if they are alike."""
    first = findings[0]
    if first.topic is not Topic.STAND_IN:
        return first.said and declaration(first.column, first.said)
    same = {finding.said for finding in findings} == {first.said} and len(findings) > 1
    return parameter("missing", first.said, None if same else first.column)


def find(table: Table, schema: Schema, codes: Codes) -> tuple[Finding, ...]:
    """Look for what the user should know before trusting a fit.

    Parameters
    ----------
    table : Table
        Training rows in the form of `schema`.
    codes : array of int8 (n,)
        Their labels.
    """
    ids = table.ids()
    is_anomaly, is_normal = codes == ANOMALY, codes == NORMAL
    of_both = is_anomaly & np.isin(ids, ids[is_normal]) | is_normal & np.isin(ids, ids[is_anomaly])
    found = [*_find_in_rows(table, codes, ids, of_both)]
    # A row with both labels says nothing of what tells them apart.
    compared, others = ~of_both, "other"
    if is_normal.sum() >= _ENOUGH_LABELLED:
        compared, others = compared & (is_anomaly | is_normal), "normal"
    firsts = np.sort(np.unique(ids, return_index=True)[1])  # a copy has the number of its row
    seen = set[str]()
    for column in schema.columns:
        cells = table.cells[column.name]
        of_column = [_leak(column.source, cells[compared], is_anomaly[compared], others)]
        if column.date is None:
            of_column += _of_values(column.name, cells, firsts)
        if column.source not in seen:  # a date makes several columns
            found += filter(None, of_column)
        seen.add(column.source)
    return tuple(found)


def _find_in_rows(table: Table, codes: Codes, ids: Ints, of_both: Bools) -> Iterator[Finding]:
    n, n_anomalies = table.n_rows, int((codes == ANOMALY).sum())
    if MIN_ROWS <= n > n_anomalies > n / 2:
        yield Finding(
            Topic.ROWS,
            "",
            f"{n_anomalies:,} of the {n:,} rows are labelled anomalies, more than are not: is 1 "
            "the anomaly? If 1 means normal, exchange the labels.",
        )
    if len(table.cells) > 1:
        n_empty = int(np.logical_and.reduce([*map(missing, table.cells.values())]).sum())
        if n_empty:
            yield Finding(
                Topic.ROWS,
                "",
                f"{rows_text(n_empty)} {'has' if n_empty == 1 else 'have'} no cell with a value, "
                "and what is not labelled counts as normal: drop them.",
            )
    both = np.flatnonzero(of_both & (codes == ANOMALY))
    if len(both):
        twin = np.flatnonzero((codes == NORMAL) & (ids == ids[both[0]]))[0]
        yield Finding(
            Topic.ROWS,
            "",
            f"{len(both):,} of the {n_anomalies:,} anomalies "
            f"{'equals' if len(both) == 1 else 'equal'} a row labelled normal in every column, "
            f"such as rows {both[0]} and {twin}: no score can tell them apart. Correct the "
            "labels, or add a column in which they differ.",
        )


def _leak(name: str, cells: Cells, is_anomaly: Bools, called: str) -> Finding | None:
    """Return what says that a column may have been written after the label.

    Rows that are no anomalies are called so.
    """
    n_anomalies = int(is_anomaly.sum())
    if not n_anomalies or len(cells) - n_anomalies < MIN_ROWS:
        return None
    known = ~missing(cells)
    others, own = cells[known & ~is_anomaly], cells[known & is_anomaly]
    of_all = f"of {n_anomalies:,} anomalies"
    found = ""
    n_others = len(cells) - n_anomalies
    if len(own) and len(others) <= _FEW_OTHERS * min(len(own), n_others):
        rest = (
            f"{len(others):,} of {n_others:,} {called} rows" if len(others) else f"no {called} row"
        )
        found = f"filled in {len(own):,} {of_all} and in {rest}"
    elif len(others) >= MIN_ROWS and (others == others[0]).all():
        n_different = int((own != others[0]).sum())
        value = others[0] if is_text(others) else number_text(others[0])
        if n_different:
            found = f"always {value} in {called} rows, but not in {n_different:,} {of_all}"
    elif n_anomalies >= _MIN_ANOMALIES and not known[is_anomaly].any() and known[~is_anomaly].all():
        found = f"missing in all {n_anomalies:,} anomalies and in no {called} row"
    elif len(own) == n_anomalies >= _MIN_ANOMALIES and _separates(own, others):
        found = f"alone separates the {n_anomalies:,} anomalies from all {called} rows"
    return Finding(Topic.LEAK, name, found, IGNORE) if found else None


def _separates(own: Cells, others: Cells) -> bool:
    """Whether anomalies have one value or two that no other row has, or all lie beyond the others.

    Numbers must be few on both sides to say the former: rows of one origin share odd numbers. A
    few anomalies lie beyond the others because they are odd; it takes many to say the latter.
    """
    levels = set(own[:MIN_ROWS].tolist())
    if len(levels) <= _MAX_LEVELS and (
        is_text(own) or len(np.unique(others)) <= MAX_COUNTED_VALUES
    ):
        return len(set(own.tolist())) <= _MAX_LEVELS and not np.isin(others, [*levels]).any()
    if is_text(own) or len(np.unique(own)) < MIN_ROWS:
        return False
    return bool(own.min() > others.max() or own.max() < others.min())


def _of_values(name: str, cells: Cells, firsts: Ints) -> Iterator[Finding]:
    """Look at the values of a column; `firsts` are the rows that are no copies of earlier ones."""
    known = cells[~missing(cells)]
    if is_text(cells):
        for text, n in _stand_in_texts(Counter(known.tolist())):
            yield _stand_in(name, text, n, len(cells))
        return
    if len(known) < MIN_ROWS:
        return
    for number in _stand_ins(known):
        yield _stand_in(name, number_text(number), int((known == number).sum()), len(cells))
    if moment := _as_moments(name, known):
        yield moment
    elif found := _numbering(name, np.extract(~missing(cells[firsts]), cells[firsts])):
        yield Finding(*found, IGNORE)


def _stand_in(name: str, text: str, n: int, n_rows: int) -> Finding:
    return Finding(Topic.STAND_IN, name, f"{text} in {rows_text(n)}, {n / n_rows:.1%}", text)


def _stand_in_texts(counts: Counter[str]) -> Iterator[tuple[str, int]]:
    """Yield texts that stand for gaps: those that say so, and one number among words."""
    numbers = [text for text in counts if any(map(str.isdigit, text))]
    for text, n in counts.items():
        says_so = text.strip().casefold() in _STAND_IN_TEXTS
        is_alone = numbers == [text] and text.isdigit() and len(counts) > 2
        if says_so or is_alone:
            yield text, n


def _stand_ins(known: Floats) -> Iterator[float]:
    """Yield extreme numbers far from all others that are in many rows, or that people use."""
    values, counts = np.unique(_examined(known), return_counts=True)
    for sign in (1, -1):  # from below, and from above
        numbers, n = (sign * values, counts) if sign == 1 else (sign * values[::-1], counts[::-1])
        while len(numbers) > 2:
            gap, others, n_others = numbers[1] - numbers[0], numbers[1:], n[1:]
            is_often = n[0] > _OFTEN * n.sum() and len(others) >= _MIN_OTHERS
            is_other = sign == 1 and numbers[0] < 0 <= others[0]
            # A measurement may well be 0, which is as low as it can be.
            is_measured = numbers[0] == 0 and bool((others != others.round()).any())
            width = gap / 2 if is_measured else gap
            is_far = is_often and _is_far(width, others, n_others, n[0], has_other_sign=is_other)
            is_used = n[0] > 1 and sign * numbers[0] in _STAND_INS
            is_beyond = is_used and gap > others[-1] - others[0]
            is_meant = _is_special(sign * numbers[0], sign * others[0])
            if not (is_far and is_meant) and not is_beyond:
                break
            yield float(sign * numbers[0])
            numbers, n = others, n_others


def _is_far(gap: float, others: Floats, n: Ints, n_equal: int, *, has_other_sign: bool) -> bool:
    """Whether a gap before other numbers is wide beside them.

    It is twice as wide as a step in the nearer half of them, a third as wide as that half, and as
    wide as what as many rows span behind it, or a quarter of them. A number below zero, where
    others are not, need only be beyond the steps, or in twice as many rows as any of the next.
    """
    so_far = np.cumsum(n)
    near = others[np.searchsorted(so_far, min(n_equal, so_far[-1] / 4))] - others[0]
    middle = np.searchsorted(so_far, so_far[-1] / 2)
    n_steps = min(middle + 1, len(others) - 1)
    step = (others[n_steps] - others[0]) / n_steps
    is_piled = has_other_sign and n_equal > 2 * n[:MIN_ROWS].max()
    is_wide = has_other_sign or gap > max(near, (others[middle] - others[0]) / 3)
    return bool(is_piled or (is_wide and gap > 2 * step))


def _is_special(number: float, nearest: float) -> bool:
    """Whether a number is one that people write for none: 0, -1, -200, 99, 888, 997."""
    text = number_text(number)
    return number == 0 or number < 0 <= nearest or bool(_SPECIAL.fullmatch(text))


def _as_moments(name: str, known: Floats) -> Finding | None:
    """Return what says that numbers are dates in digits, or seconds since 1970."""
    low, high = known.min(), known.max()
    if low == high or not are_integers(known):
        return None
    if low >= _FIRST_DIGITS and high <= _LAST_DIGITS:
        month, day = known // 100 % 100, known % 100
        if ((month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)).all():
            found = f"all like {number_text(known[0])}"
            return Finding(Topic.DIGITS, name, found, "%Y%m%d")
    for per_second, unit in _UNITS.items():
        if low >= _FIRST_SECOND * per_second and high <= _LAST_SECOND * per_second:
            days = [datetime.fromtimestamp(x / per_second, UTC).date() for x in (low, high)]
            found = f"as {unit} since 1970 from {days[0]} to {days[1]}"
            return Finding(Topic.EPOCH, name, found)
    return None


def _numbering(name: str, known: Floats) -> tuple[Topic, str, str] | None:
    """Say whether numbers count the rows, or name them by numbers of which hardly two are equal."""
    if not are_integers(known):
        return None
    some, span = _examined(known), float(np.ptp(known)) + 1
    n_equal = len(some) - len(np.unique(some))
    if n_equal > (1 - _NEARLY_ALL) * len(some):
        return None
    if (np.diff(known) >= 0).all() and span <= 1.1 * len(known):
        return Topic.NUMBERING, name, "counts the rows"
    n_by_chance = len(some) ** 2 / (2 * span)  # of numbers drawn from as many, so many are equal
    if _ID_NAME.search(name):
        return Topic.NUMBERING, name, "nearly every number differs"
    is_surprising = n_by_chance > _MANY_EQUAL * (n_equal + 1)
    return (Topic.NAMING, name, "nearly every number differs") if is_surprising else None


def _examined(numbers: Floats) -> Floats:
    """Return some of very many numbers, from all over the table."""
    return numbers[:: max(len(numbers) // _N_EXAMINED, 1)]
