"""Options that several commands have, and how their text is read."""

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias, overload

import typer

from fewlier.errors import UserError

if TYPE_CHECKING:
    from fewlier.table.label_column import LabelColumn

Data: TypeAlias = Annotated[
    Path, typer.Argument(help="CSV or Parquet, also gzipped; - is standard input.", metavar="TABLE")
]
Model: TypeAlias = Annotated[
    Path,
    typer.Option("--model", "-m", metavar="MODEL", help="Model that `fewlier fit` has written."),
]
ModelFile: TypeAlias = Annotated[
    Path, typer.Argument(help="Model that `fewlier fit` has written.", metavar="MODEL")
]
ModelOutput: TypeAlias = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Model to write instead of MODEL."),
]
_LABEL = typer.Option(
    metavar="COLUMN", help="Column of labels: 1 anomaly, 0 normal, empty unknown."
)
Label: TypeAlias = Annotated[str, _LABEL]
LabelOrNone: TypeAlias = Annotated[str | None, _LABEL]
Anomaly: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="VALUE",
        help="Label that means anomaly; others are normal. Repeatable.",
    ),
]
Normal: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="VALUE",
        help="Label that means normal; others are kinds of anomalies, or unlabelled with "
        "--anomaly. Repeatable.",
    ),
]
AsJson: TypeAlias = Annotated[
    bool,
    typer.Option("--json", metavar="", help="Print JSON on standard output, for machines."),
]
RandomState: TypeAlias = Annotated[
    int,
    typer.Option(min=0, metavar="N", help="Random seed; the same seed gives the same model."),
]


def check_model_output(path: Path, *inputs: Path) -> None:
    """Refuse, before any work, a path that no model can be written to."""
    from fewlier.table.reading import is_standard
    from fewlier.table.writing import check_output

    if is_standard(path):
        raise UserError("A model must be written to a file; got standard output. Give -o a path.")
    check_output(path, *inputs)


@overload
def read_label(name: str, anomaly: list[str] | None, normal: list[str] | None) -> "LabelColumn": ...


@overload
def read_label(
    name: str | None, anomaly: list[str] | None, normal: list[str] | None
) -> "LabelColumn | None": ...


def read_label(
    name: str | None, anomaly: list[str] | None, normal: list[str] | None
) -> "LabelColumn | None":
    """Return the label column that the options describe."""
    from fewlier.table.label_column import LabelColumn

    if name is not None:
        return LabelColumn(name, tuple(anomaly or ()), tuple(normal or ()))
    for option, values in (("--anomaly", anomaly), ("--normal", normal)):
        if values:
            raise UserError(f"{option} must come with --label, the column to find the value in.")
    return None


def read_columns(declarations: list[str], ignored: list[str]) -> dict[str, str] | None:
    """Read ``visits=count`` or ``amount=1.234,5``, and ``id,note``, which are to be left out.

    A name may have an equals sign, what is said of it has none.
    """
    kinds = dict.fromkeys(read_names(ignored), "ignore")
    for text in declarations:
        name, equals, kind = text.rpartition("=")
        if not equals:
            raise UserError(f"--column must be NAME=KIND, such as visits=count; got {text!r}.")
        if name in kinds:
            raise UserError(f"--column and --ignore must name a column once; got {name!r} again.")
        kinds[name] = kind
    return kinds or None


def read_cell(text: str, columns: Collection[str]) -> tuple[str, str]:
    """Read ``order=A-17``; the name and the value may both have an equals sign."""
    parts = text.split("=")
    splits = [("=".join(parts[:i]), "=".join(parts[i:])) for i in range(1, len(parts))]
    if not splits:
        raise UserError(f"--id must be COLUMN=VALUE, such as order=A-17; got {text!r}.")
    return next((split for split in splits if split[0] in columns), splits[0])


def read_names(lists: list[str]) -> list[str]:
    """Read ``id,timestamp``, given once or more."""
    return [name.strip() for text in lists for name in text.split(",") if name.strip()]
