"""How text of the user's is shown to people: as text, whatever it holds."""

import re

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
