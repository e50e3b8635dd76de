"""Requests that are answered together: each for itself, and never too many at once."""

import asyncio
import json

import numpy as np
import pytest
from factories import FEATURES, payments

from fewlier.errors import UserError
from fewlier.service import answers
from fewlier.service.answers import Order, Queue, Reply, fulfil
from fewlier.service.limits import Limits, Refusal
from fewlier.service.metrics import Counts
from fewlier.service.model import Served

ROWS = payments(seed=7)[FEATURES]
RECORDS = json.loads(ROWS.to_json(orient="records"))


@pytest.fixture
def answer(detector, tmp_path):
    """Return what answers orders by the detector."""
    served = Served("pay", "0" * 64, detector.model_, {})
    return lambda orders: fulfil(orders, served, Limits(), Counts(tmp_path / "no folder"))


def order(first=0, n=1, **changes):
    rows = [RECORDS[place % len(ROWS)] for place in range(first, first + n)]
    return Order(json.dumps({"rows": rows}).encode())._replace(**changes)


def scores(reply):
    return [row["anomaly_score"] for row in json.loads(reply.body)["rows"]]


def test_an_order_whose_reasons_fail_fails_alone(answer, detector, monkeypatch):
    class Explanation:
        def __init__(self, *_):
            raise MemoryError

    monkeypatch.setattr(answers, "Explanation", Explanation)
    results = answer([order(0), order(1, n_reasons=2), order(2)])
    assert [type(result) for result in results] == [Reply, MemoryError, Reply]
    expected = detector.anomaly_score(ROWS.head(3))
    np.testing.assert_array_equal(np.ravel([scores(results[0]), scores(results[2])]), expected[::2])


def test_an_order_that_cannot_be_read_fails_alone(answer, monkeypatch):
    monkeypatch.setattr(answers, "read_arrow", lambda *_: 1 / 0)
    orders = [order(0, body=b"{"), order(1, is_arrow=True), order(2)]
    kinds = [type(result).__name__ for result in answer(orders)]
    assert kinds == ["UserError", "ZeroDivisionError", "Reply"]


def test_what_is_refused_holds_no_rows_while_it_is_answered(answer):
    (refused,) = answer([order(0, body=b'{"columns": {"amount": [1.5]}}')])
    assert isinstance(refused, UserError)
    assert refused.__traceback__ is None  # its frames hold the whole request


def test_bytes_beyond_what_is_done_together_wait_for_the_next_turn(answer, detector, monkeypatch):
    orders = [order(40 * number, 30) for number in range(5)]
    monkeypatch.setattr(answers, "MAX_TURN_BYTES", len(orders[0].body) + len(orders[1].body))
    turns = []

    async def ask():
        waiting = Queue(lambda taken: turns.append(len(taken)) or answer(taken), 9)
        work = asyncio.create_task(waiting.work())
        replies = await asyncio.gather(*map(waiting.reply, orders))
        work.cancel()
        return replies

    expected = detector.anomaly_score(ROWS)
    for number, reply in enumerate(asyncio.run(ask())):
        places = np.arange(40 * number, 40 * number + 30) % len(ROWS)
        np.testing.assert_array_equal(scores(reply), expected[places])
    assert sum(turns) == 5
    assert max(turns) <= 3


def test_a_turn_that_fails_as_a_whole_is_told_to_everyone():
    def fail(_):
        raise MemoryError

    async def ask():
        waiting = Queue(fail, 9)
        work = asyncio.create_task(waiting.work())
        replies = (waiting.reply(order(first)) for first in range(3))
        found = await asyncio.gather(*replies, return_exceptions=True)
        work.cancel()
        return found

    assert [type(result) for result in asyncio.run(ask())] == [MemoryError] * 3


def test_more_orders_than_may_wait_are_refused_at_once():
    async def ask():
        waiting = Queue(lambda _: [], 2)
        replies = [asyncio.create_task(waiting.reply(order())) for _ in range(3)]
        done, pending = await asyncio.wait(replies, return_when=asyncio.FIRST_COMPLETED)
        for one in pending:
            one.cancel()
        return [one.exception() for one in done]

    (refused,) = asyncio.run(ask())
    assert isinstance(refused, Refusal)
    assert (refused.status, "2 requests wait" in str(refused)) == (503, True)


@pytest.mark.parametrize(
    ("n", "n_reasons", "is_fine"), [(3, 2, True), (4, 2, False), (2, 999, True)]
)
def test_an_answer_has_at_most_so_many_reasons(answer, monkeypatch, n, n_reasons, is_fine):
    monkeypatch.setattr("fewlier.service.answers.MAX_REASONS", 6)
    (found,) = answer([order(0, n, n_reasons=n_reasons)])
    if is_fine:  # there are three columns, however many are asked for
        rows = json.loads(found.body)["rows"]
        assert [len(row["reasons"]) for row in rows] == [min(n_reasons, 3)] * n
        return
    assert isinstance(found, Refusal)
    assert found.status == 413
    assert "at most 6 reasons; got 4 rows with 2 each" in str(found)


def test_notes_tell_of_cells_that_were_not_read_or_are_impossible(answer):
    rows = [
        {"amount": "x", "visits": 1, "city": "Mars"},
        {"amount": 5, "visits": 1, "city": "Rome"},
    ]
    rows += [{"amount": 5, "visits": 1, "city": "Rome"}] * 8
    (reply,) = answer([Order(json.dumps({"rows": rows}).encode())])
    unread, impossible = json.loads(reply.body)["notes"]
    assert "1 in amount (first 'x' in row 0)" in unread
    assert impossible.endswith("count as odd: 1 in city.")
    (reply,) = answer([order()])
    assert "notes" not in json.loads(reply.body)
