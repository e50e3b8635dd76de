"""`fewlier label`: find and label anomalies, one question at a time."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fewlier.cli import options
from fewlier.cli.inputs import check_file_output, read_columns, read_label, read_missing
from fewlier.cli.options import option
from fewlier.cli.screen import echo, echo_json, say
from fewlier.cli.terminal import ask_in_terminal, progress_in_words
from fewlier.errors import UserError

if TYPE_CHECKING:
    from fewlier.labelling.session import Session
    from fewlier.table.label_column import LabelColumn

WAYS, FILES = "How to ask", "Other uses"


def label(  # noqa: PLR0913 - options of a command are its arguments
    table: Annotated[
        Path | None,
        typer.Argument(help="CSV or Parquet, also gzipped.", metavar="TABLE", show_default=False),
    ] = None,
    output: Annotated[
        Path | None,
        option(
            "File of answers, one JSON record per line; an existing one is continued.",
            "FILE",
            "--output",
            "-o",
        ),
    ] = None,
    label: options.LabelOrNone = None,
    anomaly: options.Anomaly = None,
    normal: options.Normal = None,
    model: Annotated[
        Path | None, option("Start from the scores of this model.", "MODEL", "--model", "-m")
    ] = None,
    column: options.Column = None,
    ignore: options.Ignore = None,
    missing: options.Missing = None,
    terminal: Annotated[
        bool, option("Ask in this terminal, without a browser.", "", "--terminal", panel=WAYS)
    ] = False,
    port: Annotated[
        int, option("Port of the page; 0 takes any free one.", "N", panel=WAYS, min=0)
    ] = 0,
    browser: Annotated[bool, option("Open the page in the browser.", panel=WAYS)] = True,
    model_out: Annotated[
        Path | None,
        option("Save a model fitted to all answers here.", "FILE", panel=FILES),
    ] = None,
    export: Annotated[
        Path | None,
        option("Only write the table with its labels here.", "FILE", panel=FILES),
    ] = None,
    merge: Annotated[
        list[Path] | None,
        option(
            "Only merge this file of answers into the output. Repeatable.",
            "FILE",
            panel=FILES,
        ),
    ] = None,
    as_json: options.AsJson = False,
    random_state: options.RandomState = 0,
) -> None:
    """Find and label anomalies: it asks about one row at a time, and learns from every answer.

    Keys: a anomaly, n normal, space skip, backspace undo. Answers are kept at once.
    """
    if output is None:
        raise UserError("Answers must be kept in a file; got none. Name one: -o labels.jsonl.")
    if merge:
        _merge(merge, output, table, as_json)
        return
    if table is None:
        raise UserError("A table must be named, to ask about its rows; got none. Name a file.")
    check_file_output(output, "A file of answers", table)
    column_of = read_label(label, anomaly, normal)
    if export is not None:
        _export(table, column_of, output, export)
        return
    if model_out is not None:
        check_file_output(model_out, "A model", table, output)
    columns, said = read_columns(column or [], ignore or []), missing or []
    with _open(table, column_of, output, (model, columns, said), random_state) as session:
        if terminal:
            ask_in_terminal(session, str(output))
        else:
            _serve(session, table, (port, browser), model_out)
        if model_out is not None:
            from fewlier.labelling.page.api import no_model_if_stopped

            say("fitting a detector with all answers ...")
            with no_model_if_stopped(session):
                session.detector.save(model_out)
        _conclude(session, table, output, as_json)


@contextmanager
def _open(
    table: Path,
    label: "LabelColumn | None",
    output: Path,
    detector: tuple[Path | None, dict[str, str] | None, list[str]],
    random_state: int,
) -> Iterator["Session"]:
    """Open a session about the rows of a file."""
    from fewlier.files.folder import open_table
    from fewlier.files.reading import is_standard, naming

    if is_standard(table):
        raise UserError("The table must be a file; got standard input. Name a file.")
    with open_table(table) as file:
        from fewlier.detector import AnomalyDetector  # after a wrong path has been reported
        from fewlier.labelling.session import Session
        from fewlier.scoring.files import read_rows

        rows, labels = read_rows(file, label, is_complete=True)
    model, columns, said = detector
    if model is None:
        missing = read_missing(said, rows.column_names)
        start = AnomalyDetector(columns=columns, missing=missing, random_state=random_state)
    elif said:
        raise UserError("--missing is what the model of -m was told; got both. Leave one out.")
    else:
        start = AnomalyDetector.load(model)
        known = start.model_.encoder.schema.given
        rows = rows.select([name for name in rows.column_names if name in known])
    with (
        naming(str(table)),
        Session(
            rows,
            labels,
            path=output,
            columns=None if model is None else columns,  # which a model has already
            detector=start,
            random_state=random_state,
        ) as session,
    ):
        if session.history:
            say(f"continuing from {len(session.history)} answers in {output}.")
        yield session


def _serve(session: "Session", table: Path, page: tuple[int, bool], model_out: Path | None) -> None:
    """Serve the page until the program is stopped."""
    from fewlier.labelling.page.api import PageApi
    from fewlier.labelling.page.app import serving
    from fewlier.process.signals import said_if_stopped

    def if_stopped() -> str:
        return f"stopped; {len(session.history)} answers are kept."

    port, browser = page
    api = PageApi(session, name=table.name, model_path=model_out)
    with serving(api, port) as address, said_if_stopped(if_stopped):
        say(f"label the rows at {address}")
        say("Ctrl-C ends; answers are kept.")
        if browser:
            import webbrowser

            webbrowser.open(address)
        import threading

        threading.Event().wait()


def _export(table: Path, label: "LabelColumn | None", answers: Path, target: Path) -> None:
    """Write a table with the labels of a file of answers."""
    from fewlier.files.folder import open_table
    from fewlier.files.writing import check_output, create_table
    from fewlier.labelling.answers.labels import Labelled, labels_of_answers
    from fewlier.scoring.files import read_rows

    check_output(target, table, answers)
    with open_table(table) as file:
        rows, before = read_rows(file, label, is_complete=True)
    labelled = Labelled.of(rows, labels_of_answers(answers, rows, before))
    with create_table(target) as write:
        write(labelled.rows)
    say(f"next: {labelled.advice(str(target))}")


def _merge(paths: list[Path], output: Path, table: Path | None, as_json: bool) -> None:
    """Merge files of answers, and list the rows in conflict."""
    from fewlier.labelling.answers.merge import merge

    if table is not None:
        raise UserError(f"Files of answers are merged without a table; got {table}. Leave it out.")
    check_file_output(output, "A file of answers", *paths)
    merged = merge(paths)
    merged.write(output)
    if as_json:
        conflicts = [conflict.to_json() for conflict in merged.conflicts]
        echo_json({"answers": len(merged.answers), "conflicts": conflicts, "path": str(output)})
        return
    echo(f"{len(merged.answers)} answers in {output}, {len(merged.conflicts)} conflicts")
    for conflict in merged.conflicts:
        echo(f"  {conflict}")


def _conclude(session: "Session", table: Path, output: Path, as_json: bool) -> None:
    """Print what came of the session, and what to do next."""
    if as_json:
        echo_json({"answers": str(output), **session.progress.to_json()})
        return
    echo(f"{progress_in_words(session.progress)}\nanswers in {output}")
    model = f"{table.name.split('.')[0]}.fewlier"
    words = ["fewlier", "fit", str(table), "--labels", str(output), "-o", model]
    echo(f"next: {shlex.join(words)}")
