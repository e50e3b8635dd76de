"""What a request gets back: scores, verdicts, p-values and, if asked for, reasons."""

import json
from typing import Any, NamedTuple

import pyarrow as pa

from fewlier.reasons.reason import Reason
from fewlier.service.arrow import write_arrow
from fewlier.table.arrays import Bools, Floats
from fewlier.table.cells import number_text

_PAIR = pa.struct([("category", pa.string()), ("probability", pa.float64())])
_REASON = pa.struct(
    [
        ("column", pa.string()),
        ("value", pa.string()),
        *((name, pa.float64()) for name in Reason._fields[2:6]),
        ("expected_categories", pa.list_(_PAIR)),
        ("expected_missing", pa.float64()),
        ("aspect", pa.string()),
        ("form", pa.string()),
        ("unlike_training", pa.bool_()),
        ("text", pa.string()),
    ]
)


class Answer(NamedTuple):
    """What a model says of n rows.

    Parameters
    ----------
    facts : dict of str to str
        Which model it was: its name and hash.
    scores, is_anomaly, p_values : arrays (n,)
        The decision about each row.
    reasons : list of n lists of Reason, or None
        Why, if that was asked for.
    notes : tuple of str
        What the caller should know of the rows.
    """

    facts: dict[str, str]
    scores: Floats
    is_anomaly: Bools
    p_values: Floats
    reasons: list[list[Reason]] | None
    notes: tuple[str, ...]

    def columns(self) -> dict[str, list[Any]]:
        """Return what is said of each row, column by column, as JSON values."""
        found: dict[str, list[Any]] = {
            "anomaly_score": self.scores.tolist(),
            "is_anomaly": self.is_anomaly.tolist(),
            "p_value": self.p_values.tolist(),
        }
        if self.reasons is not None:
            found["reasons"] = [[why.to_json() for why in row] for row in self.reasons]
        return found

    def to_json(self) -> bytes:
        """Return one object for each row."""
        columns = self.columns()
        rows = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values())]  # noqa: B905
        whole = {**self.facts, "rows": rows}
        return to_json(whole | {"notes": list(self.notes)} if self.notes else whole)

    def to_arrow(self) -> bytes:
        """Return an Arrow stream; model and notes are in the metadata of its schema."""
        arrays = {
            "anomaly_score": pa.array(self.scores),
            "is_anomaly": pa.array(self.is_anomaly),
            "p_value": pa.array(self.p_values),
        }
        if self.reasons is not None:
            records = [[_arrow_record(why) for why in row] for row in self.reasons]
            arrays["reasons"] = pa.array(records, pa.list_(_REASON))
        return write_arrow(arrays, self.facts | {"notes": json.dumps(self.notes)})


def to_json(value: object) -> bytes:
    """Return JSON, which has no NaN."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode("ascii")


def _arrow_record(why: Reason) -> dict[str, Any]:
    likely = why.expected_categories
    value = why.value if isinstance(why.value, str) or why.value is None else number_text(why.value)
    pairs = likely and [{"category": name, "probability": p} for name, p in likely.items()]
    return why.to_json() | {"value": value, "expected_categories": pairs}
