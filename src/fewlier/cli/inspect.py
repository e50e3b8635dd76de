"""`fewlier inspect`: read a model file without building its network."""

from typing import Any

from fewlier.cli.options import AsJson, ModelFile
from fewlier.cli.screen import echo, echo_json, print_grid
from fewlier.process.escape import shown

MAX_SHOWN = 40  # columns; a table may have thousands


def inspect(model: ModelFile, as_json: AsJson = False) -> None:
    """Say what a model file holds: columns, labels, threshold, versions."""
    from fewlier.modelfile.inspection import inspect_file

    facts, summary = inspect_file(model)
    if as_json:
        echo_json(facts)
    else:
        _print(facts, summary)


def _values(column: dict[str, Any]) -> str:
    """Say what a column can hold, as far as a line has room."""
    if column["date"]:
        source, form = (shown(column["date"][name]) for name in ("source", "form"))
        return f"dates in {source}, written as {form}"
    levels = [shown(str(level)) for level in column["levels"][:6]]
    return ", ".join(levels[:5]) + (", ..." if len(levels) > 5 else "")


def _print(facts: dict[str, Any], summary: str) -> None:
    versions, density = facts["versions"], facts["density"]
    kept, near = facts["kept_rows"], facts["neighbours"]
    sizes = shown(", ".join(v if n == "name" else f"{n} {v}" for n, v in density.items()))
    echo(
        f"model       {facts['model']}, {facts['bytes'] / 1e6:.1f} MB, format "
        f"{facts['format_version']}\n"
        f"written by  fewlier {versions['fewlier']}, torch {versions['torch']}\n"
        f"density     {sizes}; {facts['n_members']} members, selection {facts['selection']}\n"
        f"{summary}\n"
        f"p-values    from {facts['n_held_out']} held-out rows, none below "
        f"{1 / (facts['n_held_out'] + 1):.2g}; {facts['guarantee']}\n"
        f"probability {facts['probability']}\n"
        f"kept rows   {kept['n_rows']} for `fewlier update`, {kept['bytes'] / 1e6:.1f} MB\n"
        f"neighbours  {near['n_normals']} normal and {near['n_anomalies']} anomalous rows kept to "
        f"compare with, {near['bytes'] / 1e6:.1f} MB\n"
        f"score       {', '.join(f'{n} {share:.0%}' for n, share in facts['shares'].items())}"
    )
    lines = [
        (shown(column["name"]), column["kind"], column["coding"], _values(column))
        for column in facts["columns"]
    ]
    print_grid(("column", "kind", "scored as", "values"), lines, most=MAX_SHOWN)
