"""`fewlier explain`: which columns made rows odd."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from fewlier.cli import options
from fewlier.cli.evaluate import print_kinds
from fewlier.cli.inputs import open_table_and_model, read_label
from fewlier.cli.options import option
from fewlier.cli.screen import echo, echo_json, print_grid
from fewlier.process.escape import shown

if TYPE_CHECKING:
    from fewlier.detector import AnomalyDetector
    from fewlier.scoring.files import ExplainedRows

N_EXPLAINED = 10


def explain(  # noqa: PLR0913 - options of a command are its arguments
    table: options.Data,
    model: options.Model,
    top: Annotated[
        int | None,
        option(
            "Rows to explain, the oddest first. Default: 10, or all that --row chooses.",
            "N",
            min=1,
        ),
    ] = None,
    row: Annotated[
        list[int] | None, option("Explain this row, counted from 0. Repeatable.", "N", min=0)
    ] = None,
    columns: Annotated[int, option("Columns to name for each row.", "N", min=1)] = 3,
    label: options.LabelOrNone = None,
    anomaly: options.Anomaly = None,
    normal: options.Normal = None,
    as_json: options.AsJson = False,
) -> None:
    """Say which columns make the oddest rows, or the rows you choose, odd."""
    nothing = "nothing was lost."
    with open_table_and_model(table, model, "explaining", nothing) as (file, detector, show):
        from fewlier.scoring.files import explain_file

        n_rows = top or (None if row else N_EXPLAINED)
        labels = read_label(label, anomaly, normal)
        rows = explain_file(detector, file, n_rows, labels, row or (), show)
    if as_json:
        facts = {"threshold": detector.threshold_, "unit": detector.score_unit_}
        facts |= {"rows": rows.records(columns)}
        if rows.by_kind is not None:
            facts["by_kind"] = [asdict(line) for line in rows.by_kind]
        echo_json(facts)
    else:
        _print(rows, detector, columns)


def _print(rows: "ExplainedRows", detector: "AnomalyDetector", n_reasons: int) -> None:
    echo(
        f"Scores are in {detector.score_unit_}; a row above {detector.threshold_:.4g} is an "
        "anomaly. Rows are counted from 0."
    )
    lines = []
    records = rows.records(n_reasons)
    for record, reasons in zip(records, rows.explanation.reasons(n_reasons), strict=True):
        lines.append(
            [
                str(record["row"]),
                f"{record['anomaly_score']:.2f}",
                "anomaly" if record["is_anomaly"] else "",
                f"{record['p_value']:.3g}",
                *([shown(record["kind"] or record["label"] or "", 40)] if rows.labels else []),
                "\n".join(map(str, reasons)),
            ]
        )
    label = ["label"] if rows.labels else []
    headings = ["row", "score", "", "p-value", *label, "what adds most to the score"]
    print_grid(headings, lines, right=headings[:4])
    print_kinds(rows.by_kind or ())
