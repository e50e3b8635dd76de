"""The application: its commands."""

from collections.abc import Callable
from importlib.metadata import version as version_of
from typing import Annotated

import typer

from fewlier import __version__
from fewlier.cli.check import check
from fewlier.cli.demo import demo
from fewlier.cli.evaluate import evaluate
from fewlier.cli.explain import explain
from fewlier.cli.export import export
from fewlier.cli.fit import fit
from fewlier.cli.inspect import inspect
from fewlier.cli.label import label
from fewlier.cli.report import report
from fewlier.cli.score import score
from fewlier.cli.serve import serve
from fewlier.cli.threshold import threshold
from fewlier.cli.update import update

app = typer.Typer(
    name="fewlier",
    help="Find anomalies in tables when only a handful of them are labelled.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
EXAMPLES: dict[Callable[..., None], str] = {
    demo: "--labels 6",
    check: "train.csv --label fraud",
    label: "train.csv -o labels.jsonl",
    fit: "train.csv --label fraud -o fraud.fewlier",
    update: "fraud.fewlier more.csv --label fraud",
    score: "new.csv -m fraud.fewlier -o scored.csv",
    explain: "new.csv -m fraud.fewlier --row 17",
    report: "test.csv -m fraud.fewlier -o report.html",
    evaluate: "test.csv -m fraud.fewlier --label fraud",
    threshold: "fraud.fewlier --false-alarm-rate 0.05",
    inspect: "fraud.fewlier --json",
    export: "fraud.fewlier -o fraud.onnx --check",
    serve: "fraud.fewlier --port 8000 --workers 2",
}
"""The commands, in the order of the help, each with arguments to show there."""
for command, arguments in EXAMPLES.items():
    app.command(epilog=f"Example: fewlier {command.__name__} {arguments}")(command)


def _show_version(wanted: bool) -> None:
    if wanted:
        torch = version_of("torch")
        typer.echo(f"fewlier {__version__} (torch {torch}, {_device(torch)})")
        raise typer.Exit


def _device(torch: str) -> str:
    """Return where `device="auto"` computes, without loading torch if it is built for the CPU."""
    if torch.endswith("+cpu"):
        return "cpu"
    from fewlier.fitting.recipe import available_device

    return str(available_device("auto"))


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_show_version,
            is_eager=True,
            help="Show the versions of fewlier and torch, and exit.",
        ),
    ] = False,
) -> None:
    pass
