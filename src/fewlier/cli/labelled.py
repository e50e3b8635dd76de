"""Commands that judge and place decisions: `evaluate` and `threshold`."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from fewlier.cli.options import (
    Anomaly,
    AsJson,
    Data,
    Label,
    Model,
    ModelFile,
    ModelOutput,
    Normal,
    check_model_output,
    read_label,
)
from fewlier.cli.screen import echo, progress
from fewlier.errors import UserError
from fewlier.shown import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fewlier.decision.evaluation import Evaluation, KindEvaluation

# Kinds that a terminal shows, and characters of their names.
_MAX_KINDS, _MAX_NAME = 40, 40
_STAND_IN = (
    "no row is labelled normal, so the unlabelled rows stand in for normals. Anomalies hidden "
    "among them count as false alarms: the true figures are likely better."
)


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command(epilog="Example: fewlier evaluate test.csv -m fraud.fewlier --label fraud")(
        evaluate
    )
    app.command(epilog="Example: fewlier threshold fraud.fewlier --false-alarm-rate 0.05")(
        threshold
    )


def evaluate(
    table: Data,
    model: Model,
    label: Label,
    anomaly: Anomaly = None,
    normal: Normal = None,
    as_json: AsJson = False,
) -> None:
    """Compare the scores of labelled rows with their labels."""
    from fewlier.table.reading import open_table

    with open_table(table) as file:
        from fewlier.detector import AnomalyDetector
        from fewlier.files import evaluate_file

        detector = AnomalyDetector.load(model)
        with progress("evaluating", "nothing was lost.") as show:
            column = read_label(label, anomaly, normal)
            found = evaluate_file(detector, file, column, show)
    if as_json:
        typer.echo(json.dumps({**asdict(found), "unit": detector.score_unit_}))
        return
    lines = _overall(found, detector.score_unit_) + kind_lines(found.by_kind)
    echo("\n".join(lines))


def _overall(found: "Evaluation", unit: str) -> list[str]:
    precision = "no row is above it" if found.precision is None else f"{found.precision:.1%}"
    rows = f"{found.n_normal} normal, {found.n_anomaly} anomalous, {found.n_unlabelled} unlabelled"
    has_normals = found.compared_with == "normal"
    return [
        f"rows               {rows}{' and left out' if has_normals else ''}",
        *([] if has_normals else [f"note               {_STAND_IN}"]),
        f"AUC                {found.auc:.4f}",
        f"average precision  {found.average_precision:.4f}",
        f"threshold          {found.threshold:.4g} {unit}",
        f"  recall           {found.recall:.1%} of the anomalies are above it",
        f"  false alarms     {found.false_alarm_rate:.2%} of the {found.compared_with} rows are",
        f"  precision        {precision}",
    ]


def kind_lines(kinds: "Sequence[KindEvaluation]") -> list[str]:
    """Return a table of the kinds, with what is known of each in training."""
    if not kinds:
        return []
    names = [shown(line.kind, _MAX_NAME) for line in kinds[:_MAX_KINDS]]
    width = max(16, *map(len, names))
    lines = [f"{'by kind':<{width + 2}} {'rows':>7} {'AUC':>7} {'recall':>7}"]
    for name, line in zip(names, kinds, strict=False):
        remarks = [] if line.n_in_training is None else [_trained(line.n_in_training)]
        remarks += ["few rows: a rough guess"] if line.is_few else []
        figures = f"{line.n_rows:>7} {line.auc:>7.4f} {line.recall:>7.1%}"
        lines.append(f"  {name:<{width}} {figures}  {'; '.join(remarks)}".rstrip())
    n_more = len(kinds) - len(names)
    return lines + ([f"  ... and {n_more} more kinds; --json has all."] if n_more else [])


def _trained(n_rows: int) -> str:
    return f"{n_rows} labelled in training" if n_rows else "never labelled in training"


def threshold(  # noqa: PLR0913 - options of a command are its arguments
    model: ModelFile,
    false_alarm_rate: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="Share of fresh normal rows that may score above it."),
    ] = None,
    contamination: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Share of the training rows that should score above it; with costs, share of "
            "anomalies among the rows to come.",
        ),
    ] = None,
    cost_miss: Annotated[
        float | None,
        typer.Option(metavar="COST", help="What an anomaly below it costs; with --cost-alarm."),
    ] = None,
    cost_alarm: Annotated[
        float | None,
        typer.Option(metavar="COST", help="What a normal row above it costs; with --cost-miss."),
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
        facts |= {"unit": unit} | detector.summary_.decision.to_json()
        typer.echo(json.dumps(facts))
    else:
        rule = detector.summary_.decision.meaning
        echo(f"threshold {before:.4g} -> {after:.4g} {unit} ({rule}), in {target}")
