"""Numbers as people write them: `NumberForm`, and how the form of a column is recognised."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import ClassVar, final

import numpy as np

from fewlier.errors import UserError
from fewlier.modelfile.state import State, require
from fewlier.table.arrays import Bools, Floats
from fewlier.table.cells import Cells, missing, number_text
from fewlier.table.text_forms import MIN_READ_SHARE, Form, Recognised

# A currency or a unit belongs to the column if at least this share of its numbers have it.
_OFTEN = 0.5

_DECIMALS = (".", ",")
# Programs and people do not agree on which space and which apostrophe stands between thousands.
_GROUPS = {"": "", ",": ",", ".": ".", "'": "'\u2019", " ": " \u00a0\u2009\u202f"}
_LAYOUTS = (
    *((".", ""), (",", ""), (".", ","), (",", ".")),
    *((".", "'"), (",", "'"), (".", " "), (",", " ")),
)
_SYMBOLS = "$\u00a2\u00a3\u00a5\u0e3f\u20a6\u20a9\u20aa\u20ab\u20ac\u20b4\u20b9\u20ba\u20bd"
_CODES = (
    *("AED", "AUD", "BRL", "CAD", "CHF", "CNY", "CZK", "DKK", "EUR", "GBP", "HKD", "HUF", "IDR"),
    *("ILS", "INR", "JPY", "KRW", "MXN", "NGN", "NOK", "NZD", "PHP", "PLN", "RON", "RUB", "SAR"),
    *("SEK", "SGD", "THB", "TRY", "TWD", "UAH", "USD", "VND", "ZAR"),
)
_CURRENCY = rf"[A-Z]{{0,3}}[{_SYMBOLS}]|{'|'.join(_CODES)}|Fr\.?|Rs\.?|kr\.?"
_IS_CURRENCY = re.compile(_CURRENCY)
_UNIT = rf"{_CURRENCY}|[%\u2030]|[\u00b0\u00b5\u03bc]?[^\W\d_][\w/\u00b7\u00b2\u00b3 ]{{0,11}}"
_SIGN = "[+\u2212-]"
# A laboratory's >100 is 100, the nearest that it says; as a gap the most extreme would be lost.
_BOUND = "(?:[<>\u2264\u2265]=?\\s*+)?"
_INFINITE = "(?i:inf(?:inity)?)"
_EXPONENT = r"(?:[eE][+-]?[0-9]++)?"
# Spaces and digits are taken once and not given back (*+), or a long cell would take hours.
_SPLIT = re.compile(
    rf"{_BOUND}(?P<open>\()?{_SIGN}?\s*+(?P<prefix>{_CURRENCY})?\s*+{_SIGN}?\s*+"
    rf"(?P<body>[0-9.,](?:[0-9., \u00a0\u2009\u202f'\u2019]*[0-9.,])?{_EXPONENT}|{_INFINITE})"
    r"\s*+(?P<suffix>UNIT)?(?P<close>\))?".replace("UNIT", _UNIT)
)
_WORD = re.compile(r"[^\W\d_]{3,}")
_MAX_LEVELS = 2
_BEGINS_WITH_ZERO = re.compile(r"[+-]?0[0-9]")
_NO_PARENTHESES = r"(?P<open>\b\B)?", r"(?P<close>\b\B)?"  # groups that match nothing
_NOT_PLAIN = re.compile(r"[^0-9+\-.eE\s]")


@final
@dataclass(frozen=True, slots=True)
class NumberForm(Form[Floats]):
    """How the numbers of one column are written.

    Parameters
    ----------
    decimal : {".", ","}
        What stands before the fraction.
    group : {"", ",", ".", "'", " "}
        What may stand between thousands; not what `decimal` is.
    prefix : str
        A currency that may stand before the number.
    suffix : str
        A currency, unit or percent sign that may stand behind it. It changes no number: ``12 %``
        is 12. Only a percent sign must be there, because without it 0.12 may be meant.
    parentheses : bool
        Whether ``(300)`` is -300.

    Examples
    --------
    >>> NumberForm.of_example("1.234,5 €").parse(np.array(["2.000 €", "7,5", "?"], dtype=object))
    (array([2000. ,    7.5,    nan]), array([False, False,  True]))
    """

    written: ClassVar[str] = "numbers written like"

    decimal: str = "."
    group: str = ""
    prefix: str = ""
    suffix: str = ""
    parentheses: bool = False

    def __str__(self) -> str:
        """Write 1200.5, or 12.5 per cent, in this form; negative if that is special."""
        whole = "12" if self.suffix == "%" and not self.group else f"1{self.group}200"
        text = f"{self.prefix}{whole}{self.decimal}50"
        text += f" {self.suffix}" if self.suffix else ""
        return f"({text})" if self.parentheses else text

    @classmethod
    def of_example(cls, text: str) -> NumberForm:
        """Return the form of one number; raise a `UserError` if it has two or none."""
        cells = np.array([text], dtype=object)
        found = recognise(cells)
        problem = "is not one"
        if found and found.other:
            values = sorted(form.parse(cells)[0].item() for form in (found.form, found.other))
            problem = f"may be {' or '.join(map(number_text, values))}"
        if not found or found.other:
            raise UserError(
                f"An example of how numbers are written must be a number with a decimal digit, "
                f"such as 1.234,5 or 1234.5; {text!r} {problem}."
            )
        return found.form

    def parse(self, cells: Cells) -> tuple[Floats, Bools]:
        """Read text as numbers, and mark the cells that are neither missing nor in this form.

        Parameters
        ----------
        cells : array of object, shape (n,)
            Text, None where missing.

        Returns
        -------
        numbers : array of float64, shape (n,)
            NaN where a cell is missing or unread; infinite where it says so.
        unread : array of bool, shape (n,)
        """
        present = ~missing(cells)
        texts = cells[present]
        numbers = np.full(len(cells), np.nan)
        found = _plain_numbers(texts) if self == PLAIN else None
        if found is None:
            found = np.fromiter(self._numbers(texts), np.float64, len(texts))
        numbers[present] = found
        return numbers, present & np.isnan(numbers)

    def state(self) -> State:
        """Return what a model file holds of it."""
        return State(asdict(self))

    @classmethod
    def from_state(cls, state: State) -> NumberForm:
        """Inverse of `state`, checked."""
        marks = {name: state.text(name) for name in ("decimal", "group", "prefix", "suffix")}
        form = cls(**marks, parentheses=state.flag("parentheses"))
        affixes = (form.prefix, _CURRENCY), (form.suffix, _UNIT)
        is_known = all(not text or re.fullmatch(pattern, text) for text, pattern in affixes)
        is_possible = is_known and (form.decimal, form.group) in _LAYOUTS
        require(is_possible, f"{state.name!r} is not a form that fewlier recognises.")
        return form

    def _numbers(self, texts: Iterable[str]) -> Iterator[float]:
        """Yield the number of each text, NaN where it is in another form."""
        read, marks = _pattern(self).fullmatch, dict.fromkeys(map(ord, _GROUPS[self.group]))
        marks |= {ord(self.decimal): "."}
        for text in texts:
            match = read(text.strip())
            opened, sign, inner, body, closed = match.groups() if match else [""] * 5
            if not body or bool(opened) != bool(closed) or (sign and inner):
                yield np.nan
                continue
            number = float(body.translate(marks))
            yield -number if opened or (sign or inner) in ("-", "\u2212") else number


PLAIN = NumberForm()
"""Digits with a decimal point and an exponent, if need be: numbers as programs write them."""


def recognise(cells: Cells) -> Recognised[NumberForm] | None:
    """Return the form in which nearly all cells of a text column are numbers, or None.

    Numbers that begin with a zero, such as post codes, are none. A mark that always has three
    digits behind it, and one to three before it, the first of them not 0, may stand before a
    fraction or between thousands: unless there is a currency, the column is ambiguous.
    """
    texts = [text.strip() for text in cells[~missing(cells)]]
    if not texts or any(map(_BEGINS_WITH_ZERO.match, texts)):
        return None
    if _plain_numbers(texts) is not None:
        return _judge(PLAIN, texts)
    counts = Counter(texts)
    parts = {text: match for text in counts if (match := _SPLIT.fullmatch(text)) is not None}
    if sum(counts[text] for text in parts) < MIN_READ_SHARE * len(texts):
        return None
    form = NumberForm(
        prefix=_common(parts[text]["prefix"] or "" for text in texts if text in parts),
        suffix=_common(
            (parts[text]["suffix"] or "" for text in texts if text in parts), like=_units_like
        ),
        parentheses=any(match["open"] and match["close"] for match in parts.values()),
    )
    bodies = "".join(match["body"] for match in parts.values())
    forms = [
        replace(form, decimal=decimal, group=group)
        for decimal, group in _LAYOUTS
        if not group or re.search(f"[{_GROUPS[group]}]", bodies)
    ]
    # Of forms that read as many cells, the first has the fewest marks.
    n_read = {form: _n_read(form, counts) for form in forms}
    best = max(forms, key=n_read.__getitem__)
    n_bounds = sum(n for text, n in counts.items() if text[0] in "<>\u2264\u2265")
    is_scale = _is_scale(best, counts) or n_bounds > MIN_READ_SHARE * len(texts)  # <=50K and >50K
    if n_read[best] < MIN_READ_SHARE * len(texts) or is_scale:
        return None
    return _judge(best, texts)


def _plain_numbers(texts: Iterable[str]) -> Floats | None:
    """Return plain numbers, or None if a text is not one; fast, because most columns are plain."""
    texts = list(texts)
    if _NOT_PLAIN.search("\n".join(texts)):
        return None
    try:
        return np.fromiter(map(float, texts), np.float64, len(texts))
    except ValueError:
        return None


def _common(
    affixes: Iterable[str], like: Callable[[str], tuple[str, ...]] = lambda affix: (affix,)
) -> str:
    """Return the currency or unit that at least half of the numbers have, or nothing."""
    found = Counter(affixes)
    n_of = {affix: sum(found[one] for one in like(affix)) for affix in found}
    common = max(found, key=lambda affix: (n_of[affix], found[affix]))
    return common if n_of[common] >= _OFTEN * found.total() else ""


def _units_like(unit: str) -> tuple[str, ...]:
    """Return the spellings of a unit in the singular and plural: ``1 day``, ``2 days``.

    Short ones have no plural: a metre, ``m``, is no millisecond, ``ms``.
    """
    if not _WORD.fullmatch(unit):
        return (unit,)
    singular = [unit[:-n] for n in (1, 2) if unit.endswith(("s", "es")[n - 1])]
    return unit, f"{unit}s", f"{unit}es", *filter(_WORD.fullmatch, singular)


def _is_scale(form: NumberForm, counts: Counter[str]) -> bool:
    """Whether texts with a unit are levels: at most two numbers beside texts that are none.

    As numbers, ``1 vehicle``, ``2 vehicles`` and ``more than 8`` would be 1, 2 and a gap.
    """
    if not _WORD.fullmatch(form.suffix):
        return False
    found = {*form._numbers(counts)}
    known = {number for number in found if number == number}
    return len(known) <= _MAX_LEVELS and len(known) < len(found)


def _n_read(form: NumberForm, counts: Counter[str]) -> int:
    pairs = zip(form._numbers(counts), counts.values(), strict=True)
    return sum(n for number, n in pairs if number == number)


def _judge(form: NumberForm, texts: list[str]) -> Recognised[NumberForm]:
    """Say what a column shows of its decimal mark, and whether that may be another mark."""
    mark = form.decimal
    if form.group:
        # A point or comma between thousands is not the decimal mark; an apostrophe does not say.
        is_shown = form.group in _DECIMALS or any(mark in text for text in texts)
        return Recognised(form, decimal=mark if is_shown else "")
    read = _pattern(form).fullmatch
    marked = next((text for text in texts if mark in text and read(text)), None)
    if marked is None:
        return Recognised(form)
    bodies = (match["body"] for text in texts if (match := read(text)) is not None)
    may_group = re.compile(rf"[1-9][0-9]{{0,2}}{re.escape(mark)}[0-9]{{3}}|[0-9]{{1,3}}")
    if not all(map(may_group.fullmatch, bodies)):
        return Recognised(form, decimal=mark)
    (other,) = set(_DECIMALS) - {mark}
    grouped = replace(form, decimal=other, group=mark)
    # Money has no three decimals; and who writes them writes them everywhere, also in 5,000.
    is_money = any(_IS_CURRENCY.fullmatch(affix) for affix in (form.prefix, form.suffix))
    if is_money or (mark == "," and any(mark not in text and read(text) for text in texts)):
        return Recognised(grouped, decimal=other)
    return Recognised(form, grouped, marked)


@lru_cache(maxsize=256)
def _pattern(form: NumberForm) -> re.Pattern[str]:
    """Return the pattern of one number, its parts named, in this form."""
    decimal, prefix = re.escape(form.decimal), re.escape(form.prefix)
    fraction = rf"(?:{decimal}[0-9]*+)?"
    body = rf"[0-9]++{fraction}|{decimal}[0-9]++"
    if form.group:
        group = f"[{_GROUPS[form.group]}]"
        pairs = rf"(?:{group}[0-9]{{2}})*" if form.group == "," else ""  # as in India
        body = rf"[0-9]{{1,3}}(?:{group}[0-9]{{3}})++{fraction}|{body}"
        body = rf"[0-9]{{1,2}}{pairs}{group}[0-9]{{3}}{fraction}|{body}" if pairs else body
    behind = "|".join(map(re.escape, _units_like(form.suffix)))
    behind = f"(?:{behind})" if "%" in form.suffix else f"(?:{behind})?"
    opened, closed = (r"(?P<open>\()?", r"(?P<close>\))?") if form.parentheses else _NO_PARENTHESES
    return re.compile(
        rf"{_BOUND}{opened}(?P<sign>{_SIGN})?\s*+(?:{prefix})?\s*+(?P<inner>{_SIGN})?\s*+"
        rf"(?P<body>(?:{body}){_EXPONENT}|{_INFINITE})\s*+{behind}{closed}"
    )
