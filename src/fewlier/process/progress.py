"""How long work reports its progress."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

Progress: TypeAlias = Callable[[float | None], None]
"""Called now and then with the share of the work that is done, 0 to 1, or None if unknown."""


class ReadProgress(NamedTuple):
    """How far the reading of files has come: the share, None if unknown, the bytes, the rows."""

    share: float | None
    n_bytes: int
    n_rows: int


def no_progress(_: object) -> None:
    """Report nothing."""


class FitProgress(NamedTuple):
    """What hears how far a fit to files has come, while it reads and while it trains."""

    reading: Callable[[ReadProgress], None] = no_progress
    training: Progress = no_progress
