"""Single keys from a terminal, and whole words where there is none."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fewlier.errors import UserError
from fewlier.process.signals import farewell

NAMES = {"\x7f": "backspace", "\x08": "backspace", " ": "space", "\r": "enter", "\n": "enter"}
END = "end"
"""What is read where nothing more comes: Ctrl-D, or the end of a pipe."""
_CTRL_D = "\x04"


@contextmanager
def reading_keys(if_stopped: Callable[[], str]) -> Iterator[Callable[[], str]]:
    """Yield a function that waits for a key: its character, or its name in `NAMES`.

    From a pipe it reads a line, which holds a key or its name. When the program is stopped inside
    the block the terminal is as before, and `if_stopped` is said.
    """
    descriptor = sys.stdin.fileno()
    if not os.isatty(descriptor):
        with farewell(if_stopped):
            yield _read_line
        return
    try:
        import termios
        import tty
    except ImportError as error:
        raise UserError(
            "Single keys must come from a terminal of Unix; this system has none. Leave "
            "--terminal out, and answer in the browser."
        ) from error
    before = termios.tcgetattr(descriptor)

    def restore() -> str:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
        return if_stopped()

    def read() -> str:
        found = os.read(descriptor, 64).decode("utf-8", "replace")
        if not found or found[0] == _CTRL_D:
            return END
        return NAMES.get(found[0], found[0] if len(found) == 1 else "")  # arrows send several

    with farewell(restore):
        tty.setcbreak(descriptor)
        try:
            yield read
        finally:
            termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def read_text(prompt: str) -> str:
    """Ask for a line of text; on a terminal it is shown while it is typed."""
    descriptor = sys.stdin.fileno()
    if not os.isatty(descriptor):
        return sys.stdin.readline().strip()
    import termios

    sys.stderr.write(prompt)
    sys.stderr.flush()
    now = termios.tcgetattr(descriptor)
    shows = [*now]
    shows[3] |= termios.ICANON | termios.ECHO
    termios.tcsetattr(descriptor, termios.TCSADRAIN, shows)
    try:
        return os.read(descriptor, 4096).decode("utf-8", "replace").strip()
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, now)


def _read_line() -> str:
    line = sys.stdin.readline()
    if not line:
        return END
    word = line.rstrip("\n")
    return NAMES.get(word, word if word == " " else word.strip() or "enter")
