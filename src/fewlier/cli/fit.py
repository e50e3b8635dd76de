"""`fewlier fit`: learn from a table, and write a model file."""

import shlex
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from fewlier.cli import options
from fewlier.cli.inputs import (
    check_file_output,
    read_columns,
    read_density,
    read_label,
    read_missing,
)
from fewlier.cli.options import option
from fewlier.cli.screen import announcing, echo, echo_json, fit_progress, say, was_said
from fewlier.errors import UserError

if TYPE_CHECKING:
    from fewlier.detector import AnomalyDetector
    from fewlier.scoring.files import Answers

COLUMNS, TIME, METHOD, FILE = "Columns", "Time", "Method", "Model file"


def fit(  # noqa: PLR0913 - options of a command are its arguments
    table: options.Tables,
    output: Annotated[Path, option("Model file to write.", "FILE", "--output", "-o")],
    label: options.LabelOrNone = None,
    labels: Annotated[
        Path | None, option("Answers from `fewlier label` about this table.", "FILE")
    ] = None,
    anomaly: options.Anomaly = None,
    normal: options.Normal = None,
    false_alarm_rate: Annotated[
        float, option("Share of normal rows that may score above the threshold.", "SHARE")
    ] = 0.01,
    contamination: Annotated[float | None, typer.Option(hidden=True)] = None,
    as_json: options.AsJson = False,
    column: Annotated[
        list[str] | None,
        option(
            "Kind of a column: real, binary, count, positive or category; or the distribution that "
            "scores it, visits=poisson; or how its numbers are written, amount=1.234,5; or its "
            "dates, day=%d/%m/%Y. Repeatable.",
            "NAME=KIND",
            panel=COLUMNS,
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None, option("Columns to leave out: id,timestamp.", "NAMES", panel=COLUMNS)
    ] = None,
    missing: Annotated[
        list[str] | None,
        option(
            "What stands for a missing cell, in all columns or in one: -200, age=0. Repeatable.",
            "[NAME=]VALUE",
            panel=COLUMNS,
        ),
    ] = None,
    max_epochs: Annotated[
        int, option("Maximum number of epochs; fewer take less time.", "N", panel=TIME, min=1)
    ] = 20,
    patience: Annotated[
        int, option("Epochs without improvement before a member stops.", "N", panel=TIME, min=1)
    ] = 10,
    device: Annotated[
        Literal["auto", "cpu", "cuda"],
        option("cpu, cuda, or auto: a GPU if there is one.", "NAME", panel=TIME),
    ] = "auto",
    density: Annotated[
        str, option("Model of normal rows: made, vae, flow or autoencoder.", "NAME", panel=METHOD)
    ] = "made",
    density_option: Annotated[
        list[str] | None,
        option(
            "Setting of the density, repeatable: hidden=64,64; made: n_orderings, n_components; "
            "vae: latent, n_samples, n_components; flow: kind (maf, nsf), n_transforms; "
            "autoencoder: latent.",
            "NAME=VALUE",
            panel=METHOD,
        ),
    ] = None,
    selection: Annotated[
        Literal["average", "best"],
        option(
            "average; or best, the paper's rule: less accurate, but faster to score.",
            "NAME",
            panel=METHOD,
        ),
    ] = "average",
    unlabelled: Annotated[
        Literal["robust", "normal"],
        option(
            "robust: unlabelled rows may include anomalies; normal: they include none.",
            "NAME",
            panel=METHOD,
        ),
    ] = "robust",
    validation: Annotated[
        Path | None,
        option(
            "Labelled rows to choose epoch and lambda by, instead of some training rows.",
            "TABLE",
            panel=METHOD,
        ),
    ] = None,
    random_state: Annotated[
        int,
        option("Random seed; the same seed gives the same model.", "N", panel=METHOD, min=0),
    ] = 0,
    keep_rows: Annotated[
        bool,
        option("Keep a sample of the rows in the model file, for `fewlier update`.", panel=FILE),
    ] = True,
) -> None:
    """Learn from a table what normal rows look like, and write a model file.

    Faster: fewer --max-epochs, a shorter --patience, a smaller network
    (--density-option hidden=32), --selection best, or a GPU.
    """
    from fewlier.files.folder import TableFolder, open_table, open_tables
    from fewlier.process.progress import FitProgress

    if contamination is not None:
        raise UserError(
            "A fit sets the threshold by --false-alarm-rate; got --contamination. Leave it out, "
            f"and move the threshold afterwards: fewlier threshold {shlex.quote(str(output))} "
            f"--contamination {contamination:g}"
        )
    inputs = (path for path in (table, validation, labels) if path)
    check_file_output(output, "A model", *inputs)
    with ExitStack() as stack:
        file = stack.enter_context(open_tables(table))
        held_back = stack.enter_context(open_table(validation)) if validation else None
        from fewlier.detector import AnomalyDetector  # after a wrong path has been reported
        from fewlier.scoring.files import fit_file
        from fewlier.training.settings import Training

        detector = AnomalyDetector(
            columns=read_columns(column or [], ignore or []),
            missing=read_missing(missing or [], file.columns, label),
            density=read_density(density, density_option or []),
            selection=selection,
            unlabelled=unlabelled,
            false_alarm_rate=false_alarm_rate,
            training=Training(max_epochs=max_epochs, patience=patience),
            keep_rows=keep_rows,
            device=device,
            random_state=random_state,
        )
        show = stack.enter_context(fit_progress("no model was written."))
        hint = "; `fewlier fit --help` says what is faster"
        fit_file(
            detector,
            file,
            read_label(label, anomaly, normal),
            answers=_answers(labels),
            validation=held_back,
            progress=FitProgress(show.reading, announcing("training", show.training, hint)),
        )
    for note in file.notes if isinstance(file, TableFolder) else ():
        say(f"note: {note}")
    if "" in file.columns:
        say("note: the column without a name, such as an index, was left out.")
    save(detector, output, as_json)


def _answers(path: Path | None) -> "Answers | None":
    """Return what puts the answers of a file among the labels."""
    if path is None:
        return None
    from fewlier.labelling.answers.labels import labels_of_answers

    return lambda rows, labels: labels_of_answers(path, rows, labels)


def save(detector: "AnomalyDetector", path: Path, as_json: bool) -> None:
    """Write a trained detector, and print what training did."""
    detector.save(path)
    if as_json:
        echo_json({"model": str(path), **detector.summary_.to_json()})
    else:
        summary = detector.summary_
        new = tuple(note for note in summary.notes if not was_said(note))
        echo(f"{replace(summary, notes=new)}\nmodel       {path}")
