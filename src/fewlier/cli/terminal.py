"""Questions in a terminal: one row at a time, answered by one key, or by words from a pipe."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from fewlier.cli.screen import print_grid, say
from fewlier.errors import UserError
from fewlier.process.escape import full_number, shown
from fewlier.process.signals import said_if_stopped

if TYPE_CHECKING:
    from fewlier.labelling.answers.answer import Cell
    from fewlier.labelling.question import Progress, Question
    from fewlier.labelling.session import Session

KEYS = (
    "a anomaly   n normal   space skip   backspace undo   1-9 anomaly of a kind   "
    "k of a new kind   q quit   ? help"
)
HELP = """a          the row is an anomaly
1 to 9     it is an anomaly of the kind with this number
k          it is an anomaly of a new kind, which you name
n          the row is normal
space      skip the row: you cannot tell
backspace  undo the last answer
q          quit; answers are kept, and the same command continues"""
_KEY_NAMES = {"\x7f": "backspace", "\x08": "backspace", " ": "space", "\r": "enter", "\n": "enter"}
END = "end"
"""What is read where nothing more comes: Ctrl-D, or the end of a pipe."""
_CTRL_D = "\x04"
_LABELS = {"a": 1, "anomaly": 1, "n": 0, "normal": 0, "space": None, "skip": None}
_MAX_COLUMNS, _MAX_TEXT = 12, 60


def ask_in_terminal(session: "Session", path: str) -> None:
    """Ask until somebody quits, or every row is answered."""

    def if_stopped() -> str:
        return f"stopped; {len(session.history)} answers are in {path}."

    with reading_keys(if_stopped) as read:
        while (question := session.next()) is not None:
            _show(session, question)
            if not _take(session, question, read):
                return
    say("every row was answered.")


def _take(session: "Session", question: "Question", read: Callable[[], str]) -> bool:
    """Read keys until there is an answer or an undo; False to quit."""
    while (key := read()) not in ("q", "quit", END):
        try:
            if _do(session, question, key):
                return True
        except UserError as error:
            say(str(error))
    return False


def _do(session: "Session", question: "Question", key: str) -> bool:
    """Do what a key stands for; False where the question stays."""
    kinds = list(session.progress.kinds)
    if key in _LABELS:
        session.answer(question.row, _LABELS[key])
    elif key.isdecimal() and 0 < int(key) <= len(kinds):
        session.answer(question.row, 1, kind=kinds[int(key) - 1])
    elif key == "k":
        session.answer(question.row, 1, kind=read_text("kind: ") or None)
    elif key in ("backspace", "undo"):
        last = session.undo()
        say("there is no answer to undo." if last is None else f"undone: row {last.row}.")
        return last is not None
    else:
        say(HELP if key == "?" else f"keys: {KEYS}.")
        return False
    return True


def _show(session: "Session", question: "Question") -> None:
    """Print a row beside those most like it, and how far the work is."""
    from fewlier.labelling.session_table import cells_of
    from fewlier.table.cells import number_text  # here, because help needs no numpy

    p_value = "" if question.p_value is None else f", p = {question.p_value:.2g}"
    say(
        f"question {question.number}: row {question.row}, odder than {question.place:.2%} of the "
        f"rows{p_value} ({question.chosen})"
    )
    beside = {
        f"{name} row {row}": cells_of(session.table, row)
        for name, row in (
            ("normal", question.nearest_normal),
            ("anomaly", question.nearest_anomaly),
        )
        if row is not None
    }
    lines = []
    named = set()
    for reason in question.reasons:
        source = reason.column if reason.column in question.cells else _source(reason.column)
        others = [_text(cells.get(source)) for cells in beside.values()]
        value, adds = _text(question.cells.get(source)), f"{reason.contribution:+.1f}"
        lines.append([reason.column, value, reason.expectation, adds, *others])
        named.add(source)
    for name in question.cells:
        if name not in named:
            others = [_text(cells.get(name), number_text) for cells in beside.values()]
            lines.insert(0, [name, _text(question.cells[name], number_text), "", "", *others])
    headings = ["column", "value", "expected", "adds", *beside]
    print_grid(headings, lines, right=["adds"], most=_MAX_COLUMNS, stderr=True)
    say(f"{progress_in_words(session.progress)}. {KEYS}")


def progress_in_words(progress: "Progress") -> str:
    """Return how far the work is, in a sentence without its full stop."""
    words = f"found {progress.found} in {progress.found + progress.normal} answers"
    if progress.skipped:
        words += f", {progress.skipped} skipped"
    if progress.remaining is None:
        return words
    left = progress.remaining
    return f"{words}; about {left.estimate:.0f} left ({left.low} to {left.high})"


def _source(name: str) -> str:
    """Return the column that a part of a date was read from."""
    return name.rpartition(" (")[0]


def _text(cell: "Cell", write: Callable[[float], str] = full_number) -> str:
    if cell is None:
        return "-"
    return shown(cell, _MAX_TEXT) if isinstance(cell, str) else write(cell)


@contextmanager
def reading_keys(if_stopped: Callable[[], str]) -> Iterator[Callable[[], str]]:
    """Yield a function that waits for a key: its character, or its name in `_KEY_NAMES`.

    From a pipe it reads a line, which holds a key or its name. When the program is stopped inside
    the block the terminal is as before, and `if_stopped` is said.
    """
    descriptor = sys.stdin.fileno()
    if not os.isatty(descriptor):
        with said_if_stopped(if_stopped):
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

    def read() -> str:  # click.getchar would drop what was typed ahead
        found = os.read(descriptor, 64).decode("utf-8", "replace")
        if not found or found[0] == _CTRL_D:
            return END
        return _KEY_NAMES.get(found[0], found[0] if len(found) == 1 else "")  # arrows send several

    with said_if_stopped(restore):
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
    return _KEY_NAMES.get(word, word if word == " " else word.strip() or "enter")
