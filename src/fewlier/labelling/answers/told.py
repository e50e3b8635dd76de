"""What answers say, as labels of a table, and as rows to learn from without the table."""

from collections import Counter

import numpy as np
import pyarrow as pa

from fewlier.files.atomic import PathLike
from fewlier.labelling.answers.answer import Cell, Stack, standing
from fewlier.labelling.answers.identity import Identities, check_columns, locate
from fewlier.labelling.answers.journal import read_answers
from fewlier.table import Table
from fewlier.table.cells import cell_text
from fewlier.table.labels import ANOMALY, NORMAL, Labels


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


def read_told(path: PathLike, rows: object, before: Labels | None) -> Labels:
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
