"""`Explanation`: the scores of rows, column by column, and what was expected of each."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Integral
from typing import Any, final

import numpy as np
import pyarrow as pa

from fewlier.errors import UserError
from fewlier.process import markup
from fewlier.process.escape import encodable
from fewlier.reasons.expectation import Expectation, expect
from fewlier.reasons.reason import VISIBLE, Reason
from fewlier.score.model import FittedModel
from fewlier.scoring.scored import Scored
from fewlier.table.arrays import Floats, Ints
from fewlier.table.cells import number_text
from fewlier.table.frame import Origin

N_SHOWN = 10
"""Rows that a notebook shows, those that score highest."""
N_REASONS = 3
"""Columns that the reason of an anomaly names, at most."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """The scores of n rows, and why they have them.

    ``baseline + contributions.sum(1) + remainder`` equals ``score``. Contributions are centred on
    what normal rows get, so that a column that is always hard to predict does not look guilty.
    Contributions, and what was expected, are computed on first use.

    Attributes
    ----------
    columns : tuple of str
        Names of the D columns; those read from dates are named by their source and aspect.
    score : array (n,)
        Anomaly scores of the rows.
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
        What contributions and remainder mean for this density, in a sentence.
    expected : Expectation
        What was expected of every cell given the others.
    origin : Origin
        The DataFrame library that the rows came in, and their labels.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from fewlier import AnomalyDetector
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"size": rng.normal(9, 1, 200), "weight": rng.normal(5, 1, 200)})
    >>> detector = AnomalyDetector(random_state=0).fit(X)
    >>> new = pd.DataFrame({"size": [9.0, 9.5], "weight": [5.0, 30.0]}, index=["plum", "melon"])
    >>> why = detector.explain(new)
    >>> [reason.column for reason in why.top("melon")]
    ['weight', 'size']
    >>> total = why.baseline + why.contributions.sum(axis=1) + why.remainder
    >>> bool(np.allclose(total, why.score))
    True
    """

    scored: Scored
    model: FittedModel
    origin: Origin = field(default_factory=Origin)

    def __repr__(self) -> str:
        """Say what it holds; the arrays and the model are long."""
        n_rows, n_columns = len(self.score), len(self.columns)
        return f"Explanation({n_rows} rows, {n_columns} columns; top(row) has the reasons of a row)"

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self.scored.rows.names

    @property
    def score(self) -> Floats:
        """Anomaly scores of the rows, shape (n,)."""
        return self.scored.scores

    @property
    def contributions(self) -> Floats:
        """What each column adds to the score, shape (n, D)."""
        return self._parts[:, :-1]

    @property
    def remainder(self) -> Floats:
        """What belongs to the row and to no column, shape (n,)."""
        return self._parts[:, -1]

    @property
    def baseline(self) -> float:
        """The score that contributions start from."""
        return self.model.scorer.baseline

    @property
    def unit(self) -> str:
        """Unit of scores and contributions."""
        return self.model.ensemble.unit

    @property
    def remainder_name(self) -> str:
        """What the remainder is."""
        return self.model.ensemble.density.remainder

    @property
    def meaning(self) -> str:
        """What contributions and remainder mean for this density."""
        return self.model.scorer.meaning

    @cached_property
    def _parts(self) -> Floats:
        """Contributions, and last the remainder, shape (n, D + 1)."""
        return self.model.scorer.contributions(self.scored.encoded)

    @cached_property
    def expected(self) -> Expectation:
        """What was expected of every cell given the others, row by row: n x D cells."""
        n_cells = len(self.score) * len(self.columns)
        rows, columns = np.divmod(np.arange(n_cells), len(self.columns))
        return expect(self.model, self.scored.encoded, rows, columns)

    def take(self, rows: Ints) -> "Explanation":
        """Return the explanation of some rows, given by their positions."""
        return Explanation(self.scored.take(rows), self.model, self.origin.take(rows))

    def top(self, row: Hashable, n: int = 3) -> list[Reason]:
        """Return the n columns that add most to the score of one row, the largest first.

        An integer is the position of the row, as in the arrays that a detector returns, whatever
        the index of X; anything else is a label of that index.

        Examples
        --------
        >>> import numpy as np
        >>> from fewlier import AnomalyDetector
        >>> X = np.random.default_rng(0).normal(size=(200, 3))
        >>> why = AnomalyDetector(random_state=0).fit(X).explain([[0.0, 0.0, 0.0], [0.0, 9.0, 0.0]])
        >>> (reason,) = why.top(1, n=1)
        >>> reason.column, reason.value, reason.expected_high < 5
        ('x1', 9.0, True)
        """
        return self.tops([row], n)[0]

    def tops(self, rows: Iterable[Hashable] | None = None, n: int = 3) -> list[list[Reason]]:
        """Return the top n columns of some rows, or of all; much faster than row by row."""
        places = range(len(self.scored)) if rows is None else map(self._place, rows)
        chosen = np.fromiter(places, dtype=np.int64)
        order = np.argsort(-self.contributions[chosen], axis=1, kind="stable")[:, :n]
        lines = np.repeat(np.arange(len(chosen)), order.shape[1])
        found = expect(self.model, self.scored.encoded.take(chosen), lines, order.ravel())
        reasons: list[list[Reason]] = [[] for _ in chosen]
        for cell, (line, column) in enumerate(zip(lines, order.ravel().tolist(), strict=True)):
            reasons[line].append(self._reason(int(chosen[line]), column, found, cell))
        return reasons

    def reasons(self, n: int = 3) -> list[list[Reason]]:
        """Return the top n columns of every row; after the first, only those that add visibly."""
        return [
            [first, *(reason for reason in more if reason.contribution >= VISIBLE)]
            for first, *more in self.tops(n=n)
        ]

    def _reason(self, row: int, column: int, expected: Expectation, cell: int) -> Reason:
        name, contribution = self.columns[column], float(self.contributions[row, column])
        return Reason(name, self._value(name, row), contribution, *expected.at(cell))

    def _place(self, row: Hashable) -> int:
        """Return the position of a row."""
        n = len(self.scored)
        if isinstance(row, Integral):
            if -n <= int(row) < n:
                return int(row) % n
            raise UserError(
                f"A row given by an integer must be a position from 0 to {n - 1}; got {row}. "
                "For an integer label of X's index, give X.index.get_loc(label)."
            )
        if self.origin.index is None:
            raise UserError(f"Rows without an index must be given by position; got {row!r}.")
        try:
            found = np.arange(n)[self.origin.index.get_loc(row)]
        except (KeyError, TypeError) as error:
            raise UserError(f"A row must be a label of X's index; got {row!r}.") from error
        if np.size(found) != 1:
            raise UserError(f"A label must stand for one row; {row!r} has {found.tolist()}.")
        return int(np.ravel(found)[0])

    def _value(self, name: str, row: int) -> float | str | None:
        rows = self.scored.rows
        cell: Any = rows.written.get(name, rows.cells[name])[row]
        if isinstance(cell, str):
            return cell
        return None if cell is None or np.isnan(cell) else float(cell)

    def to_frame(self) -> Any:  # noqa: ANN401 - of any library
        """Return one line per row and column: row, column, value (as text), contribution, expected.

        It is a DataFrame of the library that X came in, or of pyarrow if it was an array or a
        stream; of a pandas index, all lines about a row have the label. A row whose score has a
        remainder has one more line, named `remainder_name`. Expectations are as in `Reason`,
        categories and probabilities in lists; null where there are none.

        Examples
        --------
        >>> import numpy as np
        >>> import pandas as pd
        >>> from fewlier import AnomalyDetector
        >>> rng = np.random.default_rng(0)
        >>> X = pd.DataFrame({"size": rng.normal(9, 1, 200), "weight": rng.normal(5, 1, 200)})
        >>> detector = AnomalyDetector(random_state=0).fit(X)
        >>> new = pd.DataFrame({"size": [9.0, 9.5], "weight": [5.0, 30.0]}, index=["plum", "melon"])
        >>> lines = detector.explain(new).to_frame()
        >>> lines.loc["melon", ["column", "value"]].to_dict("records")
        [{'column': 'size', 'value': '9.5'}, {'column': 'weight', 'value': '30'}]
        """
        lines = []
        for row, rest in enumerate(self.remainder.tolist()):
            lines += [self._line(row, column) for column in range(len(self.columns))]
            if rest:
                lines.append({"row": row, "column": self.remainder_name, "contribution": rest})
        pair = pa.struct([("category", pa.string()), ("probability", pa.float64())])
        types = {"row": pa.int64(), "column": pa.string(), "value": pa.string()}
        types |= dict.fromkeys(Reason._fields[2:], pa.float64())
        types |= {"expected_categories": pa.list_(pair), "aspect": pa.string(), "form": pa.string()}
        types |= {"unlike_training": pa.bool_()}
        found = pa.Table.from_pylist(lines, pa.schema(types))
        return self.origin.take(found["row"].to_numpy()).frame(found)

    def _repr_html_(self) -> str:
        """Show the rows that score highest, with the reasons of each."""
        order = np.argsort(-self.score, kind="stable")[:N_SHOWN]
        return markup.fragment(self._title(len(order)), [self.take(order)._as_lines(order)])

    def _title(self, n_shown: int) -> str:
        n_rows, threshold = len(self.score), self.model.calibration.threshold
        n_above = int(self.scored.is_anomaly.sum())
        above = f"{n_above:,} above the threshold of {threshold:.4g} {self.unit}"
        highest = f". The {n_shown} that score highest:" if n_shown < n_rows else ""
        return f"{n_rows:,} {'row' if n_rows == 1 else 'rows'}, {above}{highest}"

    def _as_lines(self, rows: Ints) -> markup.Html:
        """Return the reasons of all rows as lines of a table; `rows` are their positions in X."""
        labels = rows if self.origin.index is None else self.origin.index
        p_values = self.scored.p_values
        found = self.reasons() if len(rows) else []
        longest = max((why.contribution for reasons in found for why in reasons), default=1.0)
        lines: list[list[str | markup.Bar]] = []
        for label, score, p_value, reasons in zip(labels, self.score, p_values, found, strict=True):
            lines.append([f"row {label}: score {score:.4g}, p-value {p_value:.3g}"])
            for why in reasons:
                bar = markup.Bar(f"{why.contribution:+.2f}", why.contribution / max(longest, 1e-9))
                lines.append([bar, f"{why.column} {why.state}", why.expectation])
        return markup.table(("adds", "value", "expected"), lines)

    def _line(self, row: int, column: int) -> dict[str, Any]:
        reason = self._reason(row, column, self.expected, row * len(self.columns) + column)
        value, likely = reason.value, reason.expected_categories
        text = value if isinstance(value, str) or value is None else number_text(value)
        likely = likely and {encodable(name): p for name, p in likely.items()}
        pairs = likely and [{"category": name, "probability": p} for name, p in likely.items()]
        texts = {"column": encodable(reason.column), "value": text and encodable(text)}
        return {"row": row} | reason._asdict() | texts | {"expected_categories": pairs}


def reasons_of_anomalies(model: FittedModel, scored: Scored) -> list[str | None]:
    """Return the reason of each row that is an anomaly, in words; None for the others."""
    texts: list[str | None] = [None] * len(scored)
    flagged = np.flatnonzero(scored.is_anomaly)
    found = Explanation(scored.take(flagged), model).reasons(N_REASONS) if len(flagged) else []
    for row, reasons in zip(flagged, found, strict=True):
        texts[row] = "; ".join(map(str, reasons))
    return texts
