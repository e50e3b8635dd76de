"""`Scored`: rows with their scores, made here and read by whatever says something of a row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pyarrow as pa

from fewlier.decision.calibration import Calibration
from fewlier.errors import UserError
from fewlier.process.escape import list_names
from fewlier.score.model import FittedModel
from fewlier.table import Encoded, Table
from fewlier.table.arrays import Bools, Floats, Ints
from fewlier.table.frame import impossible_note, unread_note

ADDED = {
    "anomaly_score": pa.float64(),
    "is_anomaly": pa.bool_(),
    "p_value": pa.float64(),
    "reason": pa.string(),
}
"""Columns that scoring adds, and their types."""


@final
@dataclass(frozen=True, eq=False)
class Scored:
    """Rows with their scores, and what these mean.

    Parameters
    ----------
    rows : Table
        The n rows in the form of the training table.
    encoded : Encoded
        The same as arrays.
    scores : array (n,)
        Anomaly scores.
    p_values : array (n,)
        The chance that a fresh normal row scores at least as high.
    is_anomaly : array (n,)
        Whether a row scores above the threshold.
    """

    rows: Table
    encoded: Encoded
    scores: Floats
    p_values: Floats
    is_anomaly: Bools

    @classmethod
    def of(cls, model: FittedModel, rows: Table, scores: Floats | None = None) -> "Scored":
        """Score rows in the form of the training table, unless their scores are known already."""
        encoded = model.encoder.encode(rows)
        found = model.score(encoded) if scores is None else scores
        return cls.judged(rows, encoded, found, model.calibration)

    @classmethod
    def judged(
        cls, rows: Table, encoded: Encoded, scores: Floats, calibration: Calibration
    ) -> "Scored":
        """Say what known scores mean."""
        found = calibration.p_value(scores), calibration.is_anomaly(scores)
        return cls(rows, encoded, scores, *found)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.scores)

    @property
    def n_impossible(self) -> Ints:
        """Cells of each column whose value the column cannot have, shape (d,)."""
        return np.asarray(self.encoded.impossible.sum(0))

    @property
    def notes(self) -> list[str]:
        """What the user should know of the cells, in sentences."""
        notes = [unread_note(self.rows.unread)] if self.rows.unread else []
        if self.encoded.impossible.any():
            counts = zip(self.rows.names, self.n_impossible.tolist(), strict=True)
            notes.append(impossible_note(dict(counts)))
        return notes

    def take(self, rows: Ints) -> "Scored":
        """Return some of the rows, given by their positions."""
        return Scored(
            self.rows.take(rows),
            self.encoded.take(rows),
            self.scores[rows],
            self.p_values[rows],
            self.is_anomaly[rows],
        )

    def followed_by(self, other: "Scored") -> "Scored":
        """Return these rows, and behind them those of another."""
        return Scored(
            self.rows.followed_by(other.rows),
            self.encoded.followed_by(other.encoded),
            np.concatenate([self.scores, other.scores]),
            np.concatenate([self.p_values, other.p_values]),
            np.concatenate([self.is_anomaly, other.is_anomaly]),
        )

    def columns(self) -> dict[str, Any]:
        """Return score, verdict and p-value of every row, by their names in `ADDED`."""
        return dict(zip(ADDED, (self.scores, self.is_anomaly, self.p_values), strict=False))

    def records(self) -> list[dict[str, Any]]:
        """Return the same as JSON values, row by row."""
        columns = {name: column.tolist() for name, column in self.columns().items()}
        return [
            dict(zip(columns, line, strict=True)) for line in zip(*columns.values(), strict=True)
        ]

    def to_arrow(self, reasons: Sequence[str | None] | None = None) -> pa.Table:
        """Return the columns that scoring adds; that of reasons only if there are any given."""
        columns: Mapping[str, Any] = self.columns() | (
            {} if reasons is None else {"reason": reasons}
        )
        return pa.table(dict(columns), pa.schema(added(with_reason=reasons is not None)))


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
