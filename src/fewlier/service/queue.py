"""Requests wait for the model together and are scored together.

A network takes nearly as long for one row as for fifty, and a row scores the same, bit for bit,
alone and among others.
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, final

import numpy as np

from fewlier.reasons.explanation import Explanation
from fewlier.reasons.reason import Reason
from fewlier.service.answers import Answer
from fewlier.service.counts import FLAGGED, ROWS
from fewlier.service.limits import Limits
from fewlier.service.shelf import Served
from fewlier.table import Encoded, Table
from fewlier.table.frame import unread_note

TOGETHER = 5_000
"""Rows after which further requests wait for the next turn."""


class Order(NamedTuple):
    """A request for scores.

    Parameters
    ----------
    served : Served
        The model that is to answer.
    limits : Limits
        What it may ask for.
    read : callable
        Returns the rows of the request; may refuse them.
    write : callable
        Makes the body of the response.
    n_reasons : int
        Columns to name for each row.
    """

    served: Served
    limits: Limits
    read: Callable[[], Table]
    write: Callable[[Answer], bytes]
    n_reasons: int = 0


class Read(NamedTuple):
    """The rows of an order in the form of its model."""

    order: Order
    table: Table
    encoded: Encoded


class Reply(NamedTuple):
    """The body of a response, and how many rows it is about."""

    body: bytes
    n_rows: int


Result = Reply | Exception


@final
class Queue:
    """Orders that wait for the one thread that computes.

    What arrives while it is busy is done next, as much at once as has `TOGETHER` rows.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "scoring")
        self._waiting: list[tuple[Order, asyncio.Future[Result]]] = []
        self._worker: asyncio.Task[None] | None = None

    async def reply(self, order: Order) -> Reply:
        """Return the reply to an order, or raise why it is refused."""
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._waiting.append((order, future))
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work())
        result = await future
        if isinstance(result, Exception):
            raise result
        return result

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            taken, self._waiting = self._waiting, []
            # Who has gone away, or has waited too long, is not served.
            taken = [(order, future) for order, future in taken if not future.done()]
            orders = [order for order, _ in taken]
            try:
                results: Sequence[Result]
                results = await loop.run_in_executor(self._thread, fulfil, orders)
            except Exception as error:  # noqa: BLE001 - whoever waits must hear of a bug
                results = [error] * len(taken)
            self._waiting = taken[len(results) :] + self._waiting
            for (_, future), result in zip(taken, results):  # noqa: B905 - some wait on
                if not future.done():
                    future.set_result(result)


def fulfil(orders: Sequence[Order]) -> list[Result]:
    """Return a result for each of the first orders; those of one model are scored together."""
    results: dict[int, Result] = {}
    read: dict[str, list[tuple[int, Read]]] = {}
    n_rows = 0
    for number, order in enumerate(orders):
        if n_rows >= TOGETHER:
            break
        try:
            one = _read(order)
        except Exception as error:  # noqa: BLE001 - a bug in one must not fail the others
            results[number] = error
            continue
        n_rows += len(one.encoded)
        read.setdefault(order.served.sha256, []).append((number, one))
    for group in read.values():
        numbers, members = zip(*group, strict=True)
        results |= zip(numbers, _replies(members), strict=True)
    return [results[number] for number in range(len(results))]


def _read(order: Order) -> Read:
    """Return the rows of an order; an answer that would be too long is refused."""
    table, encoder = order.read(), order.served.model.encoder
    n_reasons = min(order.n_reasons, encoder.n_columns)
    order.limits.check_reasons(table.n_rows, n_reasons)
    table = encoder.schema.match(table)
    return Read(order._replace(n_reasons=n_reasons), table, encoder.encode(table))


def _replies(group: Sequence[Read]) -> list[Result]:
    """Return the replies to what one model is asked; if that fails, each is asked alone."""
    try:
        answers = _score(group)
    except Exception as error:  # noqa: BLE001 - a bug in one must not fail the others
        return [error] if len(group) == 1 else [_replies([one])[0] for one in group]
    return [_written(one.order, answer) for one, answer in zip(group, answers, strict=True)]


def _written(order: Order, answer: Answer) -> Result:
    try:
        return Reply(order.write(answer), len(answer.scores))
    except Exception as error:  # noqa: BLE001 - a bug in one must not fail the others
        return error


def _score(group: Sequence[Read]) -> list[Answer]:
    """Score what one model is asked."""
    served = group[0].order.served
    model, calibration = served.model, served.model.calibration
    encoded = _joined([one.encoded for one in group])
    scores = model.score(encoded)
    ends = np.cumsum([len(one.encoded) for one in group])
    found = []
    for one, own in zip(group, np.split(scores, ends[:-1]), strict=True):
        why = Explanation(one.table, one.encoded, own, model)
        found.append(
            Answer(
                one.order.served.facts,
                own,
                own > calibration.threshold,
                calibration.p_value(own),
                _reasons(why, one.order.n_reasons),
                (unread_note(one.table.unread),) if one.table.unread else (),
            )
        )
    served.counts.add(encoded, scores)
    ROWS.labels(served.name).inc(len(scores))
    FLAGGED.labels(served.name).inc(int((scores > calibration.threshold).sum()))
    return found


def _joined(tables: Sequence[Encoded]) -> Encoded:
    """Return the rows of tables, one after the other."""
    arrays = zip(*(vars(table).values() for table in tables), strict=True)
    return Encoded(*map(np.concatenate, arrays))


def _reasons(why: Explanation, n: int) -> list[list[Reason]] | None:
    return why.tops(n=n) if n else None
