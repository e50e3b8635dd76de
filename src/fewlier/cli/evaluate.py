"""`fewlier evaluate`: compare scores with labels."""

from dataclasses import asdict
from typing import TYPE_CHECKING

from fewlier.cli.options import (
    Anomaly,
    AsJson,
    Data,
    Label,
    Model,
    Normal,
    open_table_and_model,
    read_label,
)
from fewlier.cli.screen import echo, echo_json
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


def evaluate(
    table: Data,
    model: Model,
    label: Label,
    anomaly: Anomaly = None,
    normal: Normal = None,
    as_json: AsJson = False,
) -> None:
    """Compare the scores of labelled rows with their labels."""
    nothing = "nothing was lost."
    with open_table_and_model(table, model, "evaluating", nothing) as (file, detector, show):
        from fewlier.files import evaluate_file

        found = evaluate_file(detector, file, read_label(label, anomaly, normal), show)
    if as_json:
        echo_json({**asdict(found), "unit": detector.score_unit_})
    else:
        echo("\n".join(_overall(found, detector.score_unit_) + kind_lines(found.by_kind)))


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
    """Return a table of the kinds of anomaly, with what training knew of each."""
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
