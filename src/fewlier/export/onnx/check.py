"""Whether the graph says what the library says, on rows made up from the model's columns."""

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from fewlier.errors import UserError
from fewlier.export.onnx.columns import MINUTE, NO_CODE, NO_DATE, UNSEEN, inputs_of
from fewlier.files.atomic import PathLike
from fewlier.modelfile.probes import extreme_rows, probe_rows, table_of
from fewlier.score.model import FittedModel
from fewlier.scoring.scored import Scored
from fewlier.table import Encoder, Kind, Table
from fewlier.table.date_parts import DAY, Aspect, DatePart
from fewlier.table.dates import Moments

Columns: TypeAlias = dict[str, npt.NDArray[Any]]

TOLERANCE = 1e-4
"""By which scores may differ: in standard units, or as a share of a score that is larger than 1."""
N_ROWS = 200
_MICROSECONDS = 1e6
_THURSDAY = 3
_OFFSETS = -12 * 60, 14 * 60  # minutes that clocks are ahead of UTC


class Difference(NamedTuple):
    """How far the graph is from the library.

    `score` is the largest difference of a score, as `TOLERANCE` counts it; `n_decisions` and
    `n_p_values` are rows whose decision or p-value differs though the score is not that near to the
    threshold, or to a stored score.
    """

    n_rows: int
    score: float
    n_decisions: int
    n_p_values: int

    @property
    def is_close(self) -> bool:
        """Whether the graph may stand for the library."""
        return self.score <= TOLERANCE and not (self.n_decisions or self.n_p_values)


def feed(encoder: Encoder, table: Table, dates: Mapping[str, npt.NDArray[Any]]) -> Columns:
    """Return the inputs of a graph: the cells of a table in the form of the schema, and dates.

    `dates` are the inputs of dates and of their offsets, by name.
    """
    found: Columns = {}
    for one in inputs_of(encoder):
        if one.form in ("date", "offset"):
            found[one.name] = dates[one.name]
        elif one.codes is not None:
            cells, codes = table.cells[one.name], one.codes
            found[one.name] = np.array(
                [NO_CODE if cell is None else codes.get(cell, UNSEEN) for cell in cells], np.int64
            )
        else:
            found[one.name] = table.cells[one.name]
    return found


def made_up(encoder: Encoder) -> tuple[Table, Columns]:
    """Return rows as the library and as the graph take them.

    Random values in and around the range of each column, gaps, categories never seen, and the
    extremes by which model files are checked.
    """
    rng = np.random.default_rng(0)
    rows = [*probe_rows(encoder), *extreme_rows(encoder)]
    table = table_of(encoder, [row for row in rows for _ in range(-(-N_ROWS // len(rows)))])
    n, cells = table.n_rows, dict(table.cells)
    for column, stats in zip(encoder.schema.columns, encoder.stats, strict=True):
        is_new, is_gap = rng.random(n) < 0.8, rng.random(n) < 0.1
        own = cells[column.name].copy()
        if column.kind is Kind.CATEGORY:
            own[is_new] = rng.choice([*column.levels, "(never seen)"], is_new.sum())
            own[is_gap] = None
        else:
            drawn = stats.low + stats.span * rng.uniform(-0.3, 1.3, n)
            drawn = drawn if column.coding is Kind.REAL else rng.exponential(stats.unit, n)
            drawn = np.round(drawn) if column.coding is not Kind.POSITIVE else drawn
            drawn = rng.choice([*map(float, column.levels), 0.5], n) if column.levels else drawn
            own[is_new] = drawn[is_new]
            own[is_gap] = np.nan
        cells[column.name] = own
    dates = _made_up_dates(encoder, n, rng)
    for column in encoder.schema.columns:
        if column.date is not None:
            cells[column.name] = column.date.cells(_moments(encoder, column.source, dates))
    table = Table(cells)
    return table, feed(encoder, table, dates)


def run(path: PathLike, columns: Columns) -> Columns:
    """Return what a graph says of rows, in onnxruntime."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, columns), strict=True))


def compare(model: FittedModel, table: Table, found: Columns) -> Difference:
    """Compare what a graph has found with what its model says of the same rows."""
    scored, calibration = Scored.of(model, table), model.calibration
    scores = scored.scores
    error = np.abs(found["anomaly_score"] - scores) / np.maximum(1, np.abs(scores))
    slack = TOLERANCE * np.maximum(1, np.abs(scores))
    is_sure = np.abs(scores - calibration.threshold) > slack
    is_other = found["is_anomaly"] != scored.is_anomaly
    most, least = calibration.p_value(scores - slack), calibration.p_value(scores + slack)
    is_between = (least - 1e-12 <= found["p_value"]) & (found["p_value"] <= most + 1e-12)
    return Difference(
        table.n_rows, float(error.max()), int((is_sure & is_other).sum()), int((~is_between).sum())
    )


def check(model: FittedModel, path: PathLike) -> Difference:
    """Compare a graph with its model; where they differ too much, it is an error."""
    table, columns = made_up(model.encoder)
    found = compare(model, table, run(path, columns))
    if not found.is_close:
        raise UserError(
            f"The graph must score {found.n_rows} made-up rows as the model does, within "
            f"{TOLERANCE:g}; scores differ by up to {found.score:.2g}, {found.n_decisions} "
            f"decisions and {found.n_p_values} p-values differ. Nothing was written. This is a "
            "bug in fewlier, or in the installed torch or onnxruntime."
        )
    return found


def _made_up_dates(encoder: Encoder, n: int, rng: np.random.Generator) -> Columns:
    """Return microseconds since 1970 for each column of dates, and offsets where it takes them."""
    found: Columns = {}
    offsets = [one.name for one in inputs_of(encoder) if one.form == "offset"]
    for column in encoder.schema.columns:
        part = column.date
        if part is None or (part.aspect is not Aspect.DATE and column.source in found):
            continue
        moments = np.round(rng.uniform(*_range(part), n) * _MICROSECONDS).astype(np.int64)
        moments[rng.random(n) < 0.1] = NO_DATE
        found[column.source] = moments
    return found | {name: rng.integers(*_OFFSETS, n, np.int32, True) for name in offsets}


def _range(part: DatePart) -> tuple[float, float]:
    """Return from when to when dates are drawn, also beyond what is possible in the column."""
    if part.aspect is not Aspect.DATE:
        return 0.0, DAY
    more = part.reach * 1.2
    return part.start - more, part.end + more


def _moments(encoder: Encoder, source: str, dates: Columns) -> Moments:
    """Return what the library reads in the cells of a column of dates."""
    offsets = {one.column: one.name for one in inputs_of(encoder) if one.form == "offset"}
    moments, is_gap = dates[source], dates[source] == NO_DATE
    minutes = dates[offsets[source]].astype(np.int64) if source in offsets else 0
    instant, local = (
        np.where(is_gap, np.nan, some / _MICROSECONDS)
        for some in (moments, moments + minutes * MINUTE)
    )
    weekday = np.mod(np.floor(local / DAY) + _THURSDAY, 7)
    return Moments(instant, np.mod(local, DAY), weekday)
