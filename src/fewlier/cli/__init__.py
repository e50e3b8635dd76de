"""The command line: parse, one call, print.

Read in this order: streams, screen, options, ending, inputs, fit, update, score,
evaluate, explain, threshold, inspect, report, check, keys, asking, label, demonstration, demo,
export, serve, app.
"""

import gc
from typing import NoReturn

from fewlier.cli.streams import prepare_streams
from fewlier.process.signals import listen

__all__ = ["main", "run"]


def run() -> NoReturn:
    """Run the command line as a process of its own, which a signal ends from the first moment."""
    prepare_streams()  # first: whatever is opened takes the number of a closed one
    listen()
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
