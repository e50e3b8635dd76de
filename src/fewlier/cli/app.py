"""The application: its commands."""

from typing import Annotated

import typer

from fewlier import __version__
from fewlier.cli import (
    check,
    demo,
    inspection,
    labelled,
    report,
    scoring,
    training,
)

app = typer.Typer(
    name="fewlier",
    help="Find anomalies in tables when only a handful of them are labelled.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
for commands in (
    demo,
    check,
    training,
    scoring,
    report,
    labelled,
    inspection,
):
    commands.register(app)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fewlier {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show it and exit."),
    ] = False,
) -> None:
    pass
