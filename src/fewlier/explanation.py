"""Contributions per column: which columns made a row odd."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np
import numpy.typing as npt

from fewlier.model import FittedModel
from fewlier.table import Table

if TYPE_CHECKING:
    import pyarrow as pa

Floats = npt.NDArray[np.float64]


class Reason(NamedTuple):
    """What one column adds to the score of one row; `value` is None where the cell is missing."""

    column: str
    value: float | str | None
    contribution: float

    def __str__(self) -> str:
        """Return the reason in words, such as ``visits = 912: +14.2``."""
        return f"{self.column} {self._state}: {self.contribution:+.1f}"

    @property
    def _state(self) -> str:
        if self.value is None:
            return "is missing"
        return f"= {self.value}" if isinstance(self.value, str) else f"= {self.value:.5g}"


@final
@dataclass(frozen=True, eq=False)
class Explanation:
    """Why n rows have their scores.

    ``baseline + contributions.sum(1) + remainder`` equals ``score``. Contributions are centred on
    what normal rows get, so that a column that is always hard to predict does not look guilty.

    Attributes
    ----------
    columns : tuple of str
        Names of the D columns.
    contributions : array (n, D)
        What each column adds to the score.
    remainder : array (n,)
        What belongs to the row and to no column.
    baseline : float
        The score that contributions start from.
    unit : str
        Unit of all of these.
    remainder_name : str
        What the remainder is, e.g. "(latent code)".
    meaning : str
        What contributions and remainder mean with the density at hand, in a sentence.
    """

    table: Table
    contributions: Floats
    remainder: Floats
    baseline: float
    unit: str
    remainder_name: str
    meaning: str

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self.table.names

    @property
    def score(self) -> Floats:
        """The rows' anomaly scores, shape (n,)."""
        score: Floats = self.baseline + self.contributions.sum(1) + self.remainder
        return score

    def top(self, row: int, n: int = 3) -> list[Reason]:
        """Return the n columns that add most to the score of one row, the largest first."""
        order = np.argsort(-self.contributions[row], kind="stable")[:n]
        return [
            Reason(name, self._value(name, row), float(self.contributions[row, j]))
            for j, name in ((int(j), self.columns[j]) for j in order)
        ]

    def _value(self, name: str, row: int) -> float | str | None:
        cell: Any = self.table.cells[name][row]
        if isinstance(cell, str):
            return cell
        return None if cell is None or np.isnan(cell) else float(cell)

    def to_arrow(self) -> "pa.Table":
        """Return one line per row and column: row, column, value (as text) and contribution.

        A row whose score has a remainder has one more line, named `remainder_name`.
        """
        import pyarrow as pa

        n, d = self.contributions.shape
        names = [*self.columns, self.remainder_name]
        contributions = np.column_stack([self.contributions, self.remainder])
        values = [[self._text(name, row) for name in self.columns] + [None] for row in range(n)]
        kept = np.ones((n, d + 1), dtype=bool)
        kept[:, d] = self.remainder != 0
        lines = np.flatnonzero(kept)
        return pa.table(
            {
                "row": np.repeat(np.arange(n), d + 1)[lines],
                "column": [names[line % (d + 1)] for line in lines],
                "value": pa.array([values[line // (d + 1)][line % (d + 1)] for line in lines]),
                "contribution": contributions.ravel()[lines],
            }
        )

    def _text(self, name: str, row: int) -> str | None:
        value = self._value(name, row)
        return value if isinstance(value, str) or value is None else f"{value:g}"


def explain(model: FittedModel, table: Table, unit: str) -> Explanation:
    """Explain the scores of a table's rows."""
    matched = model.encoder.schema.match(table)
    contributions, remainder = model.contributions(model.encoder.encode(matched))
    density = model.density
    return Explanation(
        matched,
        contributions,
        remainder,
        model.baseline,
        unit,
        density.remainder,
        density.meaning,
    )
