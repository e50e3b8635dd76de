"""`fewlier check`: look at a table before anything is fitted."""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from fewlier.cli.flags import with_declarations
from fewlier.cli.options import (
    Anomaly,
    AsJson,
    Data,
    LabelOrNone,
    Normal,
    option,
    read_columns,
    read_label,
)
from fewlier.cli.screen import echo, echo_json, print_grid
from fewlier.shown import shown

if TYPE_CHECKING:
    from fewlier.table.check import TableCheck

MAX_SHOWN = 100  # columns; a table may have thousands
PLACEHOLDER = "VALUE"  # of a label, which only the user knows


def check(  # noqa: PLR0913 - options of a command are its arguments
    table: Data,
    label: LabelOrNone = None,
    anomaly: Anomaly = None,
    normal: Normal = None,
    column: Annotated[list[str] | None, option("As for `fewlier fit`.", "NAME=KIND")] = None,
    ignore: Annotated[list[str] | None, option("As for `fewlier fit`.", "NAMES")] = None,
    as_json: AsJson = False,
) -> None:
    """Say what a table holds, what `fit` would make of it, and with which options."""
    from fewlier.table.check import check_file
    from fewlier.table.reading import is_standard, open_table

    labels, columns = read_label(label, anomaly, normal), read_columns(column or [], ignore or [])
    with open_table(table) as file:
        kinds = _kinds(columns or {})
        found = _in_flags(check_file(file, labels, kinds))
    values = [("--anomaly", value) for value in anomaly or []]
    values += [("--normal", value) for value in normal or []]
    options = ["--label", label] if label else []
    if found.label and found.label.problem:
        values = [("--anomaly", PLACEHOLDER)]
    options += [text for pair in values for text in pair]
    given = {f"{name}={kind}": f"{name}={(columns or {})[name]}" for name, kind in kinds.items()}
    options += [given.get(text, text) for text in found.options]
    command = ["fewlier", "fit", str(table), *options]
    stem = "" if is_standard(table) else Path(table).name.split(".")[0]
    command += ["-o", f"{stem or 'model'}.fewlier"]
    if as_json:
        line = None if found.is_hopeless else shlex.join(command)
        echo_json(found.to_json() | {"command": line})
    else:
        _print(found, file.name, shlex.join(command))


def _in_flags(found: "TableCheck") -> "TableCheck":
    """Write flags for what declares columns and labels."""
    columns = tuple(replace(line, why=with_declarations(line.why)) for line in found.columns)
    label = found.label and replace(found.label, problem=with_declarations(found.label.problem))
    return replace(found, columns=columns, label=label)


def _kinds(columns: dict[str, str]) -> dict[str, str]:
    """Write kinds for the names of distributions, which need torch: it is loaded for them alone."""
    from fewlier.table.columns import Kind
    from fewlier.table.declarations import IGNORE

    words = {said.partition(":")[0] for said in columns.values()} - {*Kind, IGNORE}
    if not any(word.isidentifier() for word in words):
        return columns
    from fewlier.settings import split_conditionals

    return split_conditionals(columns)[0]


def _print(found: "TableCheck", name: str, command: str) -> None:
    n_columns = len(found.columns)
    echo(
        f"{name}: {_counted(found.n_rows, 'row')}, {_counted(n_columns, 'column')}"
        f"{' beside the label' if found.label else ''}; {found.n_repeated:,} of the "
        f"rows {'repeats' if found.n_repeated == 1 else 'repeat'} an earlier one"
    )
    lines = [
        (
            column.name,
            column.kind,
            f"{column.n_missing / found.n_rows:.1%}" if column.n_missing else "",
            "\n".join([column.why, *column.remarks]),
        )
        for column in found.columns
    ]
    headings = "column", "taken for", "missing", "because"
    print_grid(headings, lines, right=["missing"], most=MAX_SHOWN)
    _print_labels(found)
    _print_outlook(found, command)


def _print_labels(found: "TableCheck") -> None:
    from fewlier.table.label_column import listed_counts

    label = found.label
    if label is None:
        echo("labels      none: all rows would be unlabelled")
        return
    n_empty = found.n_rows - sum(label.values.values())
    values = [listed_counts(label.values)] if label.values else []
    values += [f"empty {n_empty:,}"] if n_empty else []
    echo(f"labels      {shown(label.name)}: {shown('; '.join(values))}")
    if label.meanings:
        echo(f"            {', '.join(f'{n:,} {word}' for word, n in label.meanings.items())}")
    for remark in label.remarks:
        echo(f"            {shown(remark)}")


def _print_outlook(found: "TableCheck", command: str) -> None:
    from fewlier.table.schema import LEFT_OUT

    kinds = [column.kind for column in found.columns]
    n_left = kinds.count(LEFT_OUT)
    n_used = len(kinds) - n_left
    if found.problems:
        refusals = "\n            ".join(f"refuse: {shown(text)}" for text in found.problems)
        echo(f"fit would   {refusals}")
    else:
        left_out = f" and leave out {n_left:,}" if n_left else ""
        echo(f"fit would   learn from {_counted(n_used, 'column')}{left_out}")
        echo(f"            take roughly {_rough(found.seconds)} on two cores; it measures first")
    if found.is_hopeless:
        echo("command     none until that is mended")
        return
    echo(f"command     {shown(command)}")
    if found.label and found.label.problem:
        echo(f"            with the label that means anomaly for {PLACEHOLDER}, or with --normal")
    for name, forms in found.readings.items():
        first, second = (shlex.join(["--column", f"{name}={form}"]) for form in forms)
        echo(f"            decide: {shown(first)} or {shown(second)}")


def _counted(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def _rough(seconds: float) -> str:
    if seconds < 90:
        return f"{10 * max(round(seconds / 10), 1)} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{round(seconds / 3600)} h"
