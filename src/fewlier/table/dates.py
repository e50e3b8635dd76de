"""Dates and times as people write them: `DateForm`, and how the form of a column is recognised."""

from __future__ import annotations

import re
import reprlib
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, tzinfo
from itertools import islice
from typing import ClassVar, NamedTuple, final

import numpy as np

from fewlier.errors import UserError
from fewlier.modelfile.state import require
from fewlier.table.arrays import Bools, Floats
from fewlier.table.cells import Cells, missing
from fewlier.table.text_forms import MIN_READ_SHARE, Form, Recognised

ISO = "ISO 8601"
ISO_ZONED = "ISO 8601 with zone"
ISO_TIME = "ISO 8601 time"
"""Forms that programs write, read by the standard library: with or without seconds or fraction."""

# Forms are guessed from this many distinct texts, and tried on this many before all are read.
_N_GUESSED, _N_SAMPLED = 10, 500
_MAX_PATTERN = 64
_DAY = 86_400.0  # seconds
_FIRST_DAY = date(1970, 1, 1)

_CLOCK = r"[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?"
_ZONE = r"(?:Z|[+-][0-9]{2}(?::?[0-9]{2}(?::[0-9]{2})?)?)"
_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_ISO_SHAPES = {
    ISO: re.compile(rf"{_DATE}(?:[T ]{_CLOCK})?"),
    ISO_ZONED: re.compile(rf"{_DATE}[T ]{_CLOCK} ?{_ZONE}"),
    ISO_TIME: re.compile(_CLOCK),
}
_DIRECTIVES = "YymbBdaAHIMSfpz"
_DAY_ALONE = re.compile("%[YymbBdaA].*%[YymbBdaA]")
# A text is cut into these to guess the pattern that it is written in.
_PARTS = re.compile(
    r"(?P<clock>\b[0-9]{1,2}:[0-9]{2})(?P<S>:[0-9]{2})?(?P<f>\.[0-9]{1,6})?(?P<p> ?[AaPp][Mm])?"
    r"(?P<z> ?(?:Z|[+-][0-9]{2}:?[0-9]{2}))?|(?P<word>[^\W\d_]+)|[0-9]+"
)
# A date in figures: 2026/3/4, 3/4/2026 or 03/04/26.
_FIGURES = re.compile(
    r"(?<![0-9])(?:[0-9]{4}([./-])[0-9]{1,2}\1[0-9]{1,2}|[0-9]{1,2}([./-])[0-9]{1,2}\2[0-9]{4}"
    r"|[0-9]{2}([./])[0-9]{2}\3[0-9]{2})(?![0-9])"
)


# A month, 2026-03 or 2026/3, and a time with points, 18.30.00.
_MONTH = re.compile("(?:19|20)[0-9]{2}([-/])(?:0?[1-9]|1[0-2])")
_POINTED, _POINTED_CLOCK = re.compile(r"[0-9]{1,2}\.[0-9]{2}\.[0-9]{2}"), "%H.%M.%S"


class Moments(NamedTuple):
    """The moments of n cells, each of shape (n,); NaN where a cell is missing or does not say.

    `instant` is in seconds since 1970, in UTC where cells have a zone. `second` (of the day) and
    `weekday` (0 is Monday) are local: by the clock and calendar that the cell was written by.
    """

    instant: Floats
    second: Floats
    weekday: Floats


@final
@dataclass(frozen=True, slots=True)
class DateForm(Form[Moments]):
    """How the dates, or times of day, of one column are written.

    Parameters
    ----------
    pattern : str
        As `datetime.strptime` reads it, such as ``%d/%m/%Y %H:%M``, or one of the ISO forms.

    Examples
    --------
    >>> moments, unread = DateForm("%d/%m/%Y").parse(np.array(["03/04/2026", "?"], dtype=object))
    >>> moments.weekday, unread
    (array([ 4., nan]), array([False,  True]))
    """

    written: ClassVar[str] = "dates written as"

    pattern: str

    def __str__(self) -> str:
        """Return the pattern."""
        return self.pattern

    @classmethod
    def of_pattern(cls, pattern: str) -> DateForm:
        """Return the form that a user declares; raise a `UserError` for any other text."""
        form = cls(pattern)
        if not form._is_possible():
            raise UserError(
                "A form of dates must be a pattern with day, month and year, or hour and minute, "
                f"such as %d/%m/%Y or %Y-%m-%d %H:%M; got {pattern!r}."
            )
        return form

    @property
    def is_zoned(self) -> bool:
        """Whether cells name the time zone of their clock."""
        return self.pattern == ISO_ZONED or "%z" in self.pattern

    @property
    def has_day(self) -> bool:
        """Whether cells are dates, not only times of day."""
        return self.pattern in (ISO, ISO_ZONED) or "%Y" in self.pattern or "%d" in self.pattern

    @property
    def has_weekday(self) -> bool:
        """Whether cells name a day, not only a month."""
        return self.pattern in (ISO, ISO_ZONED) or "%d" in self.pattern

    @property
    def day(self) -> str:
        """The pattern of the date alone: without the time of day."""
        found = _DAY_ALONE.search(self.pattern)
        return found[0] if found else "%Y-%m-%d"

    @property
    def clock(self) -> str:
        """The pattern of the time of day alone, without seconds."""
        if self.pattern == _POINTED_CLOCK:
            return "%H.%M"
        return "%I:%M %p" if "%p" in self.pattern else "%H:%M"

    def parse(self, cells: Cells) -> tuple[Moments, Bools]:
        """Read text as moments, and mark the cells that are neither missing nor in this form.

        Parameters
        ----------
        cells : array of object, shape (n,)
            Text, None where missing.
        """
        position = {text: place for place, text in enumerate(dict.fromkeys(cells))}
        found = [None if text is None else self._read(text) for text in position]
        places = np.fromiter(map(position.__getitem__, cells), np.int64, len(cells))
        local, ahead = (part[places] for part in _clocks(found))
        second, nothing = np.mod(local, _DAY), np.full(len(cells), np.nan)
        is_unread = ~missing(cells) & np.isnan(second)
        if not self.has_day:
            return Moments(nothing, second, nothing), is_unread
        weekday = np.mod(np.floor(local / _DAY) + _FIRST_DAY.weekday(), 7)
        return Moments(local - ahead, second, weekday), is_unread

    def reads(self, text: str) -> bool:
        """Whether a text is in this form."""
        return self._read(text) is not None

    def check(self) -> None:
        """Raise `FormatError` for a pattern that no dates are recognised by."""
        is_possible = self._is_possible()
        require(is_possible, f"{reprlib.repr(self.pattern)} is not a form of dates.")

    def _is_possible(self) -> bool:
        if self.pattern in _ISO_SHAPES:
            return True
        found = re.findall("%(.)", self.pattern)
        is_short = len(self.pattern) <= _MAX_PATTERN and self.pattern.count("%") == len(found)
        is_known = set(found) <= set(_DIRECTIVES) and len(set(found)) == len(found)
        has_clock = bool({"H", "I"} & set(found)) and "M" in found
        calendar = {"Y", "y", "m", "b", "B", "d", "a", "A"} & set(found)
        has_day = "d" in calendar and bool({"Y", "y"} & calendar) and bool({*"mbB"} & calendar)
        is_month = sorted(found) == ["Y", "m"]
        return is_short and is_known and (has_day or is_month or (has_clock and not calendar))

    def _read(self, text: str) -> datetime | None:
        """Read one text, a time alone as one of 1 January 1970; None if in another form."""
        shape, text = _ISO_SHAPES.get(self.pattern), text.strip()
        try:
            if shape is None:
                found = datetime.strptime(text, self.pattern)
                return found if self.has_day else datetime.combine(_FIRST_DAY, found.timetz())
            if not shape.fullmatch(text):
                return None
            if self.pattern == ISO_TIME:
                return datetime.combine(_FIRST_DAY, time.fromisoformat(text))
            return datetime.fromisoformat(text.replace(" ", "T", 1).replace(" ", ""))
        except (ValueError, OverflowError):
            return None


def _clocks(moments: list[datetime | None]) -> tuple[Floats, Floats]:
    """Return what clocks show, in seconds since 1970, and how far they are ahead of UTC."""
    clocks = [moment and moment.replace(tzinfo=None) for moment in moments]
    offsets = [moment and (moment.utcoffset() or timedelta()) for moment in moments]
    local = np.array(clocks, dtype="datetime64[us]") - np.datetime64(_FIRST_DAY)
    ahead = np.array(offsets, dtype="timedelta64[us]")
    return local / np.timedelta64(1, "s"), ahead / np.timedelta64(1, "s")


def iso_form(cells: Cells) -> DateForm | None:
    """Return the ISO form of the first text, as typed columns are written; None if it has none."""
    first = next((text for text in cells if text is not None), "")
    return next((form for form in map(DateForm, _ISO_SHAPES) if form.reads(first)), None)


def clock_of(zone: str) -> tzinfo | None:
    """Return the clock of a time zone by its name in Arrow; None if this machine knows none."""
    import pyarrow as pa

    try:
        moment: datetime = pa.scalar(0, pa.timestamp("us", zone)).as_py()
    except (ValueError, LookupError, OSError):
        return None
    return moment.tzinfo


def in_zone(texts: Cells, zone: str) -> Cells:
    """Write moments of a type with a zone, as in ISO 8601, by the clock of another zone."""
    clock = clock_of(zone)
    moved = (text and str(datetime.fromisoformat(text).astimezone(clock)) for text in texts)
    return np.fromiter(moved, dtype=object, count=len(texts))


def is_pattern(text: str) -> bool:
    """Whether a text is meant as the pattern of a date."""
    return re.search("%[A-Za-z]", text) is not None


def recognise(cells: Cells) -> Recognised[DateForm] | None:
    """Return the form in which nearly all cells of a text column are dates or times, or None.

    ``03/04/2026`` is the third of April or the fourth of March; where no cell of the column has a
    number above 12 in either place, both forms are returned.
    """
    counts = Counter(text.strip() for text in cells[~missing(cells)])
    patterns = (pattern for text in _spread(counts, _N_GUESSED) for pattern in _patterns(text))
    forms = [DateForm(pattern) for pattern in dict.fromkeys(patterns)]
    sample = {text: counts[text] for text in _spread(counts, _N_SAMPLED)}
    for texts in (sample, counts):
        shares = {form: _share(form, texts) for form in forms}
        forms = [form for form in forms if shares[form] >= MIN_READ_SHARE]
    forms = [form for form in forms if shares[form] == max(shares.values())]
    forms = [form for form in forms if form.has_day] or forms  # 03.04.26 is no time, 18.30.00 is
    for other in forms[1:]:
        for text in counts:
            if other._read(text) != forms[0]._read(text):
                return Recognised(forms[0], other, text)
    return Recognised(forms[0]) if forms else None


def _spread(texts: Collection[str], n: int) -> list[str]:
    """Return n of the texts, or a few more, from the first to the last."""
    return list(islice(texts, 0, None, max(1, len(texts) // n)))


def _share(form: DateForm, counts: Mapping[str, int]) -> float:
    return sum(n for text, n in counts.items() if form.reads(text)) / sum(counts.values())


def _patterns(text: str) -> list[str]:
    """Return the patterns that a text may be written in, by its shape."""
    iso = [name for name, shape in _ISO_SHAPES.items() if shape.fullmatch(text)]
    if month := _MONTH.fullmatch(text):
        return [f"%Y{month[1]}%m"]
    if iso or len(text) > _MAX_PATTERN or not any(map(str.isdigit, text)):
        return iso
    orders = ["dy"]  # of numbers with one or two digits, where the month is a word
    if figures := _FIGURES.search(text):
        orders = ["md"] if figures[1] else ["dmy", "mdy"]
    found = [_pattern(text, order, month) for order in orders for month in ("%b", "%B")]
    found += [_POINTED_CLOCK] if _POINTED.fullmatch(text) else []
    return [pattern for pattern in found if DateForm(pattern)._is_possible()]


def _pattern(text: str, order: str, month: str) -> str:
    """Return the pattern of a text; ``%?``, which is not possible, for what dates do not have."""
    letters = iter(order)

    def directive(part: re.Match[str]) -> str:
        if part["clock"]:
            ends = {"S": ":%S", "f": ".%f", "p": "%p", "z": "%z"}
            found = [" " * part[k].startswith(" ") + end for k, end in ends.items() if part[k]]
            return "".join(["%I:%M" if part["p"] else "%H:%M", *found])
        if part["word"]:
            names = (month, "%a", "%A")
            return next((name for name in names if DateForm(name).reads(part[0])), "%?")
        if len(part[0]) == 4:
            return "%Y"
        return f"%{next(letters, '?')}" if len(part[0]) <= 2 else "%?"

    return _PARTS.sub(directive, text)
