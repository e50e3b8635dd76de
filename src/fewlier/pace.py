"""How long a fit takes, measured on one of its first epochs."""

import time
from collections.abc import Callable
from typing import final


@final
class Pace:
    """Says, after the second epoch, how long all epochs take at most; an `on_epoch` of a fit.

    The first epoch is not measured: it may take twice as long, while torch starts. What comes
    before and after the epochs takes about as long as one of a hundred.

    Parameters
    ----------
    on_known : callable
        Told the seconds, once. Members that stop improving make a fit shorter. A fit of two epochs
        is over by then, and nothing is said of it.
    """

    def __init__(self, on_known: Callable[[float], None]) -> None:
        self._on_known = on_known
        self._started = time.perf_counter()

    def __call__(self, done: int, total: int) -> None:
        """Take the news that `done` of at most `total` epochs are done."""
        if done == 1:
            self._started = time.perf_counter()
        elif done == 2 < total:
            self._on_known((time.perf_counter() - self._started) * total)


def duration(seconds: float) -> str:
    """Write a time as people do: ``40 s``, ``12 min``, ``3.5 h``."""
    if seconds < 99.5:
        return f"{max(seconds, 1):.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 99.5 else f"{minutes / 60:.1f} h"
