"""What a model file holds, told without building its network."""

from pathlib import Path
from typing import Any

import numpy as np

from fewlier.decision.calibration import Calibration
from fewlier.files.atomic import PathLike
from fewlier.fitting.summary import Summary
from fewlier.modelfile.container import VERSION, opened
from fewlier.modelfile.state import State
from fewlier.table import Encoder


def inspect_file(path: PathLike) -> tuple[dict[str, Any], str]:
    """Return what a file holds as JSON values, and the lines of its summary."""
    with opened(path) as state:
        facts, summary = _facts(state)
    return facts | {"model": str(path), "bytes": Path(path).stat().st_size}, summary


def _facts(state: State) -> tuple[dict[str, Any], str]:
    """Return what a file holds as JSON values, and the lines of its summary."""
    model, versions = state.part("model"), state.part("versions")
    ensemble, parts = model.part("ensemble"), model.part("parts")
    density = ensemble.part("density")
    name = density.text("name")
    calibration = Calibration.from_state(model.part("calibration"))
    schema = Encoder.from_state(model.part("encoder")).schema
    summary = Summary.from_state(state.part("summary"), calibration)
    facts = {
        "format_version": VERSION,
        "versions": {name: versions.text(name) for name in ("fewlier", "torch")},
        "density": {"name": name, **density.record},
        "selection": ensemble.text("selection"),
        "n_members": len(ensemble.items("members")),
        "n_held_out": len(calibration.normal_scores),
        "guarantee": calibration.promise,
        "n_held_out_anomalies": len(calibration.anomaly_scores),
        "prior": calibration.prior,
        "probability": calibration.meaning,
        "kept_rows": _sizes(state.optional("kept_rows"), {"n_rows": "labels"}),
        "neighbours": _sizes(
            parts.part("neighbours") if "neighbours" in parts.record else None,
            {"n_normals": "views.0.normals.points", "n_anomalies": "views.0.anomalies.points"},
        ),
        "shares": _shares(parts),
        **schema.state().flat()[0],
        "parameters": state.part("parameters").record,
        "summary": summary.to_json(),
    }
    return facts, f"{summary}\n{summary.workings}"


def _shares(parts: State) -> dict[str, float]:
    """Return the share of each part in the score; the density has what the others leave."""
    others = {name: parts.part(name).number("share") for name in parts.record}
    return others | {"density": 1 - sum(others.values())}


def _sizes(part: "State | None", counted: dict[str, str]) -> dict[str, int]:
    """Return how long some arrays of a part are, and the bytes of all of them; 0 without one.

    Of points, only different ones count: some are repeated to fill a group.
    """
    arrays = {} if part is None else part.arrays
    found = {name: arrays[array] for name, array in counted.items() if array in arrays}
    lengths = {n: len(np.unique(a, axis=0) if a.ndim == 2 else a) for n, a in found.items()}
    n_bytes = sum(array.nbytes for array in arrays.values())
    return dict.fromkeys(counted, 0) | lengths | {"bytes": n_bytes}
