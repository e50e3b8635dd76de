"""`fewlier threshold`: move the threshold of a model."""

from typing import Annotated

from fewlier.cli import options
from fewlier.cli.inputs import check_file_output
from fewlier.cli.options import option
from fewlier.cli.screen import echo_facts, echo_json


def threshold(  # noqa: PLR0913 - options of a command are its arguments
    model: options.ModelFile,
    false_alarm_rate: Annotated[
        float | None, option("Share of new normal rows that may score above it.", "SHARE")
    ] = None,
    contamination: Annotated[
        float | None,
        option(
            "Share of new rows that should score above it, if they are like the training rows; "
            "with costs, the share of anomalies among new rows.",
            "SHARE",
        ),
    ] = None,
    cost_miss: Annotated[
        float | None, option("Cost of a missed anomaly; needs --cost-alarm.", "COST")
    ] = None,
    cost_alarm: Annotated[
        float | None, option("Cost of a false alarm; needs --cost-miss.", "COST")
    ] = None,
    output: options.ModelOutput = None,
    as_json: options.AsJson = False,
) -> None:
    """Move the threshold of a model without refitting."""
    target = output or model
    check_file_output(target, "A model")
    from fewlier.detector import AnomalyDetector

    detector = AnomalyDetector.load(model)
    before = detector.threshold_
    detector.set_threshold(
        false_alarm_rate=false_alarm_rate,
        contamination=contamination,
        cost_miss=cost_miss,
        cost_alarm=cost_alarm,
    )
    detector.save(target)
    after, unit, decision = detector.threshold_, detector.score_unit_, detector.summary_.decision
    if as_json:
        facts = {"model": str(target), "threshold_before": before, "threshold": after}
        echo_json(facts | {"unit": unit} | decision.to_json())
    else:
        moved = f"{before:.4g} -> {after:.4g} {unit} ({decision.meaning}), in {target}"
        echo_facts([("threshold", moved), *decision.facts])
