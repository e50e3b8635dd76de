"""The types of arrays that modules hand to each other, and a hash of rows."""

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
Bools: TypeAlias = npt.NDArray[np.bool_]
Codes: TypeAlias = npt.NDArray[np.int8]
"""What labels say of rows: see `table.labels`."""


def hash_rows(columns: Iterable[npt.NDArray[np.uint64]]) -> Ints:
    """Return a number for each row, shape (n,), that equal rows share.

    It depends on the row's own bits alone. Two of a million different rows collide with a
    probability of 3e-8: each column is mixed in by the finaliser of SplitMix64 (Steele et al.,
    2014), a bijection that spreads every bit of its 64.

    Parameters
    ----------
    columns : iterable of array (n,)
        The columns as bits, at least one.
    """
    found: npt.NDArray[np.unsignedinteger[Any]] = np.zeros((), np.uint64)
    for column in columns:
        found = found + column + np.uint64(0x9E3779B97F4A7C15)
        found = (found ^ (found >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        found = (found ^ (found >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        found = found ^ (found >> np.uint64(31))
    return found.view(np.int64)
