"""The command that runs the paper's experiments: `reproduce`."""

import json
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from fewlier.cli.options import AsJson, read_names
from fewlier.cli.screen import progress, say
from fewlier.errors import UserError

if TYPE_CHECKING:
    from fewlier.benchmark.jobs import Job
    from fewlier.benchmark.results import Result, Store

RESULTS = Path("results") / "reproduction"


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(epilog="Example: fewlier reproduce --quick")(reproduce)


def reproduce(  # noqa: PLR0913 - options of a command are its arguments
    tables: Annotated[
        list[str] | None, typer.Option(metavar="NAMES", help="Tables: Pima,Wilt; else all.")
    ] = None,
    methods: Annotated[
        list[str] | None, typer.Option(metavar="NAMES", help="Methods: MADE,Proposed; else all.")
    ] = None,
    anomalies: Annotated[
        list[int] | None, typer.Option(help="Labelled anomalies: 1, 3 or 5. Repeatable; else all.")
    ] = None,
    splits: Annotated[
        int | None, typer.Option(min=1, max=10, help="How many of the ten splits; else all.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Three small tables, two splits, k = 3; kept nowhere.")
    ] = False,
    deduplicated: Annotated[
        bool, typer.Option("--deduplicated", help="Instead: the six tables without duplicates.")
    ] = False,
    three_validation_anomalies: Annotated[
        bool, typer.Option("--three-validation-anomalies", help="Instead: so many for every k.")
    ] = False,
    times: Annotated[
        bool, typer.Option("--times", help="Instead: time one fit per table, on the CPU.")
    ] = False,
    results: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help=f"Where rows are found and added; else {RESULTS}."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes that compute; else one per core.")
    ] = None,
    device: Annotated[
        Literal["auto", "cpu", "cuda"], typer.Option(help="Where detectors train.")
    ] = "auto",
    retry: Annotated[bool, typer.Option("--retry", help="Compute failures again.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run the paper's experiments, or what is missing of them, and show the mean AUCs."""
    experiment = _experiment(deduplicated, three_validation_anomalies, times)
    from fewlier.benchmark.execution import execute
    from fewlier.benchmark.jobs import n_cores
    from fewlier.benchmark.reproduction import METHODS, QUICK_TABLES, Scope, make_jobs
    from fewlier.benchmark.results import Store

    scope = Scope(
        tuple(read_names(methods or [])) or METHODS,
        tuple(anomalies or ([3] if quick else [1, 3, 5])),
        splits or (2 if quick else 10),
        device,
    )
    names = read_names(tables or []) or (QUICK_TABLES if quick else [])
    with ExitStack() as stack:
        if quick and results is None:  # never among the rows of the full run
            results = Path(stack.enter_context(TemporaryDirectory()))
        store = Store(results or RESULTS)
        jobs = make_jobs(experiment, names, scope, store)
        n_workers = 1 if times else workers or n_cores()
        with progress("reproducing", "the rows so far are kept; run it again to go on.") as show:
            execute(jobs, store, workers=n_workers, retry=retry, on_progress=show)
        rows = _rows(store, jobs)
    if as_json:
        typer.echo(json.dumps([vars(row) for row in rows]))
    else:
        _print(rows)
    _tell_of_failures(rows)


def _experiment(deduplicated: bool, three_validation_anomalies: bool, times: bool) -> str:
    from fewlier.benchmark.results import DEDUPLICATED, PAPER, THREE_VALIDATION, TIMES

    flags = {
        DEDUPLICATED: deduplicated,
        THREE_VALIDATION: three_validation_anomalies,
        TIMES: times,
    }
    wanted = [experiment for experiment, is_wanted in flags.items() if is_wanted]
    if len(wanted) > 1:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in wanted)
        raise UserError(f"One experiment must be run at a time; got {options}. Run one by one.")
    return wanted[0] if wanted else PAPER


def _rows(store: "Store", jobs: Sequence["Job"]) -> list["Result"]:
    """Return the rows of what was to be run, of the first experiment of each job."""
    from fewlier.benchmark.results import cell_of, latest

    cells = {cell for job in jobs for cell in job.cells}
    experiments = {job.cells[0].experiment for job in jobs}
    return [
        row
        for experiment in sorted(experiments)
        for row in latest(store.read(experiment))
        if cell_of(experiment, row) in cells
    ]


def _print(rows: Sequence["Result"]) -> None:
    """Show the mean AUC of every table and method, for each k."""
    from rich.console import Console
    from rich.table import Table as Grid

    methods = list(dict.fromkeys(row.method for row in rows))
    for k in sorted({row.k for row in rows}):
        grid = Grid(title=f"mean AUC, k = {k}", box=None, pad_edge=False)
        grid.add_column("table")
        for method in methods:
            grid.add_column(method, justify="right")
        for dataset in sorted({row.dataset for row in rows if row.k == k}):
            aucs = [
                [r.auc for r in rows if (r.dataset, r.method, r.k) == (dataset, method, k)]
                for method in methods
            ]
            known = [[auc for auc in group if auc is not None] for group in aucs]
            grid.add_row(dataset, *(f"{mean(group):.3f}" if group else "-" for group in known))
        Console().print(grid)


def _tell_of_failures(rows: Sequence["Result"]) -> None:
    failed = [row for row in rows if row.reason]
    if failed:
        first = failed[0]
        say(
            f"{len(failed)} of {len(rows)} cells failed; the first, {first.method} on "
            f"{first.dataset}: {first.reason}. --retry computes them again."
        )
