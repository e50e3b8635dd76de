"""Commands that train: `fit` and `update`."""

import json
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from fewlier.cli.options import (
    Anomaly,
    AsJson,
    Data,
    Label,
    LabelOrNone,
    ModelFile,
    ModelOutput,
    Normal,
    check_model_output,
    read_columns,
    read_label,
)
from fewlier.cli.screen import announcing, echo, progress, say

if TYPE_CHECKING:
    from fewlier.detector import AnomalyDetector

COLUMNS, TIME, METHOD, FILE = "Columns", "Time", "Method", "Model file"


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command(epilog="Example: fewlier fit train.csv --label fraud -o fraud.fewlier")(fit)
    app.command(epilog="Example: fewlier update fraud.fewlier more.csv --label fraud")(update)


def fit(  # noqa: PLR0913 - options of a command are its arguments
    table: Data,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Model file to write.")
    ],
    label: LabelOrNone = None,
    anomaly: Anomaly = None,
    normal: Normal = None,
    false_alarm_rate: Annotated[
        float,
        typer.Option(
            metavar="SHARE", help="Share of normal rows that may score above the threshold."
        ),
    ] = 0.01,
    as_json: AsJson = False,
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=KIND",
            help="Kind of a column: real, binary, count, positive or category; or a number written "
            "as in the column, amount=1.234,5; or how its dates are, day=%d/%m/%Y. Repeatable.",
            rich_help_panel=COLUMNS,
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAMES", help="Columns to leave out: id,timestamp.", rich_help_panel=COLUMNS
        ),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            metavar="",
            help="Refuse identifiers and free text instead of leaving them out.",
            rich_help_panel=COLUMNS,
        ),
    ] = False,
    max_epochs: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="N",
            help="Rounds of training at most; 30 take a third of the time of 100.",
            rich_help_panel=TIME,
        ),
    ] = 100,
    patience: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="N",
            help="Rounds without improvement after which a member stops.",
            rich_help_panel=TIME,
        ),
    ] = 50,
    hidden: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Hidden units of each network; fewer are faster. Default: 500 for made, else 100.",
            rich_help_panel=TIME,
        ),
    ] = None,
    device: Annotated[
        Literal["auto", "cpu", "cuda"],
        typer.Option(
            metavar="NAME",
            help="cpu, cuda, or auto: a GPU if there is one.",
            rich_help_panel=TIME,
        ),
    ] = "auto",
    density: Annotated[
        Literal["made", "vae", "flow", "autoencoder"],
        typer.Option(
            metavar="NAME",
            help="Model of normal rows: made, vae, flow or autoencoder.",
            rich_help_panel=METHOD,
        ),
    ] = "made",
    selection: Annotated[
        Literal["average", "best"],
        typer.Option(
            metavar="NAME",
            help="average, or best, the paper's rule: less accurate, faster.",
            rich_help_panel=METHOD,
        ),
    ] = "average",
    unlabelled: Annotated[
        Literal["robust", "normal"],
        typer.Option(
            metavar="NAME",
            help="robust, or normal: no anomaly hides among rows without a label.",
            rich_help_panel=METHOD,
        ),
    ] = "robust",
    validation: Annotated[
        Path | None,
        typer.Option(
            metavar="TABLE",
            help="Rows that choose epoch and lambda; else some of the training rows do.",
            rich_help_panel=METHOD,
        ),
    ] = None,
    random_state: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            help="Random seed; the same seed gives the same model.",
            rich_help_panel=METHOD,
        ),
    ] = 0,
    memory: Annotated[
        bool,
        typer.Option(
            metavar="",
            help="Keep a sample of the rows in the model file, for `fewlier update`.",
            rich_help_panel=FILE,
        ),
    ] = True,
) -> None:
    """Learn from a table what normal rows look like, and write a model file.

    Faster: fewer --max-epochs, a shorter --patience, fewer --hidden units,
    --selection best, or a GPU.
    """
    from fewlier.table.reading import open_table

    check_model_output(output, *(path for path in (table, validation) if path is not None))
    with ExitStack() as stack:
        file = stack.enter_context(open_table(table))
        held_back = stack.enter_context(open_table(validation)) if validation else None
        from fewlier.detector import AnomalyDetector  # here, so that a wrong path is told at once
        from fewlier.files import fit_file

        detector = AnomalyDetector(
            columns=read_columns(column or [], ignore or []),
            density=density,
            selection=selection,
            unlabelled=unlabelled,
            false_alarm_rate=false_alarm_rate,
            max_epochs=max_epochs,
            patience=patience,
            hidden=None if hidden is None else (hidden,),
            memory=memory,
            device=device,
            random_state=random_state,
        )
        show = stack.enter_context(progress("fitting", "no model was written."))
        fit_file(
            detector,
            file,
            read_label(label, anomaly, normal),
            validation=held_back,
            strict=strict,
            on_epoch=announcing("fitting", show, hint="; `fewlier fit --help` says what is faster"),
        )
    detector.save(output)
    if "" in file.columns:
        say("note: the column without a name, such as an index, was left out.")
    _report(detector, output, as_json)


def update(  # noqa: PLR0913 - options of a command are its arguments
    model: ModelFile,
    table: Data,
    label: Label,
    anomaly: Anomaly = None,
    normal: Normal = None,
    output: ModelOutput = None,
    as_json: AsJson = False,
) -> None:
    """Add labelled rows to a model, without the table that it was fitted to."""
    from fewlier.table.reading import open_table

    target = output or model
    check_model_output(target, table)
    with open_table(table) as file:
        from fewlier.detector import AnomalyDetector
        from fewlier.files import update_file

        detector = AnomalyDetector.load(model)
        with progress("updating", "the model is as before.") as show:
            update_file(
                detector,
                file,
                read_label(label, anomaly, normal),
                on_epoch=announcing("updating", show),
            )
    detector.save(target)
    _report(detector, target, as_json)


def _report(detector: "AnomalyDetector", model: Path, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"model": str(model), **detector.summary_.to_json()}))
    else:
        echo(f"{detector.summary_}\nmodel       {model}")
