"""How a command line ends: its exit codes, and the one sentence it says."""

import errno
import os
import sys
from typing import NoReturn

import typer

from fewlier.cli.options import spelling_of
from fewlier.cli.screen import say, warnings_as_notes
from fewlier.errors import UserError, spelling

FINE, BUG, FIXABLE, BROKEN_PIPE = 0, 1, 2, 141

# Standard output that is full or closed.
NOT_WRITABLE = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EBADF)


def run_and_leave(app: typer.Typer) -> NoReturn:
    """Run the command line as a process of its own, and leave at once.

    A reader of Arrow's may still be busy in a thread when a file turns out to be faulty; it must
    not meet an interpreter that is being taken down.
    """
    code: int | str | None = FINE
    try:
        main(app)
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


def main(app: typer.Typer) -> None:
    """Run the command line: exit code 2 for what the user can fix, 1 for a bug."""
    try:
        with spelling(spelling_of(app)), warnings_as_notes():
            app(prog_name=app.info.name)  # under `python -m` too
    except UserError as error:
        say(str(error))
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
