"""`fewlier update`: add labelled rows to a model."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fewlier.cli import options
from fewlier.cli.fit import save
from fewlier.cli.inputs import check_file_output, open_table_and_model, read_label
from fewlier.cli.screen import announcing, progress
from fewlier.errors import UserError

if TYPE_CHECKING:
    from fewlier.detector import AnomalyDetector


def update(  # noqa: PLR0913 - options of a command are its arguments
    model: options.ModelFile,
    table: Annotated[
        Path,
        typer.Argument(
            help="CSV or Parquet, also gzipped; - is standard input; or a file of answers from "
            "`fewlier label`, which holds the rows.",
            metavar="TABLE",
        ),
    ],
    label: options.LabelOrNone = None,
    anomaly: options.Anomaly = None,
    normal: options.Normal = None,
    output: options.ModelOutput = None,
    as_json: options.AsJson = False,
) -> None:
    """Add labelled rows to a model; the table it was fitted to is not needed."""
    from fewlier.labelling.answers.journal import is_answers

    target, as_before = output or model, "the model is as before."
    check_file_output(target, "A model", table)
    column = read_label(label, anomaly, normal)
    if is_answers(table):
        if column is not None:
            raise UserError(f"{table}: answers are labels; got --label too. Leave it out.")
        detector = _update_by_answers(model, table)
    elif column is None:
        raise UserError(
            f"{table}: rows to learn from must have labels; name their column by --label."
        )
    else:
        with open_table_and_model(table, model, "updating", as_before) as (file, detector, show):
            from fewlier.scoring.files import update_file

            update_file(detector, file, column, progress=announcing("training", show))
    save(detector, target, as_json)


def _update_by_answers(model: Path, answers: Path) -> "AnomalyDetector":
    """Let a model learn from a file of answers."""
    from fewlier.detector import AnomalyDetector
    from fewlier.files.reading import naming
    from fewlier.labelling.answers.labels import answered_rows

    rows, labels = answered_rows(answers)
    detector = AnomalyDetector.load(model)
    known = detector.model_.encoder.schema.given
    with naming(str(answers)), progress("updating", "the model is as before.") as show:
        rows = rows.select([name for name in rows.column_names if name in known])
        detector.update(rows, labels, progress=announcing("training", show))
    return detector
