"""`fewlier check`: look at a table before anything is fitted."""

import shlex
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fewlier.cli import options
from fewlier.cli.inputs import read_columns, read_label, read_missing
from fewlier.cli.screen import echo, echo_facts, echo_json, print_grid

if TYPE_CHECKING:
    from fewlier.fitting.check import TableCheck

MAX_SHOWN = 100  # columns; a table may have thousands
MAX_ALIKE = 3  # remarks on a column that differ in the value alone
PLACEHOLDER = "VALUE"  # for a label that only the user knows


def check(  # noqa: PLR0913 - options of a command are its arguments
    table: options.Data,
    label: options.LabelOrNone = None,
    anomaly: options.Anomaly = None,
    normal: options.Normal = None,
    column: options.Column = None,
    ignore: options.Ignore = None,
    missing: options.Missing = None,
    as_json: options.AsJson = False,
) -> None:
    """Look at a table before fitting: what it holds, and what `fit` would make of it."""
    from fewlier.files.folder import open_table
    from fewlier.files.reading import is_standard
    from fewlier.fitting.check import check_file

    labels, columns = read_label(label, anomaly, normal), read_columns(column or [], ignore or [])
    with open_table(table) as file:
        kinds = _kinds(columns or {})
        stand_ins = read_missing(missing or [], file.columns, label)
        found = check_file(file, labels, kinds, stand_ins)
    values = [("--anomaly", value) for value in anomaly or []]
    values += [("--normal", value) for value in normal or []]
    if found.label and found.label.problem:
        values = [("--anomaly", PLACEHOLDER)]
    said = {  # a distribution by the name that the user gave
        name: (columns or {})[name] if kinds.get(name) == kind else kind
        for name, kind in found.declarations.items()
    }
    given = [text for pair in ([("--label", label)] if label else []) + values for text in pair]
    given += [
        *_declaring(said),
        *(part for value in missing or () for part in ("--missing", value)),
    ]
    stem = "" if is_standard(table) else Path(table).name.split(".")[0]
    output = ["-o", f"{stem or 'model'}.fewlier"]
    command = shlex.join(["fewlier", "fit", str(table), *given, *output])
    if as_json:
        echo_json(found.to_json() | {"command": None if found.is_hopeless else command})
    else:
        _print(found, file.name, command)


def _declaring(said: dict[str, str]) -> Iterator[str]:
    """Write flags that declare columns; `--ignore` takes several, and splits at commas."""
    ignored = [name for name, kind in said.items() if kind == "ignore" and "," not in name]
    if ignored:
        yield from ("--ignore", ",".join(ignored))
    for name, kind in said.items():
        if name not in ignored:
            yield from ("--column", f"{name}={kind}")


def _kinds(columns: dict[str, str]) -> dict[str, str]:
    """Write kinds for the names of distributions, which need torch: it is loaded for them alone."""
    from fewlier.table.columns import Kind
    from fewlier.table.declarations import IGNORE

    words = {said.partition(":")[0] for said in columns.values()} - {*Kind, IGNORE}
    if not any(word.isidentifier() for word in words):
        return columns
    from fewlier.fitting.recipe import split_conditionals

    return split_conditionals(columns)[0]


def _print(found: "TableCheck", name: str, command: str) -> None:
    echo(
        f"{name}: {_counted(found.n_rows, 'row')}, {_counted(len(found.columns), 'column')}"
        f"{' besides the label' if found.label else ''}; {found.n_repeated:,} of the "
        f"rows {'repeats' if found.n_repeated == 1 else 'repeat'} an earlier one"
    )
    lines = [
        (
            column.name,
            column.kind,
            _share(column.n_missing, found.n_rows),
            "\n".join(filter(None, [column.why, *_in_few(column.remarks)])),
        )
        for column in found.columns
    ]
    headings = "column", "taken for", "missing", "because"
    print_grid(headings, lines, right=["missing"], most=MAX_SHOWN)
    echo_facts([("labels", _labels(found)), ("look at", found.notes), ("fit would", _fit(found))])
    if not found.problems:
        echo_facts([("fit time", f"{_rough(found.seconds)} on two cores")])
    echo_facts([("command", _command(found, command))])


def _share(n: int, n_rows: int) -> str:
    return "" if not n else "<0.1%" if 2000 * n < n_rows else f"{n / n_rows:.1%}"


def _in_few(remarks: Sequence[str]) -> list[str]:
    """Keep the first of remarks that say the same of different values, and count the others."""
    alike: dict[str, list[str]] = defaultdict(list)
    for remark in remarks:
        alike[remark.rpartition("'")[2]].append(remark)
    found = []
    for some in alike.values():
        n_more = len(some) - MAX_ALIKE
        found += some[:MAX_ALIKE] + [f"and {n_more} more"] * (n_more > 0)
    return found


def _labels(found: "TableCheck") -> Iterator[str]:
    from fewlier.table.label_column import listed_counts

    label = found.label
    if label is None:
        yield "none: all rows would be unlabelled"
        return
    n_empty = found.n_rows - sum(label.values.values())
    values = [listed_counts(label.values)] if label.values else []
    yield f"{label.name}: {'; '.join(values + ([f'empty {n_empty:,}'] if n_empty else []))}"
    if label.meanings:
        yield ", ".join(f"{n:,} {word}" for word, n in label.meanings.items())
    yield from label.remarks


def _fit(found: "TableCheck") -> Iterator[str]:
    from fewlier.table.schema import LEFT_OUT

    if found.problems:
        yield from (f"refuse: {problem}" for problem in found.problems)
        return
    n_left = sum(column.kind == LEFT_OUT for column in found.columns)
    left_out = f" and leave out {n_left:,}" if n_left else ""
    yield f"learn from {_counted(len(found.columns) - n_left, 'column')}{left_out}"


def _command(found: "TableCheck", command: str) -> Iterator[str]:
    if found.is_hopeless:
        yield "none until this is fixed"
        return
    yield command
    if found.label and found.label.problem:
        yield f"with the label that means anomaly for {PLACEHOLDER}, or with --normal"
    for name, forms in found.readings.items():
        first, second = (shlex.join(["--column", f"{name}={form}"]) for form in forms)
        yield f"decide: {first} or {second}"


def _counted(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def _rough(seconds: float) -> str:
    if seconds < 5:
        return "a few seconds"
    if seconds < 90:
        return f"roughly {10 * max(round(seconds / 10), 1)} s"
    minutes = round(seconds / 60)
    return f"roughly {minutes} min" if seconds < 5400 else f"roughly {round(minutes / 60)} h"
