"""`fewlier evaluate`: compare scores with labels."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

from fewlier.cli import options
from fewlier.cli.inputs import open_table_and_model, read_label
from fewlier.cli.screen import echo_facts, echo_json, print_grid
from fewlier.process.escape import shown

if TYPE_CHECKING:
    from fewlier.decision.evaluation import Evaluation, KindEvaluation

# Kinds that a terminal shows, and characters of their names.
_MAX_KINDS, _MAX_NAME = 40, 40
_STAND_IN = (
    "no row is labelled normal, so the unlabelled rows stand in for normals. Anomalies hidden "
    "among them count as false alarms: the true figures are likely better."
)


def evaluate(
    table: options.Data,
    model: options.Model,
    label: options.Label,
    anomaly: options.Anomaly = None,
    normal: options.Normal = None,
    as_json: options.AsJson = False,
) -> None:
    """Compare the scores of labelled rows with their labels."""
    nothing = "nothing was lost."
    with open_table_and_model(table, model, "evaluating", nothing) as (file, detector, show):
        from fewlier.scoring.files import evaluate_file

        found = evaluate_file(detector, file, read_label(label, anomaly, normal), show)
    if as_json:
        echo_json({**asdict(found), "unit": detector.score_unit_})
    else:
        echo_facts(_facts(found, detector.score_unit_), width=19)
        print_kinds(found.by_kind)


def _facts(found: "Evaluation", unit: str) -> Iterator[tuple[str, str]]:
    has_normals = found.compared_with == "normal"
    rows = f"{found.n_normal} normal, {found.n_anomaly} anomalous, {found.n_unlabelled} unlabelled"
    yield "rows", f"{rows}{' and left out' if has_normals else ''}"
    if not has_normals:
        yield "note", _STAND_IN
    yield "AUC", f"{found.auc:.4f}"
    yield "average precision", f"{found.average_precision:.4f}"
    yield "threshold", f"{found.threshold:.4g} {unit}"
    yield "  recall", f"{found.recall:.1%} of the anomalies are above it"
    alarms = f"{found.false_alarm_rate:.2%} of the {found.compared_with} rows are above it"
    yield "  false alarms", alarms
    has_any = found.precision is not None
    yield "  precision", f"{found.precision:.1%}" if has_any else "no row is above it"


def print_kinds(kinds: "tuple[KindEvaluation, ...]") -> None:
    """Print a table of the kinds of anomaly, with what training knew of each."""
    from fewlier.decision.evaluation import telling

    lines = []
    for line in telling(kinds):
        remarks = [] if line.n_in_training is None else [_trained(line.n_in_training)]
        remarks += ["few rows: a rough guess"] if line.is_few else []
        figures = str(line.n_rows), f"{line.auc:.4f}", f"{line.recall:.1%}"
        lines.append((shown(line.kind, _MAX_NAME), *figures, "; ".join(remarks)))
    if lines:
        headings = "by kind", "rows", "AUC", "recall", ""
        print_grid(headings, lines, right=headings[1:4], most=_MAX_KINDS, noun="kinds")


def _trained(n_rows: int) -> str:
    return f"{n_rows} labelled in training" if n_rows else "never labelled in training"
