"""The columns that scoring adds to rows: score, verdict, p-value and, if wanted, the reason."""

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from fewlier.decision.calibration import Calibration
from fewlier.errors import UserError
from fewlier.process.escape import list_names
from fewlier.reasons.explanation import Explanation
from fewlier.table.arrays import Floats, Ints

ADDED = {
    "anomaly_score": pa.float64(),
    "is_anomaly": pa.bool_(),
    "p_value": pa.float64(),
    "reason": pa.string(),
}
"""Columns that scoring adds, and their types."""
N_REASONS = 3
"""Columns that a reason names, at most."""


def added(with_reason: bool) -> dict[str, pa.DataType]:
    """Return the columns that scoring adds, the reason only where it is wanted."""
    return {name: dtype for name, dtype in ADDED.items() if with_reason or name != "reason"}


def check_free(names: Sequence[str]) -> None:
    """Refuse a table that has columns of the names that scoring adds."""
    if taken := [name for name in ADDED if name in names]:
        raise UserError(
            f"the table already has columns that scoring adds: {list_names(taken)}. Score the "
            "original table, or rename them."
        )


def judge(
    scores: Floats,
    calibration: Calibration,
    threshold: float,
    explain: Callable[[Ints], Explanation] | None,
) -> pa.Table:
    """Return the columns that scoring adds to rows with these scores.

    `explain` explains some of the rows, given by their positions: those above the threshold have a
    reason. Without it there is no such column.
    """
    is_anomaly = scores > threshold
    columns: list[object] = [scores, is_anomaly, calibration.p_value(scores)]
    if explain:
        reasons: list[str | None] = [None] * len(scores)
        flagged = np.flatnonzero(is_anomaly)
        found = explain(flagged).reasons(N_REASONS) if len(flagged) else []
        for row, why in zip(flagged, found, strict=True):
            reasons[row] = "; ".join(map(str, why))
        columns.append(reasons)
    types = added(with_reason=explain is not None)
    return pa.table(columns, pa.schema(types.items()))
