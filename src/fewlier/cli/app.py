"""The application: its commands, and how it ends."""

import errno
import os
import sys
from collections.abc import Callable
from typing import Annotated, NoReturn

import typer

from fewlier import __version__
from fewlier.cli import comparison, data, reproduction
from fewlier.cli.check import check
from fewlier.cli.demo import demo
from fewlier.cli.evaluate import evaluate
from fewlier.cli.explain import explain
from fewlier.cli.fit import fit
from fewlier.cli.flags import in_flags, with_declarations
from fewlier.cli.inspect import inspect
from fewlier.cli.report import report
from fewlier.cli.score import score
from fewlier.cli.screen import say, warnings_as_notes
from fewlier.cli.threshold import threshold
from fewlier.cli.update import update
from fewlier.errors import ParameterError, UserError

FINE, BUG, FIXABLE, BROKEN_PIPE = 0, 1, 2, 141

# Standard output that is full or closed.
NOT_WRITABLE = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EBADF)

app = typer.Typer(
    help="Find anomalies in tables when only a handful of them are labelled.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
EXAMPLES: dict[Callable[..., None], str] = {
    demo: "--labels 6",
    check: "train.csv --label fraud",
    fit: "train.csv --label fraud -o fraud.fewlier",
    update: "fraud.fewlier more.csv --label fraud",
    score: "new.csv -m fraud.fewlier -o scored.csv",
    explain: "new.csv -m fraud.fewlier --row 17",
    report: "test.csv -m fraud.fewlier -o report.html",
    evaluate: "test.csv -m fraud.fewlier --label fraud",
    threshold: "fraud.fewlier --false-alarm-rate 0.05",
    inspect: "fraud.fewlier --json",
}
"""The commands, in the order of the help, each with arguments to show there."""
for command, arguments in EXAMPLES.items():
    app.command(epilog=f"Example: fewlier {command.__name__} {arguments}")(command)
for commands in (data, reproduction, comparison):
    commands.register(app)


def run_and_leave() -> NoReturn:
    """Run the command line as a process of its own, and leave at once.

    A reader of Arrow's may still be busy in a thread when a file turns out to be faulty; it must
    not meet an interpreter that is being taken down.
    """
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
    try:
        with warnings_as_notes():
            app(prog_name="fewlier")  # under `python -m` too
    except UserError as error:
        message = with_declarations(str(error))
        say(in_flags(message, app) if isinstance(error, ParameterError) else message)
        sys.exit(FIXABLE)
    except OSError as error:
        if error.errno not in NOT_WRITABLE:
            raise
        say(_no_room(error))
        sys.exit(FIXABLE)
    except SystemExit as end:
        # Typer ends by itself here, with a code of its own.
        if isinstance(end.__context__, BrokenPipeError):
            # Nobody reads on, as with `| head`; nothing may be flushed to them at exit either.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(BROKEN_PIPE)
        raise


def _no_room(error: OSError) -> str:
    reason = error.strerror
    return f"standard output must be writable; got: {reason}. Make room for it, or give a path."


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
