"""What a fit is given: rows in memory, or a stream of which some are kept; read and understood."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, final

import narwhals as nw
import numpy as np

from fewlier.errors import DataWarning, UserError, warn
from fewlier.files.reading import naming
from fewlier.files.sampling import LevelCounts, Sample, Sampler
from fewlier.files.streams import is_stream, read_stream
from fewlier.fitting.recipe import ignored_columns, read_schema
from fewlier.table import Kind, Schema, Table
from fewlier.table.arrays import Codes
from fewlier.table.column_values import most_frequent
from fewlier.table.findings import find, notes_on
from fewlier.table.frame import has_names
from fewlier.table.label_column import LabelColumn
from fewlier.table.labels import ANOMALY, Labels, RowCounts
from fewlier.table.matching import match_noting_unread, warn_of_left_out


@final
@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Rows to learn from.

    Parameters
    ----------
    schema : Schema
        What their columns are.
    table : Table
        The rows, in the form of the schema.
    labels : Labels
        Their labels.
    names : tuple of str
        The columns that were given.
    has_names : bool
        Whether the names are the user's.
    sample : Sample or None
        Where the rows come from, if they came in a stream.
    notes : tuple of str
        What the user should look at.
    """

    schema: Schema
    table: Table
    labels: Labels
    names: tuple[str, ...]
    has_names: bool
    sample: Sample | None
    notes: tuple[str, ...]

    @property
    def is_complete(self) -> bool:
        """Whether these are all the rows there were."""
        return self.sample is None or self.sample.is_complete

    @property
    def counts(self) -> RowCounts:
        """All rows, by label: of a stream more than those that are kept."""
        return self.labels.counts if self.sample is None else self.sample.counts


def read_training_rows(
    X: object, y: object, parameters: Mapping[str, Any], seed: int
) -> TrainingRows:
    """Read rows and labels for a fit, and find out what the columns are.

    Parameters
    ----------
    X, y : as in `AnomalyDetector.fit`
    parameters : mapping
        Those of the detector.
    seed : int
        Seed of the sample that is kept of a stream.
    """
    X, y = _split(X, y)
    sample = _draw(X, y, parameters, seed)
    drawn = [sample.note] if sample and not sample.is_complete else []
    problems: dict[str, UserError] = {}
    with _naming(sample):
        rows = X if sample is None else sample.rows
        table = Table.of(rows, ignore=ignored_columns(parameters["columns"]), problems=problems)
        labels = Labels.of(y if sample is None else sample.labels, table.n_rows, X)
        schema = read_schema(parameters, table, labels.codes != ANOMALY, problems)
        warn_of_left_out(schema)
        place = str if sample is None else sample.places.name
        matched = match_noting_unread(table, schema, place, is_whole=not drawn)
    if sample and not sample.is_complete:
        schema, matched = _with_all_levels(schema, matched, sample.levels)
    found = notes_on(find(matched, schema, labels.codes))
    for note in found:
        warn(note, DataWarning)
    notes = (*drawn, *found, *labels.notes, *labels.doubts)
    return TrainingRows(schema, matched, labels, table.names, has_names(rows), sample, notes)


def _split(X: object, y: object) -> tuple[object, object]:
    """Take the label column out of a DataFrame; what is in memory is not drawn from."""
    if not isinstance(y, str | LabelColumn) or isinstance(X, np.ndarray | list | tuple):
        return X, y
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return X, y
    label = LabelColumn(y) if isinstance(y, str) else y
    with naming("the table"):
        label.check(frame.columns)
    return frame.drop(label.name).to_native(), label.read(frame[label.name].to_list())


def _draw(X: object, y: object, parameters: Mapping[str, Any], seed: int) -> Sample | None:
    """Read a stream to its end; None where the rows are in memory."""
    label = LabelColumn(y) if isinstance(y, str) else y
    if not isinstance(label, LabelColumn) and not (y is None and is_stream(X)):
        return None
    column = label if isinstance(label, LabelColumn) else None
    sample = Sampler(column, seed, ignored_columns(parameters["columns"])).read(read_stream(X))
    if sample.labels:
        sample.labels.warn(sample.places.files[0] if len(sample.places.files) == 1 else "labels")
    return sample


def _naming(sample: Sample | None) -> AbstractContextManager[None]:
    return sample.places.naming() if sample else nullcontext()


def _with_all_levels(schema: Schema, table: Table, levels: LevelCounts) -> tuple[Schema, Table]:
    """Give text columns the levels of all rows of a stream; the kept ones may lack rare levels."""
    texts = [c for c in schema.columns if c.kind is Kind.CATEGORY and c.date is None]
    counts = {column.name: found for column in texts if (found := levels.of(column))}
    columns = [
        replace(c, levels=most_frequent(counts[c.name])) if c.name in counts else c
        for c in schema.columns
    ]
    return replace(schema, columns=tuple(columns)), replace(table, level_counts=dict(counts))


def read_validation(pair: object, schema: Schema) -> tuple[Table, Codes]:
    """Read the rows that a user chose to validate by."""
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise UserError(parameter="validation", expected="a pair (X, y)", got=pair)
    table = schema.match(Table.of(pair[0], ignore={left.name for left in schema.left_out}))
    return table, Labels.of(pair[1], table.n_rows, pair[0]).codes
