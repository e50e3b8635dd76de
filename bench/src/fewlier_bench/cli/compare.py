"""`fewlier-bench compare`: fewlier and other methods, given the same few labels."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from fewlier.cli.inputs import read_names
from fewlier.cli.options import AsJson
from fewlier.cli.screen import progress
from fewlier_bench.cli.options import (
    Address,
    Engine,
    Results,
    Retry,
    Tables,
    Workers,
    find_engine,
    page_option,
)
from fewlier_bench.cli.outcome import show, write_page

RESULTS = Path("results") / "comparison"


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(
        epilog="Example: fewlier-bench compare --tables Stamps --methods LOF --anomalies 3"
    )(compare)


def compare(  # noqa: PLR0913 - options of a command are its arguments
    context: typer.Context,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            exists=True,
            file_okay=False,
            help="Folder of .npz files with X, and y = 1 for anomalies. Default: the paper's 16 "
            "tables.",
        ),
    ] = None,
    tables: Tables = None,
    experiment: Annotated[
        Literal["clean", "contaminated", "unseen"],
        typer.Option(
            metavar="NAME",
            help="clean: unlabelled rows are normal. contaminated: 5 % of them are anomalies. "
            "unseen: one kind of anomaly is labelled, and the others are tested.",
        ),
    ] = "clean",
    methods: Annotated[
        list[str] | None,
        typer.Option(metavar="NAMES", help="Methods to use, such as fewlier,LOF. Default: all."),
    ] = None,
    anomalies: Annotated[
        list[int] | None,
        typer.Option(
            metavar="K",
            help="Half the number of labelled anomalies: 0, 1, 3, ... Repeatable. Default: all.",
        ),
    ] = None,
    splits: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="At most this many splits. Default: ten for k = 3, five for others.",
        ),
    ] = None,
    results: Results = RESULTS,
    retry: Retry = False,
    workers: Workers = None,
    engine: Engine = None,
    address: Address = None,
    device: Annotated[
        Literal["auto", "cpu", "cuda"],
        typer.Option(metavar="NAME", help="Where fewlier trains: auto, cpu or cuda."),
    ] = "auto",
    page: Annotated[Path | None, page_option("docs/evidence/ACCURACY.md")] = None,
    as_json: AsJson = False,
) -> None:
    """Compare fewlier with other methods, all given the same rows and few labels."""
    if page is not None:
        from fewlier_bench.comparison.comparison_page import write_comparison_page

        write_page(context, write_comparison_page, results, page)
        return
    from fewlier_bench.comparison.collection import collection_name, find_tables
    from fewlier_bench.comparison.comparison_tables import summary_tables
    from fewlier_bench.comparison.peer_jobs import make_jobs, make_scope
    from fewlier_bench.runs.execution import execute, rows_of
    from fewlier_bench.runs.jobs import n_cores
    from fewlier_bench.runs.results import Store

    scope = make_scope(
        experiment,
        methods=read_names(methods or []),
        anomalies=anomalies or [],
        most_draws=splits,
        device=device,
    )
    jobs = make_jobs(scope, find_tables(data, read_names(tables or [])))
    store = Store(results / collection_name(data))
    with progress("comparing", "rows in --results are kept; run it again to go on.") as tell:
        execute(
            jobs,
            store,
            workers=workers or n_cores(),
            engine=find_engine(engine, address, workers),
            retry=retry,
            on_progress=tell,
        )
    rows = rows_of(experiment, jobs, store)
    tables_of_run = ((f"{table.title}:", table) for table in summary_tables(rows, experiment))
    show(rows, tables_of_run, as_json=as_json)
