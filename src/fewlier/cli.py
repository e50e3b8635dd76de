"""The command line: parse, one call, print."""

import sys
from typing import Annotated

import typer

from fewlier.errors import UserError

app = typer.Typer(
    help="Find anomalies in tables when only a handful of them are labelled.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the command line: exit code 2 for what the user can fix, 1 for a bug."""
    try:
        app()
    except UserError as error:
        typer.echo(f"fewlier: {error}", err=True)
        sys.exit(2)


@app.callback()
def _commands() -> None:
    """Keep `demo` a command of its own, though it is the only one so far."""


@app.command()
def demo(
    labels: Annotated[int, typer.Option(min=2, max=100, help="Malignant rows to label.")] = 6,
    seed: Annotated[int, typer.Option(help="Which rows are drawn, and how training starts.")] = 0,
) -> None:
    """Fit, score and explain a built-in table, with and without labels.

    Example: fewlier demo --labels 6
    """
    from rich.console import Console

    from fewlier.demo import run

    run(Console(), labels, seed)
