"""Options and messages that several commands share."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from fewlier.cli.screen import say
from fewlier.errors import UserError

if TYPE_CHECKING:
    from fewlier_bench.runs.execution import Engine as Run
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

Engine: TypeAlias = Annotated[
    Literal["ray"] | None,
    typer.Option(metavar="NAME", help="Spread the jobs over a cluster: ray."),
]
Address: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS", help="Address of the cluster, or auto. Default: start one here."
    ),
]


def find_engine(engine: str | None, address: str | None, workers: int | None) -> "Run | None":
    """Return what computes jobs elsewhere; None where they are computed here.

    Without `workers` an engine has as many as there is room for.
    """
    if engine is None:
        if address is not None:
            raise UserError("--address must come with --engine ray.")
        return None
    from fewlier_bench.runs.on_ray import on_ray

    return lambda jobs: on_ray(jobs, address, workers)


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
