"""What people see on standard error: notes, warnings, progress."""

import json
import sys
import time
import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, final

import typer

from fewlier.errors import FewlierWarning, LabelWarning
from fewlier.process.escape import shown
from fewlier.process.progress import FitProgress, Progress, ReadProgress
from fewlier.process.signals import said_if_stopped

if TYPE_CHECKING:
    from rich.console import Console

# Off a terminal, a line about the progress comes when both have gone by since the last.
SECONDS_BETWEEN_LINES = 30.0
SHARE_BETWEEN_LINES = 0.1
# Characters of a name that are not broken over lines, where a terminal is narrow.
WIDEST_NAME = 40
# Seconds that somebody may want to shorten.
LONG = 60.0


class Show(Protocol):
    """Shows the share of a phase of long work that is done, and more about it."""

    def __call__(self, what: str, share: float | None, detail: str = "") -> None:
        """Show it."""
        ...


def say(message: str) -> None:
    """Print a message to standard error; a bar there makes room for it."""
    sys.stderr.write(f"fewlier: {_visible(message)}\n")
    sys.stderr.flush()


def echo(text: str) -> None:
    """Print lines for people to standard output; JSON and CSV go there as they are."""
    typer.echo(_visible(text))


def echo_json(facts: dict[str, Any]) -> None:
    """Print a record for machines to standard output."""
    typer.echo(json.dumps(facts))


def echo_facts(facts: Iterable[tuple[str, str | Iterable[str]]], width: int = 12) -> None:
    """Print facts for people, each with its heading; a fact may have several lines."""
    for heading, found in facts:
        for number, line in enumerate([found] if isinstance(found, str) else found):
            typer.echo(f"{'' if number else heading:<{width}}{shown(line)}")


def print_grid(
    headings: Sequence[str],
    lines: Sequence[Sequence[str]],
    *,
    right: Collection[str] = (),
    most: int | None = None,
    noun: str = "columns",
    stderr: bool = False,
) -> None:
    """Print columns of text, those headed by `right` aligned right; at most `most` lines."""
    from rich import box
    from rich.table import Table as Grid

    grid = Grid(box=box.SIMPLE)
    # The first names the line, and may have to be copied: where there is room it stays whole.
    longest = max(len(shown(line[0])) for line in [headings, *lines[:most]])
    for number, heading in enumerate(headings):
        justify: Any = "right" if heading in right else "left"
        is_whole = not number and longest <= WIDEST_NAME
        grid.add_column(heading, justify=justify, overflow="fold", no_wrap=is_whole)
    for line in lines[:most]:
        grid.add_row(*map(_visible, line))
    text_console(stderr=stderr).print(grid)
    if most is not None and len(lines) > most and not stderr:
        echo(f"  ... and {len(lines) - most} more {noun}; --json has all.")


def text_console(*, stderr: bool = False) -> "Console":
    """Return where tables are printed: cells are text, also those that look like rich's markup."""
    from rich.console import Console

    return Console(stderr=stderr, markup=False, emoji=False, highlight=False)


_said: list[str] = []  # the notes of this run


def was_said(note: str) -> bool:
    """Whether a warning has said so before, perhaps with the name of a file."""
    return any(line.endswith(note) for line in _said)


def _visible(lines: str) -> str:
    return "\n".join(map(shown, lines.split("\n")))


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Show fewlier's warnings as messages, without the line of code they come from."""

    def show(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:  # noqa: ANN401
        if issubclass(category, FewlierWarning):
            kind = "warning" if issubclass(category, LabelWarning) else "note"
            _said.append(str(message))
            say(f"{kind}: {_said[-1]}")
        else:
            python_show(message, category, *rest, **more)

    _said.clear()
    with warnings.catch_warnings():
        python_show = warnings.showwarning
        warnings.showwarning = show
        warnings.simplefilter("always", FewlierWarning)
        yield


@contextmanager
def progress(what: str, if_stopped: str) -> Iterator[Progress]:
    """Show how far long work has come: a bar with the time left, or lines off a terminal.

    A stop inside the block says how far it was, and `if_stopped`.
    """
    with _phases(what, if_stopped) as show:
        yield lambda share: show(what, share)


@contextmanager
def fit_progress(if_stopped: str) -> Iterator[FitProgress]:
    """Show how far a fit has come: first what it has read, with bytes and rows, then its epochs."""
    with _phases("reading", if_stopped) as show:

        def read(so_far: ReadProgress) -> None:
            amount = f"{_size(so_far.n_bytes)}, {so_far.n_rows:,} rows"
            show("reading", so_far.share, amount)

        yield FitProgress(read, lambda share: show("fitting", share))


@contextmanager
def _phases(first: str, if_stopped: str) -> Iterator[Show]:
    """Show how far each phase of long work has come, from the first on."""
    phase, latest = first, None

    def update(what: str, share: float | None, detail: str = "") -> None:
        nonlocal phase, latest
        phase, latest = what, share
        show(what, share, detail)

    def sentence() -> str:
        at = "" if latest is None else f" at {latest:.0%}"
        return f"stopped {phase}{at}; {if_stopped}"

    with _shown() as show, said_if_stopped(sentence):
        yield update


def _size(n_bytes: int) -> str:
    """Write a number of bytes as people do: ``640 kB``, ``1.2 GB``."""
    size, unit = n_bytes / 1e3, "kB"
    for larger in ("MB", "GB", "TB"):
        if size < 999.5:
            break
        size, unit = size / 1e3, larger
    return f"{size:.3g} {unit}"


def announcing(what: str, show: Progress, hint: str = "") -> Progress:
    """Return a progress of epochs that also announces, after the second, how long all will take.

    The first epoch is not measured: it may take twice as long, while torch starts. Members that
    stop improving make the rest shorter, so the time is the longest possible. If it is long, the
    hint follows.
    """
    measured: list[tuple[float, float]] = []  # share done and time, after the first two epochs

    def update(share: float | None) -> None:
        show(share)
        if not share or len(measured) == 2:
            return
        measured.append((share, time.perf_counter()))
        if len(measured) == 2 and share < 1:
            (first, start), (second, end) = measured
            seconds = (end - start) / (second - first)
            say(f"{what} takes at most about {duration(seconds)}{hint if seconds > LONG else ''}.")

    return update


def duration(seconds: float) -> str:
    """Write a time as people do: ``40 s``, ``12 min``, ``3.5 h``."""
    if seconds < 99.5:
        return f"{max(seconds, 1):.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 99.5 else f"{minutes / 60:.1f} h"


@contextmanager
def _shown() -> Iterator[Show]:
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = text_console(stderr=True)
    if not console.is_terminal:
        yield _Lines().show
        return
    texts = (TextColumn("{task.description}"), TextColumn("{task.fields[detail]}"))
    columns = (texts[0], BarColumn(), TimeRemainingColumn(), texts[1])
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None, detail="")

        def show(what: str, share: float | None, detail: str = "") -> None:
            if bar.tasks[task].description != what:
                bar.reset(task, description=what)  # the time left is that of this phase
            total = None if share is None else 1.0
            bar.update(task, total=total, completed=share or 0.0, detail=detail)

        yield show


@final
class _Lines:
    """Lines about the progress of each phase, now and then."""

    def __init__(self) -> None:
        self._what: str | None = None
        self._started = self._latest = time.monotonic()
        self._told = 0.0

    def show(self, what: str, share: float | None, detail: str = "") -> None:
        """Say how far a phase has come, if there has been no line for long."""
        now = time.monotonic()
        if what != self._what:
            self._started = self._started if self._what is None else now
            self._what, self._latest, self._told = what, self._started, 0.0
        is_far = share is None or share > self._told + SHARE_BETWEEN_LINES - 1e-9
        if now < self._latest + SECONDS_BETWEEN_LINES or not is_far:
            return
        self._latest, self._told = now, share or self._told
        done = duration(now - self._started)
        if share:
            left = (now - self._started) * (1 - share) / share
            done = f"{share:.0%} done, about {duration(left)} left"
        say(f"{what}: {done}{f' ({detail})' * bool(detail)}")
