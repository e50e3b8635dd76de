"""Requests that have arrived wait here for the one thread that computes."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import final

from fewlier.service.answers import Order, Reply
from fewlier.service.limits import Refusal

TOGETHER = 2**20
"""Bytes of requests after which further ones wait for the next turn."""

Fulfil = Callable[[Sequence[Order]], Sequence[Reply | Exception]]


@final
class Queue:
    """What arrives while the thread is busy is done next, as much at once as has `TOGETHER` bytes.

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
            while not self._waiting.empty() and sum(len(one.body) for one, _ in taken) < TOGETHER:
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
