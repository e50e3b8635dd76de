"""The command that makes a page of scored rows: `report`."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from fewlier.cli.options import Anomaly, AsJson, Data, LabelOrNone, Model, Normal, read_label
from fewlier.cli.screen import progress, say
from fewlier.errors import UserError


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(epilog="Example: fewlier report test.csv -m fraud.fewlier -o report.html")(report)


def report(  # noqa: PLR0913 - options of a command are its arguments
    table: Data,
    model: Model,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="HTML file to write.")
    ],
    label: LabelOrNone = None,
    anomaly: Anomaly = None,
    normal: Normal = None,
    as_json: AsJson = False,
) -> None:
    """Write a page to look at: scores, the oddest rows with reasons, and what the model is."""
    from fewlier.table.reading import is_standard, open_table
    from fewlier.table.writing import check_output

    if is_standard(output):
        raise UserError("A report must be written to a file; got standard output. Give -o a path.")
    check_output(output, table, model)
    with open_table(table) as file:
        from fewlier.detector import AnomalyDetector  # here, so that a wrong path is told at once
        from fewlier.report import gather, write_report
        from fewlier.report.page import require_extra

        require_extra()
        detector = AnomalyDetector.load(model)
        with progress("reporting", "no report was written.") as show:
            facts = gather(
                detector,
                file,
                read_label(label, anomaly, normal),
                source=file.name if is_standard(table) else table.name,
                model=model.name,
                on_batch=show,
            )
            write_report(facts, output)
    n_rows, n_above = len(facts.scores), int(facts.is_above.sum())
    if as_json:
        record = {"report": str(output), "n_rows": n_rows, "n_above_threshold": n_above}
        record |= {"threshold": detector.threshold_, "unit": detector.score_unit_}
        record |= {"by_kind": [asdict(line) for line in facts.by_kind]}
        typer.echo(json.dumps(record))
    else:
        say(f"{n_rows} rows scored, {n_above} above the threshold; the report is {output}.")
