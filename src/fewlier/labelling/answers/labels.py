"""Convert answers to labels of a table, or to a training table of their own."""

import tempfile
from collections import Counter
from itertools import count
from pathlib import Path
from typing import NamedTuple, final

import numpy as np
import pyarrow as pa

from fewlier.files.atomic import PathLike
from fewlier.files.writing import create_table
from fewlier.labelling.answers.answer import Cell, Stack, standing
from fewlier.labelling.answers.identity import Identities, check_columns, locate
from fewlier.labelling.answers.journal import read_answers
from fewlier.table import Table
from fewlier.table.cells import cell_text
from fewlier.table.labels import ANOMALY, NORMAL, UNLABELLED, WORDS, Labels


def with_answers(before: Labels, answers: Stack) -> Labels:
    """Return labels with answers in their place; a skipped row keeps what it had."""
    codes = before.codes.copy()
    kinds = {row: before.kind(row) for row in np.flatnonzero(codes == ANOMALY).tolist()}
    for answer in answers:
        if answer.label is not None:
            codes[answer.row] = ANOMALY if answer.label else NORMAL
            kinds[answer.row] = answer.kind
    counts = Counter(kind for kind in kinds.values() if kind is not None)
    names = tuple(kind for kind, _ in counts.most_common())
    if not names:
        return Labels(codes)
    kind_of = np.full(len(codes), -1)
    for row, kind in kinds.items():
        if kind is not None and codes[row] == ANOMALY:
            kind_of[row] = names.index(kind)
    return Labels(codes, names, kind_of)


def labels_of_answers(path: PathLike, rows: object, before: Labels | None) -> Labels:
    """Return the labels that a file of answers gives the rows of a table."""
    table, recorded = Table.of(rows), read_answers(path)
    check_columns(recorded.columns, table.names, str(path))
    identities = Identities.of(table, recorded.columns)
    answers = locate(standing(recorded.stack), identities, str(path))
    return with_answers(Labels.of(before, table.n_rows), answers)


def answered_rows(path: PathLike) -> tuple[pa.Table, Labels]:
    """Return the rows of a file of answers, as they were when they were answered, and labels."""
    answers = [a for a in standing(read_answers(path).stack) if a.label is not None]
    names = dict.fromkeys(name for answer in answers for name in answer.cells)
    columns = {name: _column([answer.cells.get(name) for answer in answers]) for name in names}
    places = tuple(answer.at(place) for place, answer in enumerate(answers))
    return pa.table(columns), with_answers(Labels.of(None, len(answers)), places)


def _column(cells: list[Cell]) -> pa.Array:
    """Return cells as numbers, or as text where some are: files of several formats were merged."""
    if any(isinstance(cell, str) for cell in cells):
        return pa.array([None if cell is None else cell_text(cell) for cell in cells], pa.string())
    return pa.array(cells, pa.float64())


@final
class Labelled(NamedTuple):
    """A table with one more column, which holds the labels.

    Where anomalies have kinds the labels are words: "normal", and the kinds; else 1 and 0. They are
    missing where nothing is known.
    """

    rows: pa.Table
    label: str
    has_kinds: bool

    @classmethod
    def of(cls, rows: pa.Table, labels: Labels) -> "Labelled":
        """Put labels beside a table."""
        names = (f"label_{n}" if n else "label" for n in count())
        name = next(name for name in names if name not in rows.column_names)
        codes = labels.codes.tolist()
        if labels.kinds:
            cells = [
                None if code == UNLABELLED else labels.kind(row) or WORDS[code]
                for row, code in enumerate(codes)
            ]
        else:
            cells = [None if code == UNLABELLED else str(code) for code in codes]
        rows = rows.append_column(name, pa.array(cells, pa.string()))
        return cls(rows, name, bool(labels.kinds))

    def advice(self, path: str) -> str:
        """Return the command that fits to the table, once it is at a path."""
        normal = f" --normal {WORDS[0]}" if self.has_kinds else ""
        return f"fewlier fit {path} --label {self.label}{normal} -o model.fewlier"

    def to_csv(self) -> str:
        """Return the table as text."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "labelled.csv"
            with create_table(path) as write:
                write(self.rows)
            return path.read_text("utf-8")
