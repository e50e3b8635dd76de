"""How much memory there is, and what to say when it has run out."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from fewlier.errors import UserError

REMEDY = "Leave out uninformative columns, or use fewer hidden units."
"""How to fit with less memory."""
# What PyTorch says, as a plain RuntimeError, when the system gives it no more memory.
_OUT_OF_MEMORY = ("DefaultCPUAllocator", "not enough memory", "out of memory")


def memory_of_machine() -> int:
    """Return the bytes of memory that the machine has, used or not."""
    if not hasattr(os, "sysconf"):  # Windows
        return sys.maxsize
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@contextmanager
def within_memory() -> Iterator[None]:
    """Turn running out of memory into a `UserError`."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        is_known = isinstance(error, MemoryError)
        if not is_known and not any(text in str(error) for text in _OUT_OF_MEMORY):
            raise
        raise UserError(f"The fit ran out of memory. {REMEDY}") from error
