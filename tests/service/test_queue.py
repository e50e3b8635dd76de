"""Orders that are fulfilled together: each for itself, and never too many rows at once."""

import asyncio
from functools import partial

import numpy as np
import pytest
from factories import FEATURES, payments

from fewlier.service import queue
from fewlier.service.counts import RowCounts
from fewlier.service.limits import Limits, Refusal
from fewlier.service.queue import TOGETHER, Order, Queue, Reply, fulfil
from fewlier.service.shelf import Served
from fewlier.table import Table

ROWS = payments(seed=7)[FEATURES]


@pytest.fixture
def order(detector, tmp_path):
    counts = RowCounts(detector.model_, "one", tmp_path)
    served = Served("pay", "0" * 64, detector.model_, {}, counts)

    def make(first=0, n=1, **changes):
        rows = ROWS.iloc[np.arange(first, first + n) % len(ROWS)]
        made = Order(served, Limits(), partial(Table.of, rows), lambda answer: answer)
        return made._replace(**changes)

    return make


def scores(reply):
    return reply.body.scores


def test_an_order_whose_reasons_fail_fails_alone(order, detector, monkeypatch):
    def fail(_, n):
        if n == 2:
            raise ValueError

    monkeypatch.setattr(queue, "_reasons", fail)
    results = fulfil([order(0), order(1, n_reasons=2), order(2)])
    assert [type(result) for result in results] == [Reply, ValueError, Reply]
    expected = detector.anomaly_score(ROWS.head(3))
    np.testing.assert_array_equal(np.ravel([scores(results[0]), scores(results[2])]), expected[::2])
    assert order(0).served.counts.total()[0] == 2


def test_an_order_that_cannot_be_read_or_written_fails_alone(order):
    def fail(*_):
        raise ValueError

    results = fulfil([order(0, write=fail), order(1, read=fail), order(2)])
    assert [type(result) for result in results] == [ValueError, ValueError, Reply]


def test_rows_beyond_what_is_scored_together_wait_for_the_next_turn(order, detector, monkeypatch):
    half = TOGETHER // 2 + 1
    orders = [order(first, half) for first in range(5)]
    assert len(fulfil(orders)) == 2
    turns = []
    monkeypatch.setattr(queue, "fulfil", lambda taken: turns.append(len(taken)) or fulfil(taken))

    async def ask():
        waiting = Queue()
        return await asyncio.gather(*map(waiting.reply, orders))

    expected = detector.anomaly_score(ROWS)
    for first, reply in enumerate(asyncio.run(ask())):
        places = np.arange(first, first + half) % len(ROWS)
        np.testing.assert_array_equal(scores(reply), expected[places])
    assert turns == [5, 3, 1]


def test_a_batch_that_fails_as_a_whole_is_told_to_everyone(order, monkeypatch):
    def fail(_):
        raise MemoryError

    monkeypatch.setattr(queue, "fulfil", fail)

    async def ask():
        waiting = Queue()
        replies = (waiting.reply(order(first)) for first in range(3))
        return await asyncio.gather(*replies, return_exceptions=True)

    assert [type(result) for result in asyncio.run(ask())] == [MemoryError] * 3


@pytest.mark.parametrize(
    ("n", "n_reasons", "is_fine"), [(3, 2, True), (4, 2, False), (2, 999, True)]
)
def test_an_answer_has_at_most_so_many_reasons(order, n, n_reasons, is_fine):
    (found,) = fulfil([order(0, n, n_reasons=n_reasons, limits=Limits(reasons=6))])
    if is_fine:  # there are three columns, however many are asked for
        assert [len(row) for row in found.body.reasons] == [min(n_reasons, 3)] * n
        return
    assert isinstance(found, Refusal)
    assert found.status == 413
    assert "at most 6 reasons; 4 rows with 2 each would have 8" in str(found)
