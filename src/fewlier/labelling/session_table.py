"""`SessionTable`: the table to label, as the user knows it and as scores read it."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, final

import numpy as np

from fewlier.detector import AnomalyDetector
from fewlier.errors import UserError, raise_all
from fewlier.fitting.recipe import ignored_columns, read_schema
from fewlier.labelling.answers.answer import Cell
from fewlier.reasons.reason import Reason
from fewlier.score.model import FittedModel
from fewlier.table import Encoded, Encoder, Schema, Table
from fewlier.table.arrays import Floats, Ints
from fewlier.table.cells import Cells, is_text, missing
from fewlier.table.date_parts import DatePart
from fewlier.table.frame import has_names
from fewlier.table.labels import ANOMALY, Labels
from fewlier.table.matching import match_noting_unread, match_rows, warn_of_left_out

Expected: TypeAlias = dict[str, Any]
"""The fields of a `Reason` that say what was expected."""

_N_CATEGORIES = 3
_ENDS = (0.5, 0.05, 0.95)
_N_MEASURED = 20_000  # rows that scales of columns are taken from


@final
@dataclass(frozen=True, eq=False)
class SessionTable:
    """A table to label.

    Parameters
    ----------
    table : Table
        All columns, as the user knows them.
    matched : Table
        The columns that scores read, in the form of the schema.
    encoder : Encoder
        How rows become arrays.
    labels : Labels
        What was known of the rows before the first question.
    model : FittedModel or None
        A model to go on from.
    is_named : bool
        Whether the columns have names that the user gave.
    """

    table: Table
    matched: Table
    encoder: Encoder
    labels: Labels
    model: FittedModel | None = None
    is_named: bool = True

    @classmethod
    def of(cls, X: object, y: object, detector: AnomalyDetector, seed: int) -> "SessionTable":
        """Read rows and labels, as a fit of the detector would, or as the fitted one scores."""
        parameters = detector.get_params(deep=False)
        problems: dict[str, UserError] = {}
        table = Table.of(X, problems=problems)
        labels = Labels.of(y, table.n_rows, X)
        if hasattr(detector, "model_"):
            model: FittedModel = detector.model_
            named = hasattr(detector, "feature_names_in_")
            matched = match_rows(X, model.encoder.schema, was_named=named)
            return cls(table, matched, model.encoder, labels, model, has_names(X))
        for name in ignored_columns(parameters["columns"]):
            problems.pop(name, None)
        is_normal = labels.codes != ANOMALY
        schema = read_schema(parameters, table, is_normal, problems)
        raise_all(list(problems.values()))
        warn_of_left_out(schema)
        matched = match_noting_unread(table, schema)
        rows = np.random.default_rng(seed).permutation(np.flatnonzero(is_normal))[:_N_MEASURED]
        encoder = Encoder.fit(schema, matched.take(rows))
        return cls(table, matched, encoder, labels, is_named=has_names(X))

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.table.n_rows

    @property
    def schema(self) -> Schema:
        """The columns that scores read."""
        return self.encoder.schema

    def take(self, rows: Ints) -> object:
        """Return some rows as a detector takes them."""
        return as_given(self.table.take(rows), is_named=self.is_named)

    def encode(self, rows: Ints) -> Encoded:
        """Encode some rows."""
        return self.encoder.encode(self.matched.take(rows))

    def cells(self, row: int) -> dict[str, Cell]:
        """Return a row as the user knows it."""
        return cells_of(self.table, row)

    def reasons(
        self, row: int, contributions: Floats, expected: Mapping[str, Expected]
    ) -> tuple[Reason, ...]:
        """Return the columns of a row with what they add to its score, the largest first.

        `expected` has what a model expected of it, by column; else what is typical stands there.
        """
        found = []
        for d in np.argsort(-contributions, kind="stable").tolist():
            name = self.schema.names[d]
            cells = self.matched.written.get(name, self.matched.cells[name])
            own = Reason(name, _cell(cells[row]), float(contributions[d]))
            found.append(own._replace(**expected.get(name, self._typical[name])))
        return tuple(found)

    @cached_property
    def _typical(self) -> dict[str, Expected]:
        rows = np.random.default_rng(0).permutation(self.n_rows)[:_N_MEASURED]
        return typical_values(self.schema, self.matched.take(rows))


def cells_of(table: Table, row: int) -> dict[str, Cell]:
    """Return all columns of a row."""
    return {name: _cell(cells[row]) for name, cells in table.cells.items()}


def as_given(table: Table, *, is_named: bool) -> object:
    """Return a table as a detector takes it: a pyarrow table, or an array where it has no names."""
    if not is_named:
        return np.column_stack(list(table.cells.values()))
    import pyarrow as pa

    columns = {name: pa.array(cells, from_pandas=True) for name, cells in table.cells.items()}
    for name in table.categorical:
        columns[name] = columns[name].dictionary_encode()
    return pa.table(columns)


def _cell(cell: Any) -> Cell:  # noqa: ANN401 - of a column of any type
    if cell is None or isinstance(cell, str):
        return cell
    return None if np.isnan(cell) else float(cell)


def expected_values(detector: AnomalyDetector, row: object) -> dict[str, Expected]:
    """Return what a detector expected of each column of one row, given the others."""
    explanation = detector.explain(row)
    reasons = explanation.tops([0], n=len(explanation.columns))[0]
    return {reason.column: dict(list(reason._asdict().items())[3:]) for reason in reasons}


def typical_values(schema: Schema, table: Table) -> dict[str, Expected]:
    """Return what is typical of each column of a table in the form of its schema."""
    return {c.name: _typical(table.cells[c.name], c.date) for c in schema.columns}


def _typical(cells: Cells, date: DatePart | None) -> Expected:
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
