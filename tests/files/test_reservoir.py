"""The rows of the smallest keys, however they come: compared with sorting all of them."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewlier.files import reservoir
from fewlier.files.reservoir import Reservoir


class Numbers:
    """Rows that are their own numbers."""

    def __init__(self, numbers):
        self.numbers = numbers

    def take(self, rows):
        return Numbers(self.numbers[rows])

    @classmethod
    def joined(cls, parts):
        return cls(np.concatenate([part.numbers for part in parts]))


def offered(keys, sizes, size):
    kept, start = Reservoir(size, Numbers.joined), 0
    for n in [*sizes, len(keys)]:
        rows = np.arange(start, min(start + n, len(keys)))
        kept.offer(keys[rows], Numbers(rows))
        start += len(rows)
    return kept


@given(
    keys=st.lists(st.integers(0, 20) | st.just(float("inf")), min_size=1, max_size=200),
    sizes=st.lists(st.integers(0, 30), max_size=20),
    size=st.integers(1, 40),
)
def test_it_keeps_what_a_stable_sort_of_all_rows_begins_with(keys, sizes, size):
    keys = np.array(keys, dtype=np.float64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reservoir, "MIN_KEPT_ROWS", 16)
        kept = offered(keys, sizes, size)
        order = np.argsort(keys, kind="stable")
        expected = [row for row in order.tolist() if np.isfinite(keys[row])][:size]
        assert len(kept) >= len(expected)
        if expected:
            assert kept.in_order().numbers.tolist() == expected


@given(sizes=st.lists(st.integers(1, 50), min_size=1, max_size=20), seed=st.integers(0, 99))
def test_what_it_gives_away_is_in_the_order_in_which_it_came(sizes, seed):
    keys = np.random.default_rng(seed).random(300)
    parts = offered(keys, sizes, 40).drain()
    numbers = np.concatenate([part.numbers for part in parts])
    assert numbers.tolist() == sorted(np.argsort(keys)[:40].tolist())


def test_memory_does_not_grow_with_what_passes_by():
    rng, kept = np.random.default_rng(0), Reservoir(1000, Numbers.joined)
    peaks = []
    for n_batches in (50, 500):
        tracemalloc.start()
        for _ in range(n_batches):
            kept.offer(rng.random(2000), Numbers(np.arange(2000)))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]
