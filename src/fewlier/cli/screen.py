"""What people see on standard error: notes, warnings, progress."""

import json
import sys
import time
import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from fewlier.cli.flags import with_declarations
from fewlier.errors import FewlierWarning, LabelWarning
from fewlier.progress import Progress
from fewlier.shown import shown
from fewlier.stopping import farewell

if TYPE_CHECKING:
    from rich.console import Console

# Off a terminal, a line about the progress comes when both have gone by since the last.
SECONDS_BETWEEN_LINES = 30.0
SHARE_BETWEEN_LINES = 0.1
# Seconds that somebody may want to shorten.
LONG = 60.0


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
    for heading in headings:
        grid.add_column(heading, justify="right" if heading in right else "left")
    for line in lines[:most]:
        grid.add_row(*map(_visible, line))
    text_console(stderr=stderr).print(grid)
    if most is not None and len(lines) > most and not stderr:
        echo(f"  ... and {len(lines) - most} more {noun}; --json has all.")


def text_console(*, stderr: bool = False) -> "Console":
    """Return where tables are printed: cells are text, also those that look like rich's markup."""
    from rich.console import Console

    return Console(stderr=stderr, markup=False, emoji=False, highlight=False)


def _visible(lines: str) -> str:
    return "\n".join(map(shown, lines.split("\n")))


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Show fewlier's warnings as messages, without the line of code they come from."""

    def show(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:  # noqa: ANN401
        if issubclass(category, FewlierWarning):
            kind = "warning" if issubclass(category, LabelWarning) else "note"
            say(f"{kind}: {with_declarations(str(message))}")
        else:
            python_show(message, category, *rest, **more)

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
    share: float | None = None

    def update(now: float | None) -> None:
        nonlocal share
        share = now
        show(now)

    def sentence() -> str:
        at = "" if share is None else f" at {share:.0%}"
        return f"stopped {what}{at}; {if_stopped}"

    with _shown(what) as show, farewell(sentence):
        yield update


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
def _shown(what: str) -> Iterator[Progress]:
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = text_console(stderr=True)
    if not console.is_terminal:
        yield _lines(what)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda share: bar.update(
            task, total=None if share is None else 1.0, completed=share or 0.0
        )


def _lines(what: str) -> Progress:
    started = latest = time.monotonic()
    told = 0.0

    def show(share: float | None) -> None:
        nonlocal latest, told
        now = time.monotonic()
        is_far = share is None or share > told + SHARE_BETWEEN_LINES - 1e-9
        if now < latest + SECONDS_BETWEEN_LINES or not is_far:
            return
        latest, told = now, share or told
        done = duration(now - started)
        if share:
            left = (now - started) * (1 - share) / share
            done = f"{share:.0%} done, about {duration(left)} left"
        say(f"{what}: {done}")

    return show
