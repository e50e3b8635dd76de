"""Options that several commands have."""

import shlex
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from fewlier.errors import Spelling, spelled_in_python


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
Column: TypeAlias = Annotated[list[str] | None, option("As in `fewlier fit`.", "NAME=KIND")]
Ignore: TypeAlias = Annotated[list[str] | None, option("As in `fewlier fit`.", "NAMES")]
Missing: TypeAlias = Annotated[list[str] | None, option("As in `fewlier fit`.", "[NAME=]VALUE")]
AsJson: TypeAlias = Annotated[bool, option("Print JSON on standard output.", "", "--json")]
RandomState: TypeAlias = Annotated[
    int, option("Random seed; the same seed gives the same model.", "N", min=0)
]


def spelling_of(app: typer.Typer) -> Spelling:
    """Return what writes flags for parameters; one that no command has is written as in Python.

    ``'cost_miss'`` is ``--cost-miss``, ``keep_rows=False`` ``--no-keep-rows``,
    ``missing={'age': '0'}`` ``--missing age=0``, and ``columns={'id': 'ignore'}`` ``--ignore id``.
    """
    flags = cache(lambda: _flags(app))

    def write(name: str, value: Any, column: str | None) -> str:  # noqa: ANN401
        if name == "columns" and value == "ignore" and column and "," not in column:
            return shlex.join(["--ignore", column])  # which splits at commas
        name = "column" if name == "columns" else name
        if name not in flags():
            return spelled_in_python(name, value, column)
        on, off = flags()[name]
        if value is None or isinstance(value, bool):
            return off if value is False else on
        text = value[0] if isinstance(value, list) else value
        return shlex.join([on, f"{text}" if column is None else f"{column}={text}"])

    return write


def _flags(app: typer.Typer) -> dict[str, tuple[str, str]]:
    """Return the flag of each parameter of each command, and the one that switches it off."""
    commands = getattr(typer.main.get_command(app), "commands", {}).values()
    options = [option for command in commands for option in command.params]
    return {
        option.name: (option.opts[0], "".join(option.secondary_opts[:1]))
        for option in options
        if option.opts[0].startswith("--")
    }
