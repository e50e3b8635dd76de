"""`fewlier inspect`: read a model file without building its network."""

from typing import Any

from fewlier.cli.options import AsJson, ModelFile
from fewlier.cli.screen import echo, echo_json, print_grid
from fewlier.shown import shown

MAX_SHOWN = 40  # columns; a table may have thousands


def inspect(model: ModelFile, as_json: AsJson = False) -> None:
    """Say what a model file holds: columns, labels, threshold, versions."""
    from fewlier.decision.calibration import Threshold
    from fewlier.modelfile.container import opened
    from fewlier.modelfile.manifest import manifest_of
    from fewlier.summary import Summary

    with opened(model) as archive:
        manifest = manifest_of(archive)
        decision = Threshold.from_record(manifest["calibration"])
        summary = Summary.from_record(manifest["extra"].get("summary"), decision)
    facts = {
        "model": str(model),
        "bytes": model.stat().st_size,
        "format_version": manifest["version"],
        "versions": manifest["versions"],
        "density": manifest["density"],
        "selection": manifest["selection"],
        "n_members": len(manifest["members"]),
        "n_held_back": manifest["calibration"]["n_normal_scores"],
        "guarantee": manifest["calibration"]["guarantee"],
        "n_held_back_anomalies": manifest["calibration"]["n_anomaly_scores"],
        "prior": manifest["calibration"]["prior"],
        "memory": _memory(manifest),
        "neighbours": _neighbours(manifest),
        "n_tree_nodes": manifest["forest"]["n_nodes"] if manifest["forest"] else 0,
        **manifest["encoder"]["schema"],
        "parameters": manifest["extra"].get("parameters"),
        "summary": summary.to_json(),
    }
    if as_json:
        echo_json(facts)
    else:
        _print(facts, str(summary))


def _memory(manifest: dict[str, Any]) -> dict[str, int]:
    """Return how many training rows the file keeps, and how large they are."""
    from fewlier.modelfile.manifest import bytes_of, memory_layout
    from fewlier.table import Encoder

    n_rows = manifest["memory"]["n_rows"] if manifest["memory"] else 0
    layout = memory_layout(manifest, Encoder.from_json(manifest["encoder"]))
    return {"n_rows": n_rows, "bytes": bytes_of(layout)}


def _neighbours(manifest: dict[str, Any]) -> dict[str, int]:
    """Return how many training rows the file keeps to compare rows with, and how large they are."""
    from fewlier.modelfile.manifest import bytes_of, neighbours_layout
    from fewlier.table import Encoder

    record = manifest["neighbours"] or {"n_normals": 0, "n_anomalies": 0}
    layout = neighbours_layout(manifest, Encoder.from_json(manifest["encoder"]))
    return {name: record[name] for name in ("n_normals", "n_anomalies")} | {
        "bytes": bytes_of(layout)
    }


def _values(column: dict[str, Any]) -> str:
    """Say what a column can hold, as far as a line has room."""
    if column["date"]:
        source, form = (shown(column["date"][name]) for name in ("source", "form"))
        return f"dates in {source}, written as {form}"
    levels = [shown(str(level)) for level in column["levels"][:6]]
    return ", ".join(levels[:5]) + (", ..." if len(levels) > 5 else "")


def _print(facts: dict[str, Any], summary: str) -> None:
    from fewlier.decision.calibration import meaning

    versions, density, near = facts["versions"], facts["density"], facts["neighbours"]
    echo(
        f"model       {facts['model']}, {facts['bytes'] / 1e6:.1f} MB, format "
        f"{facts['format_version']}\n"
        f"written by  fewlier {versions['fewlier']}, torch {versions['torch']}\n"
        f"density     {density['name']}, hidden units {density['hidden']}; {facts['n_members']} "
        f"members, selection {facts['selection']}\n"
        f"{summary}\n"
        f"p-values    from {facts['n_held_back']} held-back rows; {facts['guarantee']}\n"
        f"probability {meaning(facts['n_held_back_anomalies'], facts['prior'])}\n"
        f"memory      {facts['memory']['n_rows']} rows kept for `fewlier update`, "
        f"{facts['memory']['bytes'] / 1e6:.1f} MB\n"
        f"neighbours  {near['n_normals']} normal and {near['n_anomalies']} anomalous rows kept to "
        f"compare with, {near['bytes'] / 1e6:.1f} MB\n"
        f"trees       {facts['n_tree_nodes']} nodes"
    )
    lines = [
        (column["name"], column["kind"], column["coding"], _values(column))
        for column in facts["columns"]
    ]
    print_grid(("column", "kind", "scored as", "values"), lines, most=MAX_SHOWN)
