"""Questions in a terminal: one row at a time, answered by one key."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from fewlier.cli.keys import END, read_text, reading_keys
from fewlier.cli.screen import print_grid, say
from fewlier.errors import UserError
from fewlier.process.escape import shown, whole

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
_LABELS = {"a": 1, "anomaly": 1, "n": 0, "normal": 0, "space": None, "skip": None}
_MOST_COLUMNS, _MOST_TEXT = 12, 60


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
    print_grid(headings, lines, right=["adds"], most=_MOST_COLUMNS, stderr=True)
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


def _text(cell: "Cell", write: Callable[[float], str] = whole) -> str:
    if cell is None:
        return "-"
    return shown(cell, _MOST_TEXT) if isinstance(cell, str) else write(cell)
