"""`Reservoir`: those rows, of any number that pass by, that have the smallest keys."""

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, Protocol, Self, TypeVar, final

import numpy as np

from fewlier.table.arrays import Floats, Ints

MIN_KEPT_ROWS = 8192
"""Rows that are kept together, if there are so many; each column of each lot takes memory."""


class _Rows(Protocol):
    """Rows of any form, of which some can be taken."""

    def take(self, rows: Ints, /) -> Self:
        """Return the rows at these positions."""


Kept = TypeVar("Kept", bound=_Rows)


@final
class Reservoir(Generic[Kept]):
    """The rows with the smallest keys, at most so many.

    Of random keys they are a uniform sample; of scores with the sign changed, the highest-scored
    rows. Of equal keys, those count that came first.

    Parameters
    ----------
    size : int
        How many rows are kept.
    join : callable
        Puts rows together.
    """

    def __init__(self, size: int, join: Callable[[Sequence[Kept]], Kept]) -> None:
        self._size, self._join = size, join
        self._keys, self._kept = list[Floats](), list[Kept]()
        self._n, self._bound = 0, np.inf

    def offer(self, keys: Floats, rows: Kept) -> None:
        """Keep the rows with small enough keys; never one with an infinite key."""
        chosen = np.flatnonzero(keys < self._bound)
        if not len(chosen):
            return
        self._keys.append(keys[chosen])
        self._kept.append(rows.take(chosen))
        self._n += len(chosen)
        if self._n > self._size + self._size // 8:
            self._shrink()

    def drain(self) -> list[Kept]:
        """Give away what is kept, in the order in which it came."""
        self._shrink()
        kept, self._kept = self._kept, []
        return kept

    def in_order(self) -> Kept:
        """Give away what is kept, by ascending keys; there must be something."""
        rows = self._join(self.drain())
        return rows.take(np.argsort(np.concatenate(self._keys), kind="stable"))

    def __len__(self) -> int:
        """Count what is kept, and what is still to be dropped."""
        return self._n

    def _shrink(self) -> None:
        """Drop what is too much, some rows after the others, so that none is twice in memory."""
        if self._n <= self._size:
            return
        keys = np.concatenate(self._keys)
        is_kept = np.zeros(len(keys), np.bool_)
        is_kept[np.argsort(keys, kind="stable")[: self._size]] = True
        self._bound = float(keys[is_kept].max())
        ends = np.cumsum([len(own) for own in self._keys])
        for number, kept in enumerate(np.split(is_kept, ends[:-1])):
            self._keys[number] = self._keys[number][kept]
            self._kept[number] = self._kept[number].take(np.flatnonzero(kept))
        merged = list(self._merged())
        self._keys, self._kept = [own for own, _ in merged], [part for _, part in merged]
        self._n = self._size

    def _merged(self) -> Iterator[tuple[Floats, Kept]]:
        """Yield what is kept, with few rows put together."""
        keys, parts = list[Floats](), list[Kept]()
        for own, part in zip(self._keys, self._kept, strict=True):
            keys.append(own)
            parts.append(part)
            if sum(map(len, keys)) >= MIN_KEPT_ROWS or part is self._kept[-1]:
                yield np.concatenate(keys), self._join(parts)
                keys, parts = [], []
