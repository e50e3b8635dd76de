"""Commands that score tables: `score` and `explain`."""

import json
import math
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fewlier.cli.labelled import kind_lines
from fewlier.cli.options import (
    Anomaly,
    AsJson,
    Data,
    LabelOrNone,
    Model,
    Normal,
    read_cell,
    read_label,
)
from fewlier.cli.screen import echo, progress, say, text_console
from fewlier.errors import UserError
from fewlier.shown import shown

if TYPE_CHECKING:
    from fewlier.detector import AnomalyDetector
    from fewlier.files import ScoreReport, TopRows

N_EXPLAINED = 10


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command(epilog="Example: fewlier score new.csv -m fraud.fewlier -o scored.csv")(score)
    app.command(epilog="Example: fewlier explain new.csv -m fraud.fewlier --row 17")(explain)


def score(
    table: Data,
    model: Model,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="CSV or Parquet to write; - is standard output.",
        ),
    ] = Path("-"),
    fdr: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE", help="Flag as many rows as keep this share of false alarms among them."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Add to each row its anomaly_score, is_anomaly, p_value and reason, in batches."""
    from fewlier.table.reading import is_standard, open_table
    from fewlier.table.writing import check_output, create_table, writes_parquet

    if as_json and is_standard(output):
        raise UserError("--json needs -o: rows and JSON cannot both go to standard output.")
    check_output(output, table, model)
    typed = writes_parquet(output)
    with open_table(table) as file:
        from fewlier.detector import (  # here, so that a wrong path is told at once
            AnomalyDetector,
            no_discovery,
        )
        from fewlier.files import score_file

        detector = AnomalyDetector.load(model)
        delimiter = file.layout.delimiter if file.layout else ","
        with create_table(output, delimiter) as write, progress("scoring", _lost(output)) as show:
            report = score_file(detector, file, write, typed=typed, fdr=fdr, on_batch=show)
    calibration = detector.model_.calibration
    if fdr is not None and fdr < calibration.smallest_rate:
        say(f"warning: {no_discovery(calibration, fdr)}")
    if report.drift.found:
        say(f"warning: {report.drift}")
    if report.n_impossible:
        cells = ", ".join(f"{n} in {shown(name)}" for name, n in report.n_impossible.items())
        say(f"note: values never seen in training, or impossible, count as odd: {cells}.")
    if report.passed_through:
        say(f"note: not columns of the model, passed through: {_names(report.passed_through)}.")
    facts = {
        "output": str(output),
        "n_rows": report.n_rows,
        "n_above_threshold": report.n_above_threshold,
        "threshold": report.threshold if math.isfinite(report.threshold) else None,
        "fdr": fdr,
        "unit": detector.score_unit_,
        "passed_through": list(report.passed_through),
        "n_impossible": report.n_impossible,
        "unread": report.unread,
        "drift": report.drift.to_json(),
    }
    if as_json:
        typer.echo(json.dumps(facts))
    else:
        say(f"{report.n_rows} rows scored, {_flagged(report, detector.score_unit_, fdr)}.")


def _flagged(report: "ScoreReport", unit: str, fdr: float | None) -> str:
    """Say how many rows are above the threshold, and which one."""
    if math.isinf(report.threshold):
        return f"none is flagged: none is odd enough for a false-discovery rate of {fdr:g}"
    rule = "" if fdr is None else f", at a false-discovery rate of {fdr:g}"
    return f"{report.n_above_threshold} above the threshold of {report.threshold:.4g} {unit}{rule}"


def _names(columns: Iterable[str]) -> str:
    return ", ".join(map(shown, columns))


def _lost(output: Path) -> str:
    is_stream = output == Path("-")
    return "standard output ends early." if is_stream else "no output was written."


def explain(  # noqa: PLR0913 - options of a command are its arguments
    table: Data,
    model: Model,
    top: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Rows to explain, the oddest first. Default: 10, or all "
            "that --row and --id choose.",
        ),
    ] = None,
    row: Annotated[
        list[int] | None,
        typer.Option(min=0, metavar="N", help="Explain this row, counted from 0. Repeatable."),
    ] = None,
    id_: Annotated[
        list[str] | None,
        typer.Option(
            "--id", metavar="COLUMN=VALUE", help="Explain rows with this value. Repeatable."
        ),
    ] = None,
    columns: Annotated[
        int, typer.Option(min=1, metavar="N", help="Columns to name for each row.")
    ] = 3,
    label: LabelOrNone = None,
    anomaly: Anomaly = None,
    normal: Normal = None,
    as_json: AsJson = False,
) -> None:
    """Say which columns made the oddest rows odd, or rows of your choice."""
    from fewlier.table.reading import open_table

    with open_table(table) as file:
        from fewlier.table.choice import RowChoice

        cells = [read_cell(text, file.columns) for text in id_ or []]
        choice = RowChoice(file, row or [], cells) if row or cells else None
        from fewlier.detector import AnomalyDetector
        from fewlier.files import explain_file

        detector = AnomalyDetector.load(model)
        n_rows = top or (None if choice else N_EXPLAINED)
        with progress("explaining", "nothing was lost.") as show:
            column = read_label(label, anomaly, normal)
            rows = explain_file(detector, file, n_rows, column, choice, show)
    if as_json:
        facts = {"threshold": detector.threshold_, "unit": detector.score_unit_}
        facts |= {"rows": rows.records(detector, columns)}
        if rows.by_kind is not None:
            facts["by_kind"] = [asdict(line) for line in rows.by_kind]
        typer.echo(json.dumps(facts))
    else:
        _print(rows, detector, columns)


def _print(rows: "TopRows", detector: "AnomalyDetector", n_reasons: int) -> None:
    from rich import box
    from rich.table import Table as Grid

    from fewlier.files import VISIBLE

    echo(
        f"Scores are in {detector.score_unit_}; a row above {detector.threshold_:.4g} is an "
        "anomaly. Rows are counted from 0."
    )
    grid = Grid(box=box.SIMPLE)
    for heading in ("row", "score", "", "p-value"):
        grid.add_column(heading, justify="right")
    for heading in (*(["label"] if rows.labels else []), "what adds most to the score"):
        grid.add_column(heading)
    tops = rows.explanation.tops(n=n_reasons)
    for record, (first, *more) in zip(rows.records(detector, n_reasons), tops, strict=True):
        reasons = "\n".join(map(str, [first, *(r for r in more if r.contribution >= VISIBLE)]))
        score = f"{record['anomaly_score']:.2f}"
        verdict = "anomaly" if record["is_anomaly"] else ""
        p_value = f"{record['p_value']:.3g}"
        label = [shown(record["kind"] or record["label"] or "", 40)] if rows.labels else []
        grid.add_row(str(record["row"]), score, verdict, p_value, *label, reasons)
    text_console().print(grid)
    if rows.by_kind:
        echo("\n".join(kind_lines(rows.by_kind)))
