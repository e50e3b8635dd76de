"""The application: its commands, and how it ends."""

import errno
import os
import signal
import sys
from types import FrameType
from typing import Annotated, NoReturn

import typer

from fewlier import __version__
from fewlier.cli import (
    comparison,
    data,
    inspection,
    labelled,
    report,
    reproduction,
    scoring,
    training,
)
from fewlier.cli.screen import Stopped, Terminated, say, warnings_as_notes
from fewlier.cli.streams import prepare_streams
from fewlier.errors import UserError

FINE, BUG, FIXABLE, STOPPED, BROKEN_PIPE, TERMINATED = 0, 1, 2, 130, 141, 143

# Standard output that is full or closed.
NOT_WRITABLE = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EBADF)

app = typer.Typer(
    help="Find anomalies in tables when only a handful of them are labelled.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
for commands in (training, scoring, report, labelled, inspection, data, reproduction, comparison):
    commands.register(app)


def run() -> NoReturn:
    """Run the command line as a process of its own, and leave at once.

    A reader of Arrow's may still be busy in a thread when a file turns out to be faulty; it must
    not meet an interpreter that is being taken down.
    """
    prepare_streams()
    code: int | str | None = FINE
    try:
        main()
    except SystemExit as end:
        code = end.code
    try:
        sys.stdout.flush()
    except OSError as error:  # a full disk, of which main may have told already
        if not code:
            say(_no_room(error))
            code = FIXABLE
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else BUG if code else FINE)


def main() -> None:
    """Run the command line: exit code 2 for what the user can fix, 1 for a bug."""
    # So that what a stopped run has begun to write is removed.
    signal.signal(signal.SIGTERM, _terminated)
    try:
        with warnings_as_notes():
            app()
    except UserError as error:
        say(str(error))
        sys.exit(FIXABLE)
    except Stopped as error:
        say(str(error))
        sys.exit(_code(error.__cause__))
    except OSError as error:
        if error.errno not in NOT_WRITABLE:
            raise
        say(_no_room(error))
        sys.exit(FIXABLE)
    except SystemExit as end:
        # Typer ends by itself on these two, with codes of its own.
        if isinstance(end.__context__, BrokenPipeError):
            # Nobody reads on, as with `| head`; nothing may be flushed to them at exit either.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(BROKEN_PIPE)
        stop = end.__context__ and end.__context__.__cause__
        if isinstance(stop, KeyboardInterrupt):
            say("stopped; nothing was written.")
            sys.exit(_code(stop))
        raise


def _no_room(error: OSError) -> str:
    reason = error.strerror
    return f"standard output must be writable; got: {reason}. Make room for it, or give a path."


def _code(stop: BaseException | None) -> int:
    return TERMINATED if isinstance(stop, Terminated) else STOPPED


def _terminated(number: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001 - a handler
    raise Terminated


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fewlier {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show it and exit."),
    ] = False,
) -> None:
    pass
