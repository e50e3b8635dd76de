"""How the user's text and numbers are shown to people: visible, readable, and cut short."""

import math
import re
from collections.abc import Iterable
from difflib import get_close_matches

# Control characters, among them the escape codes of terminals; marks that turn the direction of
# what follows, or cannot be seen; halves of characters, which stand for bytes that are not UTF-8.
_HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)

# From here on numbers, and those beside them, have commas between thousands; less may be a year.
_MANY = 10_000
# Other numbers are written with an exponent.
_MIN_PLAIN, _MAX_PLAIN = 1e-4, 1e15
_DIGITS = 5


def shown(text: str, most: int | None = None) -> str:
    r"""Return text on one line with every character visible, such as ``\x1b`` for an escape.

    With `most`, it is cut to that many characters.
    """
    text = text if most is None else text[: most + 1]  # a cell may be a book
    line = _HIDDEN.sub(lambda found: repr(found[0])[1:-1], text)
    return line if most is None or len(line) <= most else f"{line[: most - 1]}…"


def number(value: float, beside: Iterable[float] = (), *, digits: int = _DIGITS) -> str:
    """Return a number as people write it: all of its whole part, and so many digits at least.

    It has commas between thousands if it, or one that stands `beside` it in a sentence, is large.

    Examples
    --------
    >>> number(500000.0), number(1234567.891), number(0.012345678), number(2024.0)
    ('500,000', '1,234,568', '0.012346', '2024')
    >>> number(5000.0, beside=[20000.0])
    '5,000'
    """
    size = abs(value)
    if size and not _MIN_PLAIN <= size < _MAX_PLAIN:
        return f"{value:.{digits}g}"
    n_whole = math.floor(math.log10(size)) + 1 if size else 1
    text = rounded(value, max(digits - n_whole, 0), beside)
    return text.rstrip("0").rstrip(".") if "." in text else text


def full_number(value: float) -> str:
    """Return a number as `number` does, with all the digits that people type: 0.3, not 0.3...04."""
    return number(value, digits=12)


def rounded(value: float, decimals: int, beside: Iterable[float] = ()) -> str:
    """Return a number with so many decimals, and otherwise as `number` does.

    Examples
    --------
    >>> rounded(1.0, 2), rounded(-98765.4, -3)
    ('1.00', '-99,000')
    """
    if not abs(value) < _MAX_PLAIN:
        return f"{value:.{_DIGITS}g}"
    text = f"{round(value, decimals) + 0.0:,.{max(decimals, 0)}f}"  # -0 is 0
    return text if max(map(abs, (value, *beside))) >= _MANY else text.replace(",", "")


def encodable(text: str) -> str:
    r"""Return text that UTF-8 can write: halves of characters as ``\ud800``, the rest as it is."""
    return text.encode("utf-8", "backslashreplace").decode()


def list_some(facts: Iterable[str], most: int = 10) -> str:
    """Return the first few of some facts in one line."""
    facts = list(facts)
    more = f" and {len(facts) - most} more" if len(facts) > most else ""
    return ", ".join(facts[:most]) + more


def list_names(names: Iterable[str]) -> str:
    """Return the first few of some names, in quotes."""
    return list_some(map(repr, names), most=5)


def suggest(wrong: str, names: Iterable[str]) -> str:
    """Say which name was meant, if one is close, or which names there are."""
    names = list(names)
    close = get_close_matches(wrong, names, n=1)
    return f"Did you mean {close[0]!r}?" if close else f"Choose from {list_names(names)}."
