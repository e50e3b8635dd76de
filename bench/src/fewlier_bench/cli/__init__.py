"""The command line: parse, one call, print.

Read in this order: options, outcome, datasets, reproduce, compare, adgym, studies, app.
"""

from typing import NoReturn

from fewlier.cli import prepare_streams
from fewlier.process.signals import handle_signals

__all__ = ["main", "run"]


def run() -> NoReturn:
    """Run the command line as a process of its own, which a signal ends from the first moment."""
    prepare_streams()  # first: whatever is opened takes the number of a closed one
    handle_signals()
    from fewlier.cli.ending import run_and_leave
    from fewlier_bench.cli.app import app

    run_and_leave(app)


def main() -> None:
    """Run the command line in this process, and raise `SystemExit`."""
    from fewlier.cli.ending import main as run_to_its_end
    from fewlier_bench.cli.app import app

    run_to_its_end(app)
