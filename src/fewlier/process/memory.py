"""How much memory there is, and what to say when it has run out."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fewlier.errors import UserError

REMEDY = "Leave out uninformative columns, or use fewer hidden units."
"""How to fit with less memory."""
# Where Linux says how much memory a container may take: version 2 of control groups, and 1.
_CGROUP = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
# What PyTorch says, as a plain RuntimeError, when the system gives it no more memory.
_OUT_OF_MEMORY = ("DefaultCPUAllocator", "not enough memory", "out of memory")


def memory_limit() -> int:
    """Return the bytes of memory that this process may take, used or not."""
    return min([*_of_machine(), *_of_process(), *_of_container()], default=sys.maxsize)


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


def _of_machine() -> list[int]:
    if not hasattr(os, "sysconf"):
        return []
    return [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]


def _of_process() -> list[int]:
    """Return what `ulimit` sets."""
    try:
        import resource
    except ImportError:  # not on Windows
        return []
    limits = (resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA))
    return [limit for limit in limits if limit != resource.RLIM_INFINITY]


def _of_container() -> list[int]:
    texts = [Path(path).read_text("utf-8").strip() for path in _CGROUP if Path(path).is_file()]
    return [int(text) for text in texts if text.isdecimal()]  # else "max"
