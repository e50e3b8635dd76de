"""The command line: parse, one call, print.

Read in this order: screen, options, ending, inputs, fit, update, score, evaluate, explain,
threshold, inspect, report, check, terminal, label, demonstration, demo, export, serve, app.
"""

import gc
import io
import os
import sys
from typing import Any, NoReturn, final

from fewlier.process.signals import handle_signals

__all__ = ["main", "prepare_streams", "run"]


def run() -> NoReturn:
    """Run the command line as a process of its own, which a signal ends from the first moment."""
    prepare_streams()  # first: whatever is opened takes the number of a closed one
    handle_signals()
    # Imports make a million objects that stay. By Python's own threshold, the search for garbage
    # among them takes a fifth of the time.
    gc.set_threshold(50_000)
    from fewlier.cli.app import app  # takes a quarter of a second to load
    from fewlier.cli.ending import run_and_leave

    run_and_leave(app)


def main() -> None:
    """Run the command line in this process, and raise `SystemExit`."""
    from fewlier.cli.app import app
    from fewlier.cli.ending import main as run_to_its_end

    run_to_its_end(app)


def prepare_streams() -> None:
    """Make the standard streams of this process safe, which may be closed, full or ASCII.

    A closed one is opened, for otherwise the next file that is opened would get its number, and
    its content. Reading standard input or writing standard output then fails as it should.
    """
    for number, mode in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)  # gets the lowest free number, which is this one
    sys.stdin = sys.stdin or open(0, encoding="utf-8")  # noqa: SIM115 - open to the end
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8")  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    encoding = sys.stderr.encoding if sys.stderr else "utf-8"
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(_Unfailing(2, "w", closefd=False)),
        encoding,
        errors="backslashreplace",
        line_buffering=True,
    )


@final
class _Unfailing(io.FileIO):
    """Standard error: where it cannot be written to, there is nobody to say so to."""

    def write(self, content: Any, /) -> int:  # noqa: ANN401 - bytes or alike
        try:
            return super().write(content)
        except OSError:
            return len(content)
