"""`fewlier inspect`: read a model file without building its network."""

from typing import TYPE_CHECKING, Any

from fewlier.cli.options import AsJson, ModelFile
from fewlier.cli.screen import echo, echo_json, print_grid
from fewlier.shown import shown

if TYPE_CHECKING:
    from fewlier.state import State

MAX_SHOWN = 40  # columns; a table may have thousands


def inspect(model: ModelFile, as_json: AsJson = False) -> None:
    """Say what a model file holds: columns, labels, threshold, versions."""
    from fewlier.modelfile.container import opened

    with opened(model) as state:
        facts, summary = _facts(state)
    facts |= {"model": str(model), "bytes": model.stat().st_size}
    if as_json:
        echo_json(facts)
    else:
        _print(facts, summary)


def _facts(state: "State") -> tuple[dict[str, Any], str]:
    """Return what a file holds as JSON values, and the lines of its summary."""
    from fewlier.decision.calibration import Calibration
    from fewlier.modelfile.container import VERSION
    from fewlier.summary import Summary
    from fewlier.table import Encoder

    model, versions = state.part("model"), state.part("versions")
    ensemble = model.part("ensemble")
    density = ensemble.part("density")
    name = density.text("name")
    calibration = Calibration.from_state(model.part("calibration"))
    schema = Encoder.from_state(model.part("encoder")).schema
    summary = Summary.from_state(state.part("summary"), calibration.at)
    facts = {
        "format_version": VERSION,
        "versions": {name: versions.text(name) for name in ("fewlier", "torch")},
        "density": {"name": name, **density.record},
        "selection": ensemble.text("selection"),
        "n_members": len(ensemble.items("members")),
        "n_held_out": len(calibration.normal_scores),
        "guarantee": calibration.guarantee,
        "n_held_out_anomalies": len(calibration.anomaly_scores),
        "prior": calibration.prior,
        "probability": calibration.meaning,
        "kept_rows": _sizes(state.optional("kept_rows"), {"n_rows": "labels"}),
        "neighbours": _sizes(
            model.optional("neighbours"),
            {"n_normals": "views.0.normals.points", "n_anomalies": "views.0.anomalies.points"},
        ),
        "shares": _shares(model),
        **schema.state().flat()[0],
        "parameters": state.part("parameters").record,
        "summary": summary.to_json(),
    }
    return facts, str(summary)


def _shares(model: "State") -> dict[str, float]:
    """Return the share of each part in the score; the density has what the others leave."""
    parts = ((name, model.optional(name)) for name in ("neighbours", "trees", "rules"))
    others = {name: part.number("share") for name, part in parts if part}
    return others | {"density": 1 - sum(others.values())}


def _sizes(part: "State | None", counted: dict[str, str]) -> dict[str, int]:
    """Return how long some arrays of a part are, and the bytes of all of them; 0 without one.

    Of points, only different ones count: some are repeated to fill a group.
    """
    import numpy as np

    arrays = {} if part is None else part.arrays
    found = {name: arrays[array] for name, array in counted.items() if array in arrays}
    lengths = {n: len(np.unique(a, axis=0) if a.ndim == 2 else a) for n, a in found.items()}
    n_bytes = sum(array.nbytes for array in arrays.values())
    return dict.fromkeys(counted, 0) | lengths | {"bytes": n_bytes}


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
