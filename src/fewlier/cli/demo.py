"""`fewlier demo`: everything at once, on a built-in table."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from fewlier.cli.options import RandomState, option
from fewlier.cli.screen import echo, say
from fewlier.errors import UserError

if TYPE_CHECKING:
    from fewlier.cli.demonstration import Split
    from fewlier.detector import AnomalyDetector

MODEL = "tumours.fewlier"
REPORT = "report.html"


def demo(
    labels: Annotated[int, option("Malignant rows to label.", "N", min=2, max=100)] = 6,
    output: Annotated[
        Path, option("Where to write tables, model and report.", "FOLDER", "--output", "-o")
    ] = Path("fewlier-demo"),
    tables: Annotated[
        Path | None, option("Only write train.csv and test.csv to this folder.", "FOLDER")
    ] = None,
    random_state: RandomState = 0,
) -> None:
    """Fit, score, explain and report on a built-in table, with and without labels."""
    from rich.console import Console

    from fewlier.cli.demonstration import TABLES, breast_cancer, run, write_tables

    if tables is not None:
        _make(tables, "--tables")
        write_tables(breast_cancer(labels, random_state), tables)
        echo(f"Wrote {' and '.join(TABLES)} to {tables}; their label column is 'malignant'.")
        return
    _make(output)
    detector, split = run(Console(), labels, random_state)
    write_tables(split, output)
    detector.save(output / MODEL)
    has_report = _report(detector, split, output / REPORT)
    echo(f"\nWrote {', '.join(TABLES)} and {MODEL} to {output}.")
    if has_report:
        echo(f"The same as a page, to open in a browser: {output / REPORT}")
    command = f"fewlier label {output / TABLES[0]} --label malignant -o labels.jsonl"
    echo(f"Find more labels yourself: {command}")


def _make(folder: Path, option: str = "--output") -> None:
    """Make a folder, before any work, that files can be written to."""
    from fewlier.files.writing import check_output

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"{option} must be a folder that can be written; got {str(folder)!r}: "
            f"{error.strerror}. Choose another path."
        ) from error
    check_output(folder / MODEL)


def _report(detector: "AnomalyDetector", split: "Split", path: Path) -> bool:
    """Write the report, where the packages for it are installed; say whether it was."""
    from fewlier.cli.demonstration import LABEL, test_rows
    from fewlier.files.reading import RowsInMemory
    from fewlier.process.progress import no_progress
    from fewlier.report.facts import gather
    from fewlier.report.page import require_extra, write_report
    from fewlier.table.label_column import LabelColumn

    try:
        require_extra()
    except UserError as error:  # the rest of the demonstration needs none of them
        say(f"note: {error}")
        return False
    facts = gather(
        detector,
        RowsInMemory(test_rows(split), "test.csv"),
        LabelColumn(LABEL),
        source="test.csv",
        model=MODEL,
        progress=no_progress,
    )
    write_report(facts, path)
    return True
