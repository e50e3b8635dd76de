"""`fewlier-bench reproduce`: the paper's experiments."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from fewlier.cli.inputs import read_names
from fewlier.cli.options import AsJson
from fewlier.cli.screen import progress, say
from fewlier.errors import UserError
from fewlier.process.signals import removed_if_stopped, uninterrupted
from fewlier_bench.cli.options import (
    Address,
    Engine,
    Retry,
    Tables,
    Workers,
    find_engine,
    page_option,
)
from fewlier_bench.cli.outcome import show, write_page

if TYPE_CHECKING:
    from fewlier_bench.pages.printed import PrintedTable
    from fewlier_bench.reproduction.paper_jobs import PaperScope
    from fewlier_bench.runs.measuring import Source
    from fewlier_bench.runs.results import Result, Store

RESULTS = Path("results") / "reproduction"


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(epilog="Example: fewlier-bench reproduce --quick --methods LOF,KNN")(reproduce)


def reproduce(  # noqa: PLR0913 - options of a command are its arguments
    context: typer.Context,
    tables: Tables = None,
    methods: Annotated[
        list[str] | None,
        typer.Option(metavar="NAMES", help="Methods to use, such as MADE,Proposed. Default: all."),
    ] = None,
    anomalies: Annotated[
        list[int] | None,
        typer.Option(metavar="K", help="Labelled anomalies: 1, 3 or 5. Repeatable. Default: all."),
    ] = None,
    splits: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="How many of the ten splits to run. Default: all."),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", metavar="", help="Only three small tables, two splits, k = 3."),
    ] = False,
    three_validation_anomalies: Annotated[
        bool,
        typer.Option(
            "--three-validation-anomalies",
            metavar="",
            help="Validate on three anomalies instead of k, for k = 1 and 5.",
        ),
    ] = False,
    deduplicated: Annotated[
        bool,
        typer.Option(
            "--deduplicated", metavar="", help="Use the six tables without duplicates, k = 3."
        ),
    ] = False,
    times: Annotated[
        bool,
        typer.Option("--times", metavar="", help="Time one fit per table on the CPU."),
    ] = False,
    results: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Result rows are read from and added to it. "
            f"Default: {RESULTS}; none with --quick.",
        ),
    ] = None,
    retry: Retry = False,
    workers: Workers = None,
    engine: Engine = None,
    address: Address = None,
    device: Annotated[
        Literal["auto", "cpu", "cuda"],
        typer.Option(metavar="NAME", help="Where detectors train: auto, cpu or cuda."),
    ] = "auto",
    page: Annotated[Path | None, page_option("docs/evidence/REPRODUCTION.md")] = None,
    as_json: AsJson = False,
) -> None:
    """Run what is missing of the paper's experiments, and compare with the paper's numbers."""
    if page is not None:
        from fewlier_bench.reproduction.reproduction_page import write_page as write

        write_page(context, write, results or RESULTS, page)
        return
    experiment = _experiment(quick, three_validation_anomalies, deduplicated, times)
    if times and (device == "cuda" or (workers or 1) > 1 or engine):
        raise UserError(
            "--times runs in one process on the CPU; leave out --device, --workers and --engine."
        )
    from fewlier_bench.reproduction.paper_jobs import QUICK_TABLES, find_sources, make_scope
    from fewlier_bench.runs.execution import execute
    from fewlier_bench.runs.jobs import n_cores
    from fewlier_bench.runs.results import Store

    scope = make_scope(
        experiment,
        methods=read_names(methods or []),
        anomalies=anomalies or ([3] if quick else []),
        n_splits=splits or (2 if quick else None),
        device=device,
    )
    sources = find_sources(experiment, read_names(tables or []) or (QUICK_TABLES if quick else []))
    _report_left_out(scope, sources)
    with ExitStack() as stack:
        if quick and results is None:  # never among the rows of the full run
            with uninterrupted():
                results = Path(stack.enter_context(TemporaryDirectory()))
                stack.enter_context(removed_if_stopped(results))
        store = Store(results or RESULTS)
        n_workers = 1 if times else workers or n_cores()
        where = find_engine(engine, address, workers)
        compute = partial(execute, workers=n_workers, engine=where, retry=retry)
        rows = _run(scope, sources, store, compute)
    show(rows, _tables(rows, () if times else scope.design.anomalies), as_json=as_json)


def _tables(rows: "Sequence[Result]", ks: Sequence[int]) -> "Iterator[tuple[str, PrintedTable]]":
    """Yield a table for each k, or one of training times where none is given."""
    from fewlier_bench.reproduction.tables import tables_of_run, times_of_run

    if not ks:
        table = times_of_run(rows)
        yield f"{table.title}; in brackets {table.compared}:", table
    for table in tables_of_run(rows, ks):
        yield f"{table.title}, and the difference to the paper:", table


def _experiment(
    quick: bool, three_validation_anomalies: bool, deduplicated: bool, times: bool
) -> str:
    from fewlier_bench.reproduction.experiments import DEDUPLICATED, PAPER, THREE_VALIDATION, TIMES

    options = {
        "--quick": (quick, PAPER),
        "--three-validation-anomalies": (three_validation_anomalies, THREE_VALIDATION),
        "--deduplicated": (deduplicated, DEDUPLICATED),
        "--times": (times, TIMES),
    }
    given = [option for option, (is_given, _) in options.items() if is_given]
    if len(given) > 1:
        raise UserError(
            f"These options exclude each other: {', '.join(given)}. Run them one at a time."
        )
    return options[given[0]][1] if given else PAPER


def _run(
    scope: "PaperScope", sources: Sequence["Source"], store: "Store", compute: Callable[..., None]
) -> list["Result"]:
    """Compute what is missing, and return the rows of all cells that were asked for."""
    from fewlier_bench.reproduction.paper_jobs import make_jobs
    from fewlier_bench.runs.execution import rows_of

    jobs = make_jobs(scope, sources, store)
    with progress("reproducing", "rows in --results are kept; run it again to go on.") as tell:
        compute(jobs, store, on_progress=tell)
    return rows_of(scope.experiment, jobs, store)


def _report_left_out(scope: "PaperScope", sources: Sequence["Source"]) -> None:
    for k in scope.design.anomalies:
        names = [source.name for source in sources if k not in scope.anomalies_of(source)]
        if names:
            say(f"note: k = {k} is left out where anomalies are too few: {', '.join(names)}.")
