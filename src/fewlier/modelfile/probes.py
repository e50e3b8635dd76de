"""Probe rows: made-up rows by which a loaded model shows that it scores as it did when saved."""

from typing import TypeAlias

import numpy as np

from fewlier.modelfile.state import State, is_number, is_text, require
from fewlier.score.model import FittedModel
from fewlier.table import Column, ColumnStats, Encoder, Kind, Table
from fewlier.table.arrays import Floats

Row: TypeAlias = list[float | str | None]

N_PROBES = 3
TOLERANCE = 1e-4
"""By which scores may differ from those saved; another processor rounds differently."""
_FAR = 1e300
_UNSEEN = "(a category never seen)"


def probe_state(model: FittedModel) -> State:
    """Score rows made up from the statistics of a model's columns; none is a training row."""
    rows = probe_rows(model.encoder)
    return State({"rows": rows, "scores": _score(model, rows).tolist()})


def check_probes(model: FittedModel, state: State) -> None:
    """Refuse a model that does not score its probe rows as saved, or any row not finitely."""
    rows, expected = state.items("rows"), state.numbers("scores")
    kinds = [column.kind for column in model.encoder.schema.columns]
    is_count = len(rows) == len(expected) == N_PROBES
    require(is_count, f"it does not have {N_PROBES} probe rows with a score each.")
    for row in rows:
        is_row = isinstance(row, list) and len(row) == len(kinds)
        is_row = is_row and all(map(_is_cell, row, kinds))
        require(is_row, "a probe row does not fit its columns.")
    found = _score(model, rows)
    is_close = np.allclose(found, expected, rtol=TOLERANCE, atol=TOLERANCE)
    require(is_close, f"its probe rows must score {expected}; they score {found.tolist()}.")
    is_finite = np.isfinite(_score(model, extreme_rows(model.encoder))).all()
    require(bool(is_finite), "its weights give rows a score that is not finite.")


def probe_rows(encoder: Encoder) -> list[Row]:
    """Make up three rows from the encoder's statistics: middling, high, and with a cell missing."""
    columns = list(zip(encoder.schema.columns, encoder.stats, strict=True))
    middle, high = ([_probe_cell(*column, share) for column in columns] for share in (0.5, 0.9))
    return [middle, high, [None, *middle[1:]]]


def extreme_rows(encoder: Encoder) -> list[Row]:
    """Make up rows at the ends of what can be scored: all missing, far out, and every level."""
    columns = encoder.schema.columns
    rows: list[Row] = [[None for _ in columns]]
    for number in (-_FAR, _FAR):
        rows.append([_UNSEEN if c.kind is Kind.CATEGORY else number for c in columns])
    for code in range(int(encoder.n_levels.max(initial=0))):
        rows.append([_level(c, code) if c.levels else None for c in columns])
    return rows


def _score(model: FittedModel, rows: list[Row]) -> Floats:
    table = table_of(model.encoder, rows)
    with np.errstate(all="ignore"):  # what is wrong with a damaged file shows in the score
        # Not padded to a whole chunk: with many passes that takes far more memory than the file.
        return model.scorer.score(model.encoder.encode(table), chunk=N_PROBES)


def table_of(encoder: Encoder, rows: list[Row]) -> Table:
    """Return rows as a table in the form of the schema."""
    columns = zip(encoder.schema.columns, zip(*rows, strict=True), strict=True)
    return Table(
        {
            c.name: np.array(values, dtype=object if c.kind is Kind.CATEGORY else np.float64)
            for c, values in columns
        }
    )


def _level(column: Column, code: int) -> float | str:
    level = column.levels[code % len(column.levels)]
    return level if column.kind is Kind.CATEGORY else float(level)


def _probe_cell(column: Column, stats: ColumnStats, share: float) -> float | str | None:
    """Return a cell somewhere in the range of a column; None if the column never had a value."""
    if column.levels:
        return _level(column, int(share * len(column.levels)))
    match column.coding:
        case Kind.CATEGORY:
            return None
        case Kind.COUNT:
            return float(round(2 * share * stats.unit))
        case Kind.POSITIVE:
            return 2 * share * stats.unit
        case _:
            return stats.low + share * stats.span


def _is_cell(cell: object, kind: Kind) -> bool:
    return cell is None or (is_text(cell) if kind is Kind.CATEGORY else is_number(cell))
