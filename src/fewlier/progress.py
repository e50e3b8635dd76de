"""How long work reports its progress."""

from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[float | None], None]
"""Called now and then with the share of the work that is done, 0 to 1, or None if unknown."""


def silent(share: float | None) -> None:
    """Report nothing."""
