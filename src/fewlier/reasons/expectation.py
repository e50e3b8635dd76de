"""What a model expected of cells, given the other columns, in the user's units."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from fewlier.score.model import FittedModel
from fewlier.table import Encoded, Kind
from fewlier.table.arrays import Bools, Floats, Ints
from fewlier.table.cells import number_text
from fewlier.table.columns import Column
from fewlier.table.scaling import MAX_LEVELS

N_CATEGORIES = 3
"""Most categories that an expectation names, the likeliest first."""
RARER = "(a rarer one)"
"""Name of the rare categories that share a column's last code; see `MAX_LEVELS`."""


@final
@dataclass(frozen=True, eq=False)
class Expectation:
    """What was expected of m cells, in the user's units; NaN and None where nothing was.

    Attributes
    ----------
    median, low, high : array (m,)
        Of numbers: the median, and the ends of the range of nine normal rows in ten.
    categories : list of m dicts, or None
        Of categories: the likeliest, with their probabilities.
    missing : array (m,)
        Probability of a missing cell.
    aspects : list of m str, or None
        What of a date the column reads, if it does: then numbers are as `DatePart.decode` has them.
    forms : list of m str, or None
        The form of these dates.
    unlike : array (m,)
        Numbers of which none was expected that training held: no row of training is like theirs.
    """

    median: Floats
    low: Floats
    high: Floats
    categories: list[dict[str, float] | None]
    missing: Floats
    aspects: list[str | None]
    forms: list[str | None]
    unlike: Bools

    def at(self, cell: int) -> tuple[Any, ...]:
        """Return the fields of a `Reason` that say what was expected of one cell."""
        numbers = (self.median[cell], self.low[cell], self.high[cell])
        found = (None if np.isnan(number) else float(number) for number in numbers)
        categories, missing = self.categories[cell], float(self.missing[cell])
        date = self.aspects[cell], self.forms[cell]
        return *found, categories, missing, *date, bool(self.unlike[cell])


def expect(model: FittedModel, encoded: Encoded, rows: Ints, columns: Ints) -> Expectation:
    """Return what was expected of m cells, given by the numbers of their rows and columns.

    Of "made": given the columns before it in the ordering in which most come before it. Of "vae"
    and "autoencoder": given the code of the row, which has seen the cell itself. Of "flow": given
    the real columns' transformations at the row. Nothing is expected of a column that had no
    value in training.
    """
    predicted = model.scorer.expect(encoded, rows, columns)
    encoder = model.encoder
    never = encoder.missing_rate[columns] == 1
    *quantiles, is_unlike = model.ranges.of(columns, predicted.quantiles.numpy())
    ends = np.stack(quantiles)
    parts = [column.date for column in encoder.schema.columns]
    for d, part in enumerate(parts):
        if part is not None:
            ends[:, columns == d] = part.decode(ends[:, columns == d])
    low, median, high = np.where(never, np.nan, ends)
    names = [_level_names(column) for column in encoder.schema.columns]
    categories = [
        None if is_never else _likeliest(names[column], probabilities)
        for column, probabilities, is_never in zip(
            columns.tolist(), predicted.probabilities.numpy(), never, strict=True
        )
    ]
    dates = [parts[column] for column in columns.tolist()]
    aspects = [date and date.aspect.value for date in dates]
    forms = [date and date.form.pattern for date in dates]
    missing = predicted.missing.numpy()
    unlike = is_unlike & ~never
    return Expectation(median, low, high, categories, missing, aspects, forms, unlike)


def _likeliest(names: list[str], probabilities: Floats) -> dict[str, float] | None:
    order = np.argsort(-probabilities[: len(names)], kind="stable")[:N_CATEGORIES]
    return {names[code]: float(probabilities[code]) for code in order} or None


def _level_names(column: Column) -> list[str]:
    """Return what the codes of a column stand for; none where it is numeric."""
    if column.coding not in (Kind.BINARY, Kind.CATEGORY):
        return []
    if column.date is not None and column.hardly_varies:
        return [column.date.text(float(level)) for level in column.levels]
    names = [level if isinstance(level, str) else number_text(level) for level in column.levels]
    return names if len(names) <= MAX_LEVELS else [*names[: MAX_LEVELS - 1], RARER]
