"""Contributions per column: which columns made a row odd, and what was expected of them."""

import math
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np
import numpy.typing as npt

from fewlier.errors import UserError
from fewlier.reasons.expectation import Expectation, expected
from fewlier.score.model import FittedModel
from fewlier.shown import shown
from fewlier.table import Encoded, Table
from fewlier.table.aspects import DAY, Aspect, in_words

if TYPE_CHECKING:
    import pyarrow as pa

# With one of these a spreadsheet's formula begins; some take the wide ones for them.
_FORMULA = tuple("=+-@\uff1d\uff0b\uff0d\uff20")
# A likelier gap than this is told of a cell that has a value.
_LIKELY = 0.5
# Hours that a range of times may lack of a whole day, and is said to be all of it.
_NEARLY_A_DAY = 1.0
# A category less likely than this would be shown with 0 %.
_VISIBLE = 0.005

Floats = npt.NDArray[np.float64]


class Reason(NamedTuple):
    """What one column adds to the score of one row, and what was expected given the others.

    `value` is None where the cell is missing. Of a number `expected` is the median, and
    `expected_low` and `expected_high` are the ends of a range of 90 %; of a category
    `expected_categories` has the likeliest with their probabilities; the others are None.
    `expected_missing` is the probability of a missing cell. What is read of a date has an `aspect`:
    then `value` is the date as it was written, and expected are hours of a "time of day", or of a
    "date" seconds since 1970.
    """

    column: str
    value: float | str | None
    contribution: float
    expected: float | None = None
    expected_low: float | None = None
    expected_high: float | None = None
    expected_categories: dict[str, float] | None = None
    expected_missing: float | None = None
    aspect: str | None = None

    def __str__(self) -> str:
        """Return the reason in words, such as ``latency = 912, expected 12–40: +14.2``."""
        expectation = self.expectation
        expected = f", expected {expectation}" if expectation else ""
        return f"{self.name} {self.state}{expected}: {self.contribution:+.1f}"

    @property
    def name(self) -> str:
        """The column as it is shown: in quotes if a spreadsheet would take it for a formula."""
        name = shown(self.column)
        return f"'{name}'" if name.lstrip().startswith(_FORMULA) else name

    @property
    def state(self) -> str:
        """What the cell holds, in words, such as ``= 912`` or ``is missing``."""
        if self.value is None:
            return "is missing"
        return f"= {shown(self.value)}" if isinstance(self.value, str) else f"= {self.value:.5g}"

    @property
    def expectation(self) -> str:
        """What was expected, in words; empty where nothing was."""
        gap = self.expected_missing or 0.0
        if self.value is not None and gap > _LIKELY:
            return f"missing ({_percent(gap)})"
        if self.expected_categories:
            if len(self.expected_categories) == 1:  # of a column that has one level
                return f"always {shown(next(iter(self.expected_categories)))}"
            likely = {n: p for n, p in self.expected_categories.items() if p >= _VISIBLE}
            named = likely or self.expected_categories
            return ", ".join(f"{shown(name)} ({_percent(p)})" for name, p in named.items())
        if self.expected_low is None or self.expected_high is None:
            return ""
        if self.aspect is not None:
            return _range_of_dates(Aspect(self.aspect), self.expected_low, self.expected_high)
        return _range(self.expected_low, self.expected_high)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _range(low: float, high: float) -> str:
    """Write a range with as many digits as its width asks for."""
    width = high - low
    if width <= 0:
        return f"{low:.5g}"
    decimals = 1 - math.floor(math.log10(width)) if math.isfinite(width) else 0
    largest = max(abs(low), abs(high))
    if largest >= 1e6 or decimals > 5:
        texts = [f"{end:.5g}" for end in (low, high)]
    else:
        texts = [f"{round(end, decimals) + 0.0:.{max(decimals, 0)}f}" for end in (low, high)]
    return (" to " if low < 0 else "–").join(dict.fromkeys(texts))


def _range_of_dates(aspect: Aspect, low: float, high: float) -> str:
    """Write a range of days, or of times, whatever the dates are; across midnight it goes on."""
    with_time = abs(high - low) < 2 * DAY
    # A range of times runs past midnight where it ends before it begins.
    if aspect is Aspect.TIME and 0 < low - high < _NEARLY_A_DAY:
        return "any time"
    ends = (in_words(aspect, end, with_time=with_time) for end in (low, high))
    return (" to " if aspect is Aspect.DATE else "–").join(dict.fromkeys(ends))


@final
@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Why n rows have their scores.

    ``baseline + contributions.sum(1) + remainder`` equals ``score``. Contributions are centred on
    what normal rows get, so that a column that is always hard to predict does not look guilty.
    What was expected is computed when it is asked for.

    Attributes
    ----------
    columns : tuple of str
        Names of the D columns; those that are read from dates have its name and what is read.
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
    expected : Expectation
        What was expected of every cell given the others.
    index : pandas.Index or None
        Labels of the rows, if they came in a pandas DataFrame.
    """

    table: Table
    contributions: Floats
    remainder: Floats
    unit: str
    model: FittedModel
    encoded: Encoded
    index: Any | None = None

    def __repr__(self) -> str:
        """Say what it holds; the arrays of rows and the model are long."""
        n_rows, n_columns = self.contributions.shape
        return f"Explanation({n_rows} rows, {n_columns} columns; top(row) has the reasons of a row)"

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self.table.names

    @property
    def baseline(self) -> float:
        """The score that contributions start from."""
        return self.model.scorer.baseline

    @property
    def remainder_name(self) -> str:
        """What the remainder is."""
        return self.model.ensemble.density.remainder

    @property
    def meaning(self) -> str:
        """What contributions and remainder mean with the density at hand."""
        return self.model.scorer.meaning

    @property
    def score(self) -> Floats:
        """The rows' anomaly scores, shape (n,)."""
        score: Floats = self.baseline + self.contributions.sum(1) + self.remainder
        return score

    @cached_property
    def expected(self) -> Expectation:
        """What was expected of every cell given the others, row by row: n x D cells."""
        rows, columns = np.divmod(np.arange(self.contributions.size), len(self.columns))
        return expected(self.model, self.encoded, rows, columns)

    def top(self, row: Hashable, n: int = 3) -> list[Reason]:
        """Return the n columns that add most to the score of one row, the largest first.

        An integer is the position of the row, as in the arrays that a detector returns, whatever
        the index of X; anything else is a label of that index.
        """
        return self.tops([row], n)[0]

    def tops(self, rows: Iterable[Hashable] | None = None, n: int = 3) -> list[list[Reason]]:
        """Return the top n columns of some rows, or of all; much faster than row by row."""
        places = range(len(self.encoded)) if rows is None else map(self._place, rows)
        chosen = np.fromiter(places, dtype=np.int64)
        order = np.argsort(-self.contributions[chosen], axis=1, kind="stable")[:, :n]
        width = order.shape[1]
        if not order.size:
            return [[] for _ in chosen]
        found = expected(
            self.model,
            self.encoded.take(chosen),
            np.repeat(np.arange(len(chosen)), width),
            order.ravel(),
        )
        return [
            [
                Reason(
                    self.columns[column],
                    self._value(self.columns[column], row),
                    float(self.contributions[row, column]),
                    *found.at(line * width + place),
                )
                for place, column in enumerate(columns)
            ]
            for line, (row, columns) in enumerate(zip(chosen, order, strict=True))
        ]

    def _place(self, row: Hashable) -> int:
        """Return the position of a row, which must be one."""
        n = len(self.encoded)
        if isinstance(row, Integral):
            if -n <= int(row) < n:
                return int(row) % n
            raise UserError(
                f"A row given by an integer must be a position from 0 to {n - 1}; got {row}. "
                "For an integer label of X's index, give X.index.get_loc(label)."
            )
        if self.index is None:
            raise UserError(f"Rows without an index must be given by position; got {row!r}.")
        try:
            found = np.arange(n)[self.index.get_loc(row)]
        except (KeyError, TypeError) as error:
            raise UserError(f"A row must be a label of X's index; got {row!r}.") from error
        if np.size(found) != 1:
            raise UserError(f"A label must stand for one row; {row!r} has {found.tolist()}.")
        return int(np.ravel(found)[0])

    def _value(self, name: str, row: int) -> float | str | None:
        cell: Any = self.table.written.get(name, self.table.cells[name])[row]
        if isinstance(cell, str):
            return cell
        return None if cell is None or np.isnan(cell) else float(cell)

    def to_arrow(self) -> "pa.Table":
        """Return one line per row and column: row, column, value (as text), contribution, expected.

        A row whose score has a remainder has one more line, named `remainder_name`. Expectations
        are those of `Reason`, categories and probabilities in lists; null where there are none.
        """
        import pyarrow as pa

        lines = [
            line
            for row, reasons in enumerate(self._cells())
            for line in (*({"row": row} | reason for reason in reasons), *self._rest(row))
        ]
        return pa.Table.from_pylist(lines, _arrow_schema())

    def _cells(self) -> Iterator[list[dict[str, Any]]]:
        """Yield of each row a record per column."""
        d = len(self.columns)
        for row, contributions in enumerate(self.contributions.tolist()):
            reasons = (
                Reason(name, self._text(name, row), contribution, *self.expected.at(row * d + j))
                for j, (name, contribution) in enumerate(
                    zip(self.columns, contributions, strict=True)
                )
            )
            yield [
                reason._asdict() | {"expected_categories": _pairs(reason.expected_categories)}
                for reason in reasons
            ]

    def _rest(self, row: int) -> list[dict[str, Any]]:
        rest = float(self.remainder[row])
        line = {"row": row, "column": self.remainder_name, "contribution": rest}
        return [line] if rest else []

    def _text(self, name: str, row: int) -> str | None:
        value = self._value(name, row)
        return value if isinstance(value, str) or value is None else f"{value:g}"


def _pairs(categories: dict[str, float] | None) -> list[dict[str, Any]] | None:
    if categories is None:
        return None
    return [{"category": name, "probability": p} for name, p in categories.items()]


def _arrow_schema() -> "pa.Schema":
    import pyarrow as pa

    pair = pa.struct([("category", pa.string()), ("probability", pa.float64())])
    types = {"row": pa.int64(), "column": pa.string(), "value": pa.string()}
    types |= dict.fromkeys(Reason._fields[2:], pa.float64())
    return pa.schema(types | {"expected_categories": pa.list_(pair), "aspect": pa.string()})


def explain(
    model: FittedModel,
    table: Table,
    unit: str,
    index: Any | None = None,  # noqa: ANN401
) -> Explanation:
    """Explain the scores of rows in the form of the training table; `index` has their labels."""
    encoded = model.encoder.encode(table)
    parts = model.scorer.contributions(encoded)
    return Explanation(table, parts[:, :-1], parts[:, -1], unit, model, encoded, index)
