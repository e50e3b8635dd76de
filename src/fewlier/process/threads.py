"""How threads share the work: each computes alone, on rows of its own.

OpenMP divides every product among threads, which then wait for each other in busy loops. Where
another process has one of the cores, they all wait for the thread that has none, thousands of times
a second, and a fit takes twenty times as long. So inside fewlier a product belongs to one thread,
and what can be divided into chunks of rows is, among threads of Python, which sleep while they
wait. Then no result depends on the number of threads either.
"""

import ctypes
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from itertools import chain, islice
from typing import TypeVar

import torch
from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")
Result = TypeVar("Result")

MAX_AHEAD = 4
"""Most batches under way; each takes memory."""

_own = threading.local()  # how many threads are granted to the block that a thread is in


@contextmanager
def one_thread(granted: int | None = None) -> Iterator[int]:
    """Compute in one thread inside the block; yield how many threads the caller grants.

    These are the threads that torch would take: by the number of cores, by `OMP_NUM_THREADS`, or as
    the caller told it. OpenMP and MKL keep the number for each thread, so nobody else's changes,
    and the caller's own is as before in the end. `granted` is for a thread that has a share.
    """
    if outer := getattr(_own, "granted", 0):
        yield outer
        return
    # Asked before the limit: a thread's first question lets torch set the number itself.
    n_threads = torch.get_num_threads()
    _own.granted = granted or n_threads
    before = _set_mkl_threads()(1)
    try:
        with _openmp().limit(limits=1):
            yield _own.granted
    finally:
        _set_mkl_threads()(before)
        _own.granted = 0


def in_threads(function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Call a function on each item, in as many threads as the caller grants; keep the order.

    After an error, or Ctrl-C, no further item is begun.
    """

    def call(item: Item) -> Result:
        with one_thread():
            return function(item)

    items = list(items)
    with one_thread() as granted:
        n_threads = min(granted, len(items))
        if n_threads < 2:
            return [function(item) for item in items]
        with ThreadPoolExecutor(n_threads, "fewlier") as pool:
            return list(pool.map(call, items))


def ahead(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Yield what a function makes of each item, in order, with the next ones under way.

    So batches are read and written by the caller while threads score others, each with its share
    of the threads that the caller grants. Where there are fewer items than that, one comes after
    the other, and `in_threads` shares out the rows of each.
    """
    items, granted = iter(items), torch.get_num_threads()
    n_workers = min(granted, MAX_AHEAD)
    first = list(islice(items, n_workers))
    if n_workers < 2 or len(first) < n_workers:
        yield from map(function, chain(first, items))
        return

    def call(item: Item) -> Result:
        with one_thread(granted // n_workers):
            return function(item)

    pool = ThreadPoolExecutor(n_workers, "fewlier-ahead")
    try:
        under_way = deque(pool.submit(call, item) for item in first)
        for item in items:
            under_way.append(pool.submit(call, item))
            yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


@cache
def _openmp() -> ThreadpoolController:
    """Find the copies of OpenMP that torch and scikit-learn bring.

    BLAS is left alone: its number of threads belongs to the process, and nothing here calls it.
    """
    return ThreadpoolController().select(user_api="openmp")


@cache
def _set_mkl_threads() -> Callable[[int], int]:
    """Find what sets MKL's number for the calling thread, and returns the one before; 0 is none.

    Where torch brings MKL and the caller has called `torch.set_num_threads`, MKL has a number of
    its own, and does not ask OpenMP.
    """
    library = ctypes.CDLL(torch._C.__file__)
    return getattr(library, "MKL_Set_Num_Threads_Local", lambda _: 0)
