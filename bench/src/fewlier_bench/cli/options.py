"""Options that several commands have, and what they say of a run."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from fewlier.cli.screen import say
from fewlier.errors import UserError

if TYPE_CHECKING:
    from fewlier_bench.runs.results import Result

Tables: TypeAlias = Annotated[
    list[str] | None, typer.Option(metavar="NAMES", help="Tables: Pima,Wilt; else all.")
]
Retry: TypeAlias = Annotated[
    bool, typer.Option("--retry", metavar="", help="Compute failures again.")
]
Workers: TypeAlias = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Processes that compute; else one per core.")
]


def refuse_options_of_a_run(context: typer.Context) -> None:
    """Refuse options that would do nothing beside --page, which is written from results alone."""
    sources = {
        option.opts[0]: context.get_parameter_source(str(option.name))
        for option in context.command.params
        if option.name not in ("page", "results")
    }
    given = [name for name, source in sources.items() if source and source.name == "COMMANDLINE"]
    if given:
        raise UserError(
            f"--page must be alone or with --results, for nothing is run; got "
            f"{', '.join(given)}. Run without --page first."
        )


def report_failures(rows: "Sequence[Result]") -> None:
    """Say how many rows of a run are failures, and what the first one is."""
    failed = [row for row in rows if row.has_failed]
    if failed:
        first = failed[0]
        say(
            f"{len(failed)} of {len(rows)} rows are failures; the first, {first.method} on "
            f"{first.dataset}: {first.reason}. --retry computes them again."
        )
