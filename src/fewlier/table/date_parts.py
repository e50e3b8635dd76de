"""What a model reads of dates: `DatePart`, one column made from a column of dates."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, time
from enum import StrEnum
from typing import final

import numpy as np

from fewlier.modelfile.state import State, require
from fewlier.table.arrays import Bools, Floats
from fewlier.table.cells import Cells, missing
from fewlier.table.dates import DateForm, Moments, clock_of

DAY, HOUR = 86_400.0, 3600.0
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
# In a shorter time each weekday comes once or twice, and says no more than the date.
_MIN_SPAN = 14 * DAY
# At the very end of the range a row has neighbours on one side only, so that new rows would score
# higher than others. This share of the rows at either end is read as one moment.
_EARLY = 0.1
# How far dates reach is judged without this share of the rows at either end: some may be slips.
_RARE = 0.01
# New rows are ordinary as long as a model is in use; a wrong year is mostly farther away.
_MIN_REACH = 20 * 365 * DAY
# What `datetime` can write: the years 1 to 9999.
_FIRST, _LAST = -62_135_596_800.0, 253_402_300_799.0


class Aspect(StrEnum):
    """What is read from a date."""

    DATE = "date"
    TIME = "time of day"
    WEEKDAY = "weekday"


@final
@dataclass(frozen=True, slots=True)
class DatePart:
    """One column that is read from a column of dates.

    =========  ======================================================================
    aspect     cells
    =========  ======================================================================
    DATE       days since `start`; up to `reach` before `start` as `start`, and up to `reach`
               after `end` as `end`
    TIME       hours since `start`, by the clock that the cell was written by
    WEEKDAY    the name of the day, by that calendar
    =========  ======================================================================

    New rows are later than all training rows, which is not odd: they are read like the last tenth
    of the training rows, and only `drift` says that time has passed. A date beyond `reach` keeps
    its own value, which is impossible in the column. Hours are cyclic: they are counted from the
    middle of the longest pause in training, so that times close by the clock are close in hours,
    unless the pause lies between them.

    Parameters
    ----------
    source : str
        The column of dates.
    form : DateForm
        How they are written.
    aspect : Aspect
        What is read from them.
    start, end : float
        DATE: the moments, in seconds since 1970, before and after which a tenth of the training
        rows lie. TIME: the second of the day that hours are counted from, twice. WEEKDAY: 0.
    reach : float
        DATE: the seconds before `start` and after `end` beyond which a date is odd. Else 0.
    zone : str
        The time zone that the type of the training dates named, empty if none. Dates of a type
        with another zone, such as that of a database session, are read by this one's clock.
    """

    source: str
    form: DateForm
    aspect: Aspect
    start: float = 0.0
    end: float = 0.0
    reach: float = 0.0
    zone: str = ""

    @property
    def name(self) -> str:
        """The name of the column that it makes."""
        return f"{self.source} ({self.aspect.value})"

    def cells(self, moments: Moments) -> Cells:
        """Return the column, missing where the moment is."""
        match self.aspect:
            case Aspect.DATE:
                inside = np.clip(moments.instant, self.start, self.end)
                is_far = np.abs(moments.instant - inside) > self.reach
                days: Floats = (np.where(is_far, moments.instant, inside) - self.start) / DAY
                return days
            case Aspect.TIME:
                hours: Floats = np.mod(moments.second - self.start, DAY) / HOUR
                return hours
        names = (None if day != day else WEEKDAYS[int(day)] for day in moments.weekday.tolist())
        return np.fromiter(names, dtype=object, count=len(moments.weekday))

    def is_impossible(self, cells: Floats) -> Bools:
        """Mark the numbers of the column that are dates beyond its reach."""
        if self.aspect is not Aspect.DATE:
            return np.zeros(len(cells), np.bool_)
        is_far: Bools = (cells < 0) | (cells > (self.end - self.start) / DAY)
        return is_far

    def written(self, texts: Cells, moments: Moments) -> Cells:
        """Return the cells as they were written, with the weekday if that is the aspect."""
        cells = self.cells(moments)
        notes = cells if self.aspect is Aspect.WEEKDAY else np.full(len(cells), "")
        notes = np.where(missing(cells), "in another form", notes)
        shown = (
            f"{text} ({note})" if text is not None and note else text
            for text, note in zip(texts, notes, strict=True)
        )
        return np.fromiter(shown, dtype=object, count=len(texts))

    def decode(self, cells: Floats) -> Floats:
        """Return numbers of the column as hours of the day, or as seconds since 1970; NaN stays."""
        if self.aspect is Aspect.TIME:
            clock: Floats = np.mod(np.clip(cells, 0, 24 - 1e-9) + self.start / HOUR, 24)
            return clock
        moments: Floats = np.clip(self.start + cells * DAY, self.start, self.end)
        return moments

    def text(self, cell: float) -> str:
        """Return a number of the column in words."""
        return in_words(self.form, self.aspect, float(self.decode(np.array([cell]))[0]))

    def state(self) -> State:
        """Return what a model file holds of it."""
        return State(asdict(self) | {"form": self.form.pattern, "aspect": self.aspect.value})

    @classmethod
    def from_state(cls, state: State) -> DatePart:
        """Inverse of `state`, checked."""
        form = DateForm(state.text("form"))
        form.check()
        start, end, reach = (state.number(name) for name in ("start", "end", "reach"))
        part = cls(
            state.text("source"),
            form,
            Aspect(state.text("aspect", [*Aspect])),
            start,
            end,
            reach,
            state.text("zone"),
        )
        require(part._is_possible(), f"{state.name!r} cannot be read from dates.")
        return part

    def _is_possible(self) -> bool:
        if self.zone and not (self.form.is_zoned and clock_of(self.zone)):
            return False
        if self.aspect is Aspect.DATE:
            is_ordered = _FIRST <= self.start <= self.end <= _LAST
            return self.form.has_day and is_ordered and 0 <= self.reach < math.inf
        has_seam = self.aspect is Aspect.TIME and 0 <= self.start < DAY
        return self.start == self.end and self.reach == 0 and (has_seam or self.start == 0)


def in_words(form: DateForm, aspect: Aspect, number: float, *, with_time: bool = False) -> str:
    """Write an hour of the day, or seconds since 1970 as a date, in a form; with time if asked."""
    if aspect is Aspect.TIME:
        minutes = round(number * 60) % (24 * 60)
        return time(minutes // 60, minutes % 60).strftime(form.clock)
    moment = datetime.fromtimestamp(min(max(number, _FIRST), _LAST), UTC)
    day = form.day.replace("%Y", f"{moment.year:04}")  # on Linux %Y has as many digits as it needs
    return moment.strftime(f"{day} {form.clock}" if with_time else day)


def date_parts(
    source: str, form: DateForm, moments: Moments, normal: Bools, zone: str
) -> list[DatePart]:
    """Return what can be read from a column of dates, by its moments on the training rows.

    The time of day, unless it is always midnight; the weekday, if there are two weeks of dates;
    the date, if it is not of a time alone. `normal` are the rows that are not labelled anomalies,
    and `zone` is the time zone that the column's type names.
    """
    parts = []
    known = moments.instant[~np.isnan(moments.instant)]
    if form.has_day:
        usual = moments.instant[normal & ~np.isnan(moments.instant)]
        usual = (usual if len(usual) else np.zeros(1)).clip(_FIRST, _LAST)
        start, end = np.quantile(usual, (_EARLY, 1 - _EARLY)).tolist()
        parts.append(DatePart(source, form, Aspect.DATE, start, end, _reach(usual, start, end)))
    if np.nan_to_num(moments.second).any() or not form.has_day:
        start = _longest_pause(moments.second[normal & ~np.isnan(moments.second)])
        parts.append(DatePart(source, form, Aspect.TIME, start, start))
    if form.has_weekday and len(known) and known.max() - known.min() >= _MIN_SPAN:
        parts.append(DatePart(source, form, Aspect.WEEKDAY))
    zone = zone if form.is_zoned and clock_of(zone) else ""
    return [replace(part, zone=zone) for part in parts]


def _reach(instants: Floats, start: float, end: float) -> float:
    """Return how far from `start` and `end` a date is ordinary.

    As far as all but a hundredth of the rows at either end lie, and their span again, or twenty
    years if that is longer.
    """
    first = float(np.quantile(instants, _RARE, method="higher"))
    last = float(np.quantile(instants, 1 - _RARE, method="lower"))
    return max(start - first, last - end, 0.0) + max(last - first, _MIN_REACH)


def _longest_pause(seconds: Floats) -> float:
    """Return the middle of the longest time of day, also across midnight, without a cell."""
    if not len(seconds):
        return 0.0
    found = np.unique(seconds)
    pauses = np.diff(found, append=found[0] + DAY)
    longest = int(np.argmax(pauses))
    return float(np.floor((found[longest] + pauses[longest] / 2) % DAY))
