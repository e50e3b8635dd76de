"""Commands that judge and place decisions: `evaluate` and `threshold`."""

import json
from dataclasses import asdict
from typing import Annotated

import typer

from fewlier.cli.options import (
    Anomaly,
    AsJson,
    Data,
    Label,
    Model,
    ModelFile,
    ModelOutput,
    check_model_output,
)
from fewlier.cli.screen import progress
from fewlier.errors import UserError


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command(epilog="Example: fewlier evaluate test.csv -m fraud.fewlier --label fraud")(
        evaluate
    )
    app.command(epilog="Example: fewlier threshold fraud.fewlier --false-alarm-rate 0.05")(
        threshold
    )


def evaluate(
    table: Data, model: Model, label: Label, anomaly: Anomaly = None, as_json: AsJson = False
) -> None:
    """Compare the scores of labelled rows with their labels."""
    from fewlier.table.reading import open_table

    with open_table(table) as file:
        from fewlier.detector import AnomalyDetector
        from fewlier.files import LabelColumn, evaluate_file

        detector = AnomalyDetector.load(model)
        with progress("evaluating", "nothing was lost.") as show:
            found = evaluate_file(detector, file, LabelColumn(label, anomaly), show)
    if as_json:
        typer.echo(json.dumps({**asdict(found), "unit": detector.score_unit_}))
        return
    precision = "no row is above it" if found.precision is None else f"{found.precision:.1%}"
    typer.echo(
        f"rows               {found.n_normal} normal, {found.n_anomaly} anomalous, "
        f"{found.n_unlabelled} unlabelled and left out\n"
        f"AUC                {found.auc:.4f}\n"
        f"average precision  {found.average_precision:.4f}\n"
        f"threshold          {found.threshold:.4g} {detector.score_unit_}\n"
        f"  recall           {found.recall:.1%} of the anomalies are above it\n"
        f"  false alarms     {found.false_alarm_rate:.2%} of the normal rows are\n"
        f"  precision        {precision}"
    )


def threshold(  # noqa: PLR0913 - options of a command are its arguments
    model: ModelFile,
    false_alarm_rate: Annotated[
        float | None, typer.Option(help="Share of fresh normal rows that may score above it.")
    ] = None,
    contamination: Annotated[
        float | None,
        typer.Option(
            help="Share of the training rows that should score above it; with costs, share of "
            "anomalies among the rows to come."
        ),
    ] = None,
    cost_miss: Annotated[
        float | None, typer.Option(help="What an anomaly below it costs; with --cost-alarm.")
    ] = None,
    cost_alarm: Annotated[
        float | None, typer.Option(help="What a normal row above it costs; with --cost-miss.")
    ] = None,
    output: ModelOutput = None,
    as_json: AsJson = False,
) -> None:
    """Move the threshold of a model without refitting."""
    from fewlier.detector import AnomalyDetector

    by_cost = cost_miss is not None or cost_alarm is not None
    if not by_cost and (false_alarm_rate is None) == (contamination is None):
        raise UserError(
            "A threshold must be set by --false-alarm-rate or by --contamination, or by "
            "--cost-miss and --cost-alarm."
        )
    target = output or model
    check_model_output(target)
    detector = AnomalyDetector.load(model)
    before = detector.threshold_
    detector.set_threshold(
        false_alarm_rate=false_alarm_rate,
        contamination=contamination,
        cost_miss=cost_miss,
        cost_alarm=cost_alarm,
    )
    detector.save(target)
    after, unit = detector.threshold_, detector.score_unit_
    if as_json:
        facts = {"model": str(target), "threshold_before": before, "threshold": after}
        facts |= {"unit": unit, "rule": detector.summary_.rule}
        typer.echo(json.dumps(facts))
    else:
        rule = detector.summary_.rule
        typer.echo(f"threshold {before:.4g} -> {after:.4g} {unit} ({rule}), in {target}")
