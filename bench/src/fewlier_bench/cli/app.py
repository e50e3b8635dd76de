"""The application: its commands."""

import typer

from fewlier_bench.cli import adgym, compare, datasets, reproduce, studies

app = typer.Typer(
    name="fewlier-bench",
    help="Repeat what fewlier claims: the paper's experiments, and comparisons with other methods.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
for commands in (datasets, reproduce, compare, adgym, studies):
    commands.register(app)
