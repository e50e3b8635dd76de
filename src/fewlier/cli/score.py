"""`fewlier score`: add scores to the rows of a table."""

import math
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from fewlier.cli import options
from fewlier.cli.inputs import open_table_and_model
from fewlier.cli.options import option
from fewlier.cli.screen import echo_json, progress, say
from fewlier.errors import UserError
from fewlier.process.escape import shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from fewlier.files.folder import TableFolder
    from fewlier.scoring.batches import ScoreReport
    from fewlier.scoring.folders import ScoreJobs

CLUSTER = "Cluster"


def score(  # noqa: PLR0913 - options of a command are its arguments
    table: options.Tables,
    model: options.Model,
    output: Annotated[
        Path,
        option(
            "CSV or Parquet to write; - is standard output. A folder, if TABLE is one.",
            "FILE",
            "--output",
            "-o",
        ),
    ] = Path("-"),
    overwrite: Annotated[
        bool,
        option("Empty the output folder first, if it holds files.", "", "--overwrite"),
    ] = False,
    engine: Annotated[
        Literal["ray"] | None,
        option("Score the files of a folder on a cluster: ray.", "NAME", panel=CLUSTER),
    ] = None,
    address: Annotated[
        str | None,
        option(
            "Address of the cluster; auto finds a running one. Default: start one here.",
            "ADDRESS",
            panel=CLUSTER,
        ),
    ] = None,
    workers: Annotated[
        int | None,
        option("Processes that score. Default: one per core.", "N", panel=CLUSTER, min=1),
    ] = None,
    fdr: Annotated[
        float | None,
        option("Flag as many rows as possible, of which this share may be false alarms.", "SHARE"),
    ] = None,
    rate: Annotated[
        float | None, typer.Option("--false-alarm-rate", "--contamination", hidden=True)
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Add to each row its anomaly_score, is_anomaly, p_value and reason, in batches.

    A folder or a pattern is scored file by file; the output folder is complete with _SUCCESS in it.
    """
    from fewlier.files.folder import TableFolder

    if rate is not None:
        raise UserError(
            "The threshold must be set in the model before; got a rate for one table. Move it: "
            f"fewlier threshold {shlex.quote(str(model))} --false-alarm-rate {rate:g}"
        )
    if as_json and str(output) == "-":
        raise UserError("--json needs -o: rows and JSON cannot both go to standard output.")
    folder = TableFolder.find(table)
    if folder is None:
        _refuse_for_a_file(overwrite=overwrite, engine=engine)
        report, unit = _score_file(table, model, output, fdr)
    else:
        _check_folder(folder, output, model, overwrite=overwrite)
        make = _engine(engine, model, address, workers)
        report, unit = _score_folder(folder, model, output, fdr, make)
    _warn(report)
    if as_json:
        echo_json({"output": str(output), "fdr": fdr, "unit": unit} | report.to_json())
    else:
        say(f"{report.n_rows} rows scored, {_flagged(report, unit, fdr)}.")


def _score_file(
    table: Path, model: Path, output: Path, fdr: float | None
) -> tuple["ScoreReport", str]:
    from fewlier.files.reading import is_standard
    from fewlier.files.writing import check_output, create_table, writes_parquet

    check_output(output, table, model)
    lost = "standard output ends early." if is_standard(output) else "no output was written."
    with open_table_and_model(table, model, "scoring", lost) as (file, detector, show):
        from fewlier.scoring.files import score_file

        typed, delimiter = writes_parquet(output), file.delimiter or ","
        with create_table(output, delimiter) as write:
            report = score_file(detector, file, write, typed=typed, fdr=fdr, progress=show)
    return report, detector.score_unit_


def _refuse_for_a_file(*, overwrite: bool, engine: str | None) -> None:
    if overwrite:
        raise UserError("--overwrite is for folders; a file is always replaced. Leave it out.")
    if engine:
        raise UserError(
            "--engine shares out the files of a folder, so TABLE must be a folder or a pattern; "
            "got one file. Leave --engine out, or split the file."
        )


def _check_folder(folder: "TableFolder", output: Path, model: Path, *, overwrite: bool) -> None:
    """Refuse an output that cannot be written, and say which files will not be scored."""
    from fewlier.files.writing import check_folder_output

    check_folder_output(output, folder.root, model, overwrite=overwrite)
    folder.check_output(output)
    for note in folder.notes:
        say(f"note: {note}")


def _engine(
    engine: str | None, model: Path, address: str | None, workers: int | None
) -> "Callable[[], ScoreJobs] | None":
    """Return what makes the workers; nothing is started before the table and the model are read."""
    if engine is None:
        for flag, value in (("--address", address), ("--workers", workers)):
            if value is not None:
                raise UserError(f"{flag} must come with --engine, such as --engine ray.")
        return None
    from fewlier.engines.ray import RayWorkers

    return lambda: RayWorkers(model, address, workers).score


def _score_folder(
    folder: "TableFolder",
    model: Path,
    output: Path,
    fdr: float | None,
    engine: "Callable[[], ScoreJobs] | None",
) -> tuple["ScoreReport", str]:
    from fewlier.detector import AnomalyDetector
    from fewlier.scoring.folders import score_folder, score_jobs

    detector = AnomalyDetector.load(model)
    score = engine() if engine else score_jobs
    with progress("scoring", "no output was written.") as show:
        report = score_folder(detector, folder, output, fdr=fdr, score=score, progress=show)
    return report, detector.score_unit_


def _warn(report: "ScoreReport") -> None:
    if report.drift.found:
        say(f"warning: {report.drift}")
    if report.n_impossible:
        from fewlier.table.frame import impossible_note

        counts = {shown(name): n for name, n in report.n_impossible.items()}
        say(f"note: {impossible_note(counts)}")
    if report.passed_through:
        names = ", ".join(shown(name) or "one without a name" for name in report.passed_through)
        say(f"note: not columns of the model, passed through: {names}.")


def _flagged(report: "ScoreReport", unit: str, fdr: float | None) -> str:
    """Say how many rows are above the threshold, and which threshold that is."""
    if math.isinf(report.threshold):
        return f"none flagged at a false-discovery rate of {fdr:g}"
    rule = "" if fdr is None else f", at a false-discovery rate of {fdr:g}"
    return f"{report.n_above_threshold} above the threshold of {report.threshold:.4g} {unit}{rule}"
