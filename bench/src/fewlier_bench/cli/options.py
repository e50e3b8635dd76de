"""Options that several commands share."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from fewlier.errors import UserError

if TYPE_CHECKING:
    from fewlier_bench.runs.execution import Engine as Run

Tables: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(metavar="NAMES", help="Tables to use, such as Pima,Wilt. Default: all."),
]
Results: TypeAlias = Annotated[
    Path, typer.Option(metavar="FOLDER", help="Result rows are read from and added to a subfolder.")
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


def page_option(page: str) -> Any:  # noqa: ANN401 - as typer has it
    """Return the option of a command that can also write the page of its results."""
    return typer.Option(
        metavar="PATH",
        help=f"Run nothing; write the tables of --results into this page, {page}.",
    )
