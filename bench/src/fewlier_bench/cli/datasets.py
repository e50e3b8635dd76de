"""`fewlier-bench datasets`: list and download the paper's tables."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fewlier.cli.options import AsJson
from fewlier.cli.screen import echo, progress, say, text_console

if TYPE_CHECKING:
    from fewlier_bench.data import Variant


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    commands = typer.Typer(
        help="List and download the tables of the paper.",
        epilog="Example: fewlier-bench datasets list",
        no_args_is_help=True,
    )
    commands.command("list", epilog="Example: fewlier-bench datasets list --json")(list_tables)
    commands.command("get", epilog="Example: fewlier-bench datasets get all")(get)
    app.add_typer(commands, name="datasets")


def list_tables(as_json: AsJson = False) -> None:
    """List the 16 tables: rows, columns, anomalies, source, and whether each is here."""
    from fewlier_bench.data import list_datasets

    records: list[dict[str, Any]] = []
    for entry in list_datasets():
        other = entry.deduplicated
        records.append(
            {
                "name": entry.name,
                **_facts(entry.paper),
                "deduplicated": None if other is None else _facts(other),
            }
        )
    if as_json:
        typer.echo(json.dumps(records))
    else:
        _print(records)


def get(
    name: Annotated[str, typer.Argument(metavar="NAME|all", help="A table of the paper, or all.")],
    as_json: AsJson = False,
) -> None:
    """Download a table and its variant without duplicates, unless they are here; check both."""
    from fewlier_bench.data import get_datasets, list_datasets

    names = [entry.name for entry in list_datasets()] if name == "all" else [name]
    with progress("downloading", "archives that had come whole are kept.") as show:
        tables = get_datasets(names, show)
    records = [
        {
            "name": table.name,
            "n_rows": table.X.shape[0],
            "n_columns": table.X.shape[1],
            "n_anomalies": int(table.y.sum()),
            "sha256": table.sha256,
            "path": str(table.path),
        }
        for table in tables
    ]
    if as_json:
        typer.echo(json.dumps(records))
        return
    for record in records:
        echo(
            "{name}: {n_rows} rows, {n_columns} columns, {n_anomalies} anomalies, in {path}".format(
                **record
            )
        )
    say(f"{len(records)} tables are here, with the expected counts.")


def _facts(variant: "Variant") -> dict[str, Any]:
    from fewlier_bench.data.store import locate

    path = locate(variant)
    return {
        "n_rows": variant.n_rows,
        "n_columns": variant.n_columns,
        "n_anomalies": variant.n_anomalies,
        "source": variant.member,
        "path": None if path is None else str(path),
    }


def _print(records: list[dict[str, Any]]) -> None:
    from rich.table import Table as Grid

    grid, numbers = Grid(box=None, pad_edge=False), {"rows", "columns", "anomalies"}
    for heading in ("table", "rows", "columns", "anomalies", "source", "here"):
        grid.add_column(heading, justify="right" if heading in numbers else "left")
    for record in records:
        rows = [(record["name"], record)]
        if record["deduplicated"] is not None:
            rows.append(("  deduplicated", record["deduplicated"]))
        for name, facts in rows:
            counts = [str(facts[key]) for key in ("n_rows", "n_columns", "n_anomalies")]
            here = "no" if facts["path"] is None else "yes"
            grid.add_row(name, *counts, _short(facts["source"]), here)
    text_console().print(grid)
    echo("The source is a file of the collection of Campos et al. (2016); --json has its path.")


def _short(member: str) -> str:
    """Return `norm_20_v01` for `semantic/Pima/Pima_norm_20_v01.arff`."""
    _, name, file = member.split("/")
    return file.removeprefix(f"{name}_").removesuffix(".arff")
