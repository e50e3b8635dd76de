"""Options and messages that several commands share."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from fewlier.cli.screen import say
from fewlier.errors import UserError

if TYPE_CHECKING:
    from fewlier_bench.runs.results import Result

Tables: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(metavar="NAMES", help="Tables to use, such as Pima,Wilt. Default: all."),
]
Retry: TypeAlias = Annotated[
    bool, typer.Option("--retry", metavar="", help="Compute failed cells again.")
]
Workers: TypeAlias = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Number of processes. Default: one per core.")
]


def refuse_options_of_a_run(context: typer.Context) -> None:
    """Refuse options that --page would ignore: the page is written from results alone."""
    sources = {
        option.opts[0]: context.get_parameter_source(str(option.name))
        for option in context.command.params
        if option.name not in ("page", "results")
    }
    given = [name for name, source in sources.items() if source and source.name == "COMMANDLINE"]
    if given:
        raise UserError(
            f"--page runs nothing, so it takes only --results; got {', '.join(given)}. "
            "Run without --page first."
        )


def report_failures(rows: "Sequence[Result]") -> None:
    """Say how many rows of a run failed, and why the first one did."""
    failed = [row for row in rows if row.has_failed]
    if failed:
        first = failed[0]
        say(
            f"{len(failed)} of {len(rows)} rows failed; the first, {first.method} on "
            f"{first.dataset}: {first.reason}. --retry computes them again."
        )
