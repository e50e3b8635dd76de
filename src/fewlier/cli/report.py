"""`fewlier report`: make a page of scored rows."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from fewlier.cli import options
from fewlier.cli.inputs import check_file_output, open_table_and_model, read_label
from fewlier.cli.options import option
from fewlier.cli.screen import echo_json, say


def report(  # noqa: PLR0913 - options of a command are its arguments
    table: options.Data,
    model: options.Model,
    output: Annotated[Path, option("HTML file to write.", "FILE", "--output", "-o")],
    label: options.LabelOrNone = None,
    anomaly: options.Anomaly = None,
    normal: options.Normal = None,
    as_json: options.AsJson = False,
) -> None:
    """Write an HTML page: the scores, the oddest rows with reasons, and the model."""
    check_file_output(output, "A report", table, model)
    lost = "no report was written."
    with open_table_and_model(table, model, "reporting", lost) as (file, detector, show):
        from fewlier.files.reading import is_standard
        from fewlier.report.facts import gather
        from fewlier.report.page import require_extra, write_report

        require_extra()
        facts = gather(
            detector,
            file,
            read_label(label, anomaly, normal),
            source=file.name if is_standard(table) else table.name,
            model=model.name,
            progress=show,
        )
        write_report(facts, output)
    n_rows, n_above = len(facts.scores), int(facts.is_above.sum())
    if as_json:
        record = {"report": str(output), "n_rows": n_rows, "n_above_threshold": n_above}
        record |= {"threshold": detector.threshold_, "unit": detector.score_unit_}
        record |= {"by_kind": [asdict(line) for line in facts.by_kind]}
        echo_json(record)
    else:
        say(f"{n_rows} rows scored, {n_above} above the threshold; the report is {output}.")
