"""Options that several commands have."""

from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer


def option(text: str, metavar: str = "", *flags: str, panel: str | None = None, **more: Any) -> Any:  # noqa: ANN401
    """Return an option with a help text; typer names it by its parameter unless `flags` do."""
    return typer.Option(*flags, metavar=metavar, help=text, rich_help_panel=panel, **more)


_MODEL = "Model file from `fewlier fit`."
_LABEL = option("Label column: 1 is an anomaly, 0 is normal, empty is unknown.", "COLUMN")

Data: TypeAlias = Annotated[
    Path, typer.Argument(help="CSV or Parquet, also gzipped; - is standard input.", metavar="TABLE")
]
Tables: TypeAlias = Annotated[
    Path,
    typer.Argument(
        help="CSV or Parquet, also gzipped; a folder of such files, or a pattern in quotes: "
        "'data/*.parquet'; - is standard input.",
        metavar="TABLE",
    ),
]
Model: TypeAlias = Annotated[Path, option(_MODEL, "MODEL", "--model", "-m")]
ModelFile: TypeAlias = Annotated[Path, typer.Argument(help=_MODEL, metavar="MODEL")]
ModelOutput: TypeAlias = Annotated[
    Path | None, option("Write the model here and leave MODEL alone.", "FILE", "--output", "-o")
]
Label: TypeAlias = Annotated[str, _LABEL]
LabelOrNone: TypeAlias = Annotated[str | None, _LABEL]
Anomaly: TypeAlias = Annotated[
    list[str] | None,
    option("Label that means anomaly; other labels are normal. Repeatable.", "VALUE"),
]
Normal: TypeAlias = Annotated[
    list[str] | None,
    option(
        "Label that means normal; other labels are kinds of anomaly, or unlabelled if "
        "--anomaly is given too. Repeatable.",
        "VALUE",
    ),
]
AsJson: TypeAlias = Annotated[bool, option("Print JSON on standard output.", "", "--json")]
RandomState: TypeAlias = Annotated[
    int, option("Random seed; the same seed gives the same model.", "N", min=0)
]
