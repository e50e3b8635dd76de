"""What a model says of the rows of several requests, which it scores together.

A network takes nearly as long for one row as for fifty, and a row scores the same, bit for bit,
alone and among others.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fewlier.reasons.explanation import Explanation
from fewlier.service.arrow import read_arrow, write_arrow
from fewlier.service.limits import MAX_REASONS, Limits, Refusal
from fewlier.service.metrics import Counts
from fewlier.service.model import Served
from fewlier.service.rows import OUTPUTS, REASONS, read_json, write_json
from fewlier.table import Encoded, Table
from fewlier.table.arrays import Floats
from fewlier.table.frame import impossible_note, unread_note


class Order(NamedTuple):
    """A request for scores.

    Parameters
    ----------
    body : bytearray
        Its rows, as they came.
    is_arrow : bool
        Whether they are an Arrow stream, as the answer then is; else JSON.
    n_reasons : int
        Columns to name for each row.
    ids : tuple of str
        Columns that are to come back.
    """

    body: bytearray
    is_arrow: bool = False
    n_reasons: int = 0
    ids: tuple[str, ...] = ()


class Reply(NamedTuple):
    """The body of a response, the model that gave it, and about how many rows."""

    body: bytes
    served: Served
    n_rows: int


class _Read(NamedTuple):
    """The rows of an order in the form of the model, and the columns that come back."""

    order: Order
    table: Table
    encoded: Encoded
    passed: dict[str, Any]


def fulfil(
    orders: Sequence[Order], served: Served, limits: Limits, counts: Counts
) -> list[Reply | Exception]:
    """Return a reply to each order, or why there is none: one that fails, fails alone."""
    read = [_read(order, served, limits) for order in orders]
    try:
        score = iter(_score([one for one in read if isinstance(one, _Read)], served))
        return [_reply(x, next(score), served, counts) if isinstance(x, _Read) else x for x in read]
    except Exception as error:  # noqa: BLE001 - a bug in one must not fail the others
        alone = (fulfil([order], served, limits, counts)[0] for order in orders)
        return [*alone] if len(orders) > 1 else [error]


def _read(order: Order, served: Served, limits: Limits) -> _Read | Exception:
    try:
        encoder = served.model.encoder
        read = read_arrow if order.is_arrow else read_json
        table, passed = read(order.body, limits, encoder.schema, order.ids)
        order = order._replace(n_reasons=min(order.n_reasons, encoder.n_columns))
        if table.n_rows * order.n_reasons > MAX_REASONS:
            asked = f"{table.n_rows} rows with {order.n_reasons} each"
            raise Refusal(413, f"An answer may have at most {MAX_REASONS} reasons; got {asked}.")
        table = encoder.schema.match(table)
        return _Read(order, table, encoder.encode(table), passed)
    except Exception as error:  # noqa: BLE001 - it is this order's alone
        return error


def _score(read: Sequence[_Read], served: Served) -> list[Floats]:
    """Return the scores of each order's rows, scored all at once."""
    if not read:
        return []
    parts = zip(*(vars(one.encoded).values() for one in read), strict=True)
    scores = served.model.score(Encoded(*map(np.concatenate, parts)))
    ends = np.cumsum([len(one.encoded) for one in read])
    return np.split(scores, ends[:-1])


def _reply(read: _Read, scores: Floats, served: Served, counts: Counts) -> Reply:
    order, calibration = read.order, served.model.calibration
    is_anomaly, p_values = scores > calibration.threshold, calibration.p_value(scores)
    columns: dict[str, Any] = dict(zip(OUTPUTS, (scores, is_anomaly, p_values), strict=False))
    if not order.is_arrow:
        columns = {name: cells.tolist() for name, cells in columns.items()}
    if order.n_reasons:
        why = Explanation(read.table, read.encoded, scores, served.model)
        columns[REASONS] = [[one.to_json() for one in row] for row in why.tops(n=order.n_reasons)]
    notes = _notes(read)
    write = write_arrow if order.is_arrow else write_json
    body = write(served.facts | ({"notes": notes} if notes else {}), read.passed | columns)
    counts.rows(len(scores), int(is_anomaly.sum()))
    return Reply(body, served, len(scores))


def _notes(read: _Read) -> list[str]:
    """Return what the caller should know of the rows."""
    notes = [unread_note(read.table.unread)] if read.table.unread else []
    if read.encoded.impossible.any():
        counts = zip(read.table.names, read.encoded.impossible.sum(0).tolist(), strict=True)
        notes.append(impossible_note({name: n for name, n in counts if n}))
    return notes
