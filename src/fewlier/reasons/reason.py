"""`Reason`: what one column adds to the score of a row, as numbers and in words."""

import math
from typing import Any, NamedTuple

from fewlier.process.escape import number, rounded, shown
from fewlier.table.cells import number_text
from fewlier.table.date_parts import DAY, Aspect, in_words
from fewlier.table.dates import ISO, DateForm

VISIBLE = 0.05
"""Smallest contribution that is named as a reason; a smaller one would be shown as 0.0."""
UNLIKE = "nothing like this row in training"
"""Words in place of a range where the other columns lead beyond all that training held."""
# Spreadsheets take text that starts like this for a formula; some also the wide characters.
_FORMULA = tuple("=+-@\uff1d\uff0b\uff0d\uff20")
# A cell that has a value, though it was more likely than this to be missing, is shown as such.
_LIKELY = 0.5
# A range of times that covers all but this many hours of a day is "any time".
_NEARLY_A_DAY = 1.0
# A category less likely than this would be shown with 0 %.
_VISIBLE_SHARE = 0.005
_MAX_DECIMALS = 5


class Reason(NamedTuple):
    """What one column adds to the score of one row, and what was expected given the others.

    `value` is None where the cell is missing. For a number, `expected` is the median, and between
    `expected_low` and `expected_high` lie nine normal rows in ten, unless the row is
    `unlike_training`; for a category, `expected_categories` has the likeliest with their
    probabilities; fields that do not apply are None. `expected_missing` is the probability of a
    missing cell. A column read from dates has an `aspect`: then `value` is the date as written, in
    the `form` of the column, and the expected numbers are hours for a "time of day" and seconds
    since 1970 for a "date".

    Examples
    --------
    >>> from fewlier.reasons.reason import Reason
    >>> reason = Reason("latency", 912.0, contribution=14.2, expected_low=12, expected_high=40)
    >>> print(reason)
    latency = 912, expected 12–40: +14.2
    >>> reason.column, reason.state, reason.expectation
    ('latency', '= 912', '12–40')
    """

    column: str
    value: float | str | None
    contribution: float
    expected: float | None = None
    expected_low: float | None = None
    expected_high: float | None = None
    expected_categories: dict[str, float] | None = None
    expected_missing: float | None = None
    aspect: str | None = None
    form: str | None = None
    unlike_training: bool = False

    def __str__(self) -> str:
        """Return the reason in words, such as ``latency = 912, expected 12–40: +14.2``."""
        return f"{self.name} {self.state}{self.expected_in_words}: {self.contribution:+.1f}"

    def to_json(self) -> dict[str, Any]:
        """Return the reason as JSON values, and in words."""
        return self._asdict() | {"text": str(self)}

    @property
    def name(self) -> str:
        """The column as shown: in quotes if a spreadsheet would take it for a formula."""
        name = shown(self.column)
        return f"'{name}'" if name.lstrip().startswith(_FORMULA) else name

    @property
    def cell(self) -> str | None:
        """The value as people write it; None where it is missing."""
        if self.value is None or isinstance(self.value, str):
            return self.value and shown(self.value)
        return number(self.value, beside=self._numbers)

    @property
    def state(self) -> str:
        """What the cell holds, in words, such as ``= 912`` or ``is missing``."""
        return "is missing" if self.cell is None else f"= {self.cell}"

    @property
    def expectation(self) -> str:
        """What was expected, in words; empty where nothing was."""
        gap = self.expected_missing or 0.0
        if self.value is not None and gap > _LIKELY:
            return f"missing ({_percent(gap)})"
        if self.expected_categories:
            if len(self.expected_categories) == 1:  # the column has one level
                return f"always {self._level(next(iter(self.expected_categories)))}"
            likely = {n: p for n, p in self.expected_categories.items() if p >= _VISIBLE_SHARE}
            named = likely or self.expected_categories
            return ", ".join(f"{self._level(name)} ({_percent(p)})" for name, p in named.items())
        if self.unlike_training:
            return UNLIKE
        if self.expected_low is None or self.expected_high is None:
            return ""
        if self.aspect is not None:
            form = DateForm(self.form or ISO)
            return _range_of_dates(form, Aspect(self.aspect), self.expected_low, self.expected_high)
        return _range(self.expected_low, self.expected_high, self._numbers)

    @property
    def expected_in_words(self) -> str:
        """How the sentence goes on that begins with the value: `expectation` behind a comma."""
        expectation = self.expectation
        verb = "" if expectation == UNLIKE else "expected "
        return f", {verb}{expectation}" if expectation else ""

    @property
    def _numbers(self) -> list[float]:
        """The numbers of the sentence, which are all written alike."""
        levels = map(_as_number, self.expected_categories or ())
        known = (self.value, self.expected_low, self.expected_high, *levels)
        return [n for n in known if n is not None and not isinstance(n, str)]

    def _level(self, name: str) -> str:
        """Return a level as shown: as the value is, where that is a number."""
        level = _as_number(name) if isinstance(self.value, float) else None
        return shown(name) if level is None else number(level, beside=self._numbers)


def _as_number(name: str) -> float | None:
    """Return the level of a column of numbers; None for another name."""
    try:
        level = float(name)
    except ValueError:
        return None
    return level if number_text(level) == name else None


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _range(low: float, high: float, beside: list[float]) -> str:
    """Write a range with as many digits as its width needs."""
    width = high - low
    if width <= 0:
        return number(low, beside=beside)
    decimals = 1 - math.floor(math.log10(width)) if math.isfinite(width) else 0
    texts = [
        number(end, beside=beside) if decimals > _MAX_DECIMALS else rounded(end, decimals, beside)
        for end in (low, high)
    ]
    return (" to " if low < 0 else "–").join(dict.fromkeys(texts))


def _range_of_dates(form: DateForm, aspect: Aspect, low: float, high: float) -> str:
    """Write a range of days or of times."""
    with_time = abs(high - low) < 2 * DAY
    # A range of times that ends before it begins runs past midnight.
    if aspect is Aspect.TIME and 0 < low - high < _NEARLY_A_DAY:
        return "any time"
    ends = (in_words(form, aspect, end, with_time=with_time) for end in (low, high))
    return (" to " if aspect is Aspect.DATE else "–").join(dict.fromkeys(ends))
