"""How the user's text is shown to people: every character visible, and lists cut short."""

import re
from collections.abc import Iterable
from difflib import get_close_matches

# Control characters, among them the escape codes of terminals; marks that turn the direction of
# what follows, or cannot be seen; halves of characters, which stand for bytes that are not UTF-8.
_HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)


def shown(text: str, most: int | None = None) -> str:
    r"""Return text on one line with every character visible, such as ``\x1b`` for an escape.

    With `most`, it is cut to that many characters.
    """
    text = text if most is None else text[: most + 1]  # a cell may be a book
    line = _HIDDEN.sub(lambda found: repr(found[0])[1:-1], text)
    return line if most is None or len(line) <= most else f"{line[: most - 1]}…"


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
