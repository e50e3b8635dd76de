"""What comes of a run: rows or tables on the screen, or a page written from stored rows."""

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from fewlier.cli.screen import say, text_console
from fewlier.errors import UserError

if TYPE_CHECKING:
    from fewlier_bench.pages.printed import PrintedTable
    from fewlier_bench.runs.results import Result


def write_page(
    context: typer.Context, write: Callable[[Path, Path], None], results: Path, page: Path
) -> None:
    """Write a page from stored results in place of a run, whose options are refused."""
    _refuse_options_of_a_run(context)
    write(results, page)
    say(f"{page} shows the results of {results}.")


def show(
    rows: "Sequence[Result]", tables: "Iterable[tuple[str, PrintedTable]]", *, as_json: bool
) -> None:
    """Print rows as JSON, or tables under their headings, and say which rows failed."""
    from fewlier_bench.pages.rendering import print_table

    if as_json:
        typer.echo(json.dumps([vars(row) for row in rows]))
    else:
        console = text_console()
        for heading, table in tables:
            print_table(table, heading, console)
    _report_failures(rows)


def _refuse_options_of_a_run(context: typer.Context) -> None:
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


def _report_failures(rows: "Sequence[Result]") -> None:
    """Say how many rows of a run failed, and why the first one did."""
    failed = [row for row in rows if row.has_failed]
    if failed:
        first = failed[0]
        say(
            f"{len(failed)} of {len(rows)} rows failed; the first, {first.method} on "
            f"{first.dataset}: {first.reason}. --retry computes them again."
        )
