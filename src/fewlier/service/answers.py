"""What a model says of the rows of several requests, which wait and are scored together.

A network takes nearly as long for one row as for fifty, and a row scores the same, bit for bit,
alone and among others.
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, final

import numpy as np

from fewlier.errors import UserError
from fewlier.reasons.explanation import Explanation
from fewlier.scoring.scored import Scored
from fewlier.service.arrow import read_arrow, write_arrow
from fewlier.service.limits import MAX_REASONS, Limits, Refusal
from fewlier.service.metrics import Counts
from fewlier.service.model import Served
from fewlier.service.rows import REASONS, read_json, write_json
from fewlier.table import Encoded, Table

MAX_TURN_BYTES = 2**20
"""Bytes of requests after which further ones wait for the next turn."""


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
    except UserError as error:  # without its traceback, which would keep the rows in memory
        return error.with_traceback(None)
    except Exception as error:  # noqa: BLE001 - it is this order's alone
        return error


def _score(read: Sequence[_Read], served: Served) -> list[Scored]:
    """Score the rows of each order, all at once."""
    if not read:
        return []
    parts = zip(*(vars(one.encoded).values() for one in read), strict=True)
    scores = served.model.score(Encoded(*map(np.concatenate, parts)))
    ends, calibration = np.cumsum([len(one.encoded) for one in read]), served.model.calibration
    return [
        Scored.judged(one.table, one.encoded, own, calibration)
        for one, own in zip(read, np.split(scores, ends[:-1]), strict=True)
    ]


def _reply(read: _Read, scored: Scored, served: Served, counts: Counts) -> Reply:
    order, columns = read.order, scored.columns()
    if not order.is_arrow:
        columns = {name: cells.tolist() for name, cells in columns.items()}
    if order.n_reasons:
        tops = Explanation(scored, served.model).tops(n=order.n_reasons)
        columns[REASONS] = [[one.to_json() for one in row] for row in tops]
    notes = scored.notes
    facts = served.facts | ({"notes": notes} if notes else {})
    body = (write_arrow if order.is_arrow else write_json)(facts, read.passed | columns)
    counts.rows(len(scored), int(scored.is_anomaly.sum()))
    return Reply(body, served, len(scored))


Fulfil = Callable[[Sequence[Order]], Sequence[Reply | Exception]]


@final
class Queue:
    """What arrives while the thread is busy is done next, as much at once as has `MAX_TURN_BYTES`.

    Parameters
    ----------
    fulfil : callable
        Returns the replies to orders, or why there is none.
    size : int
        Orders that may wait.
    """

    def __init__(self, fulfil: Fulfil, size: int) -> None:
        self._fulfil, self._thread = fulfil, ThreadPoolExecutor(1, "scoring")
        self._waiting: asyncio.Queue[tuple[Order, asyncio.Future[Reply]]] = asyncio.Queue(size)

    async def reply(self, order: Order) -> Reply:
        """Return the reply to an order, or raise why it is refused."""
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        try:
            self._waiting.put_nowait((order, future))
        except asyncio.QueueFull:
            raise Refusal(503, f"{self._waiting.maxsize} requests wait; ask again soon.") from None
        return await future

    async def work(self) -> None:
        """Fulfil orders, for ever."""
        loop = asyncio.get_running_loop()
        while True:
            taken = [await self._waiting.get()]
            while not self._waiting.empty():
                if sum(len(one.body) for one, _ in taken) >= MAX_TURN_BYTES:
                    break
                taken.append(self._waiting.get_nowait())
            # Who has gone away, or has waited too long, is not served.
            taken = [(order, future) for order, future in taken if not future.done()]
            orders = [order for order, _ in taken]
            try:
                replies = await loop.run_in_executor(self._thread, self._fulfil, orders)
            except Exception as error:  # noqa: BLE001 - whoever waits must hear of it
                replies = [error] * len(taken)
            for (_, future), reply in zip(taken, replies, strict=True):
                if future.done():
                    continue
                if isinstance(reply, Exception):
                    future.set_exception(reply)
                else:
                    future.set_result(reply)
