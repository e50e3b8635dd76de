"""What was expected of the cells of a row: by a model, or what is usual."""

from collections import Counter
from typing import Any, TypeAlias

import numpy as np

from fewlier.detector import AnomalyDetector
from fewlier.reasons.reason import Reason
from fewlier.table import Schema, Table
from fewlier.table.cells import Cells, is_text, missing
from fewlier.table.date_parts import DatePart

Expected: TypeAlias = dict[str, Any]
"""The fields of a `Reason` that say what was expected."""

_N_CATEGORIES = 3
_ENDS = (0.5, 0.05, 0.95)


def expected_values(detector: AnomalyDetector, row: object) -> dict[str, Expected]:
    """Return what a detector expected of each column of one row, given the others."""
    explanation = detector.explain(row)
    reasons = explanation.tops([0], n=len(explanation.columns))[0]
    return {reason.column: dict(list(reason._asdict().items())[3:]) for reason in reasons}


def usual_values(schema: Schema, table: Table) -> dict[str, Expected]:
    """Return what is usual of each column of a table in the form of its schema."""
    return {c.name: _usual(table.cells[c.name], c.date) for c in schema.columns}


def _usual(cells: Cells, date: DatePart | None) -> Expected:
    """Take the middle 90 % of numbers, or the most frequent categories."""
    gaps = missing(cells)
    known = cells[~gaps]
    found: Expected = {"expected_missing": float(gaps.mean())}
    if date is not None:
        found |= {"aspect": date.aspect.value, "form": date.form.pattern}
    if is_text(cells):
        counts = Counter(known.tolist()).most_common(_N_CATEGORIES)
        return found | {"expected_categories": {name: n / len(known) for name, n in counts} or None}
    if not len(known):
        return found
    ends = np.quantile(known, _ENDS)
    names = Reason._fields[3:6]
    return found | dict(zip(names, (date.decode(ends) if date else ends).tolist(), strict=True))
