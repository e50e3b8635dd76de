"""`fewlier-bench adgym`: fewlier beside what ADGym publishes of 17 methods, split by split."""

import re
from pathlib import Path
from typing import Annotated

import typer

from fewlier.cli.inputs import read_names
from fewlier.cli.options import AsJson
from fewlier.cli.screen import progress, say
from fewlier.errors import UserError
from fewlier_bench.cli.compare import RESULTS
from fewlier_bench.cli.options import (
    Results,
    Retry,
    Tables,
    Workers,
    page_option,
)
from fewlier_bench.cli.outcome import show, write_page


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(epilog="Example: fewlier-bench adgym --tables vowels,Wilt --anomalies 5")(adgym)


def adgym(  # noqa: PLR0913 - options of a command are its arguments
    context: typer.Context,
    tables: Tables = None,
    methods: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAMES",
            help="fewlier; 'fewlier normal', which takes unlabelled rows for normal; or "
            "'naive Bayes', which only checks the splits. Default: fewlier.",
        ),
    ] = None,
    anomalies: Annotated[
        list[int] | None,
        typer.Option(
            metavar="K", help="Labelled anomalies: 5, 10 or 20. Repeatable. Default: all."
        ),
    ] = None,
    splits: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="How many of the three splits to run. Default: all."),
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option(
            metavar="I/N",
            help="Fit only part I of N, such as 2/4; commands that share a file of results may "
            "run at the same time.",
        ),
    ] = None,
    results: Results = RESULTS,
    retry: Retry = False,
    workers: Workers = None,
    page: Annotated[Path | None, page_option("docs/evidence/ADGYM.md")] = None,
    as_json: AsJson = False,
) -> None:
    """Compare fewlier with 17 methods on the splits that ADGym published results of."""
    if page is not None:
        from fewlier_bench.comparison.comparison_page import write_comparison_page

        write_page(context, write_comparison_page, results, page)
        return
    part = _read_shard(shard)
    from fewlier_bench.comparison import adgym_jobs
    from fewlier_bench.comparison.adgym_published import describe_check
    from fewlier_bench.comparison.adgym_tables import summary_tables
    from fewlier_bench.runs.execution import execute, rows_of
    from fewlier_bench.runs.jobs import n_cores
    from fewlier_bench.runs.results import Store

    scope = adgym_jobs.make_scope(
        tables=read_names(tables or []),
        methods=read_names(methods or []),
        anomalies=anomalies or [],
        n_splits=splits,
    )
    store = Store(results / adgym_jobs.COLLECTION)
    checks, fits = adgym_jobs.make_check_jobs(scope), adgym_jobs.make_detector_jobs(scope)
    execute(checks, store, workers=1, retry=retry)
    say(describe_check(rows_of(adgym_jobs.EXPERIMENT, checks, store)))
    with progress("comparing", "rows in --results are kept; run it again to go on.") as tell:
        execute(fits[part], store, workers=workers or n_cores(), retry=retry, on_progress=tell)
    rows = rows_of(adgym_jobs.EXPERIMENT, [*checks, *fits], store)
    tables_of_run = ((f"{table.title}:", table) for table in summary_tables(rows))
    show(rows, tables_of_run, as_json=as_json)


def _read_shard(text: str | None) -> slice:
    """Read part I of N as a slice of the jobs; None is all."""
    found = re.fullmatch(r"(\d+)/(\d+)", text or "1/1")
    if not found or not 1 <= int(found[1]) <= int(found[2]):
        raise UserError(f"--shard must be a part of a whole such as 2/4; got {text}.")
    return slice(int(found[1]) - 1, None, int(found[2]))
