"""How the program ends when a signal says so: at once, and with nothing half done.

A signal handler that raises does so in the middle of whatever runs, including libraries that are
not interrupt-safe (`Condition.wait` then releases a lock that it does not hold), and only after a
long call has returned. So no handler raises here. A thread waits for signals: it removes what is
half written, says where the work stood, and ends the process, whatever the other threads do. It
waits only for what must happen whole; the main thread goes no further.

The module imports next to nothing, so that a program listens before it loads anything large.
"""

import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGHUP", "SIGINT", "SIGTERM") if hasattr(signal, name)
)
"""What ends the program: a terminal that closes (not on Windows), Ctrl-C, and the system."""
# The steps that happen whole take milliseconds; one that hangs must not keep the process.
_PATIENCE = 5.0
# A progress bar stands in the line, and has hidden the cursor.
_CLEAR_LINE_SHOW_CURSOR = b"\r\x1b[2K\x1b[?25h"

_whole = threading.RLock()
_own = threading.local()  # how many such steps the thread is in
_is_told, _never = threading.Event(), threading.Event()
_unfinished: set[str] = set()
_last_words: list[Callable[[], str]] = [lambda: "stopped."]


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Defer termination until the block has finished, which must be short.

    What creates or replaces a file belongs in such a block: after a stop none begins.
    """
    _own.depth = getattr(_own, "depth", 0) + 1
    try:
        with _whole:
            yield
    finally:
        _own.depth -= 1
        if _is_told.is_set() and not _own.depth:
            _never.wait()


@contextmanager
def removed_if_stopped(path: str | os.PathLike[str]) -> Iterator[None]:
    """Remove a file or folder when the program is stopped inside the block."""
    name = os.path.abspath(path)  # noqa: PTH100 - pathlib takes long to load
    _unfinished.add(name)
    try:
        yield
    finally:
        _unfinished.discard(name)


@contextmanager
def said_if_stopped(sentence: Callable[[], str]) -> Iterator[None]:
    """Print this sentence when the program is stopped inside the block."""
    _last_words.append(sentence)
    try:
        yield
    finally:
        _last_words.remove(sentence)


def handle_signals() -> None:
    """End this process with 128 + n when it gets one of `SIGNALS`; for the main thread, once."""
    reader, writer = os.pipe()
    if hasattr(os, "set_blocking"):  # on Windows from Python 3.12 on
        os.set_blocking(writer, False)
    threading.Thread(target=_wait, args=(reader,), name="signals", daemon=True).start()
    signal.set_wakeup_fd(writer)  # written to at once, also during a long call
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            signal.signal(number, _noted)


def release_signals() -> None:
    """Leave signals to another handler from now on; for the main thread."""
    signal.set_wakeup_fd(-1)


def _noted(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - a handler
    """Hold the main thread, unless it is in a step that must happen whole: then after it."""
    _is_told.set()
    if not getattr(_own, "depth", 0):
        _never.wait()


def _wait(reader: int) -> None:
    number = 0
    while number not in SIGNALS:
        number = os.read(reader, 1)[0]
    try:
        _leave()
    finally:
        os._exit(128 + number)


def _leave() -> None:
    # Nothing is imported here: the main thread may be held while it has the lock of an import.
    _whole.acquire(timeout=_PATIENCE)  # for good
    sentence = _last_words[-1]()
    if "multiprocessing" in sys.modules:
        for process in sys.modules["multiprocessing"].active_children():
            process.kill()
    for path in list(_unfinished):
        _remove(path)
    start = _CLEAR_LINE_SHOW_CURSOR if os.isatty(2) else b""
    with suppress(OSError, ValueError):  # nobody may be listening
        if os.name == "nt" or select.select([], [2], [], 0)[1]:  # Windows asks sockets alone
            os.write(2, start + f"fewlier: {sentence}\n".encode())


def _remove(path: str) -> None:
    with suppress(OSError):
        if os.path.islink(path) or not os.path.isdir(path):  # noqa: PTH112, PTH114 - as above
            os.unlink(path)  # noqa: PTH108 - as above
            return
        with os.scandir(path) as entries:
            for entry in entries:
                _remove(entry.path)
        os.rmdir(path)  # noqa: PTH106 - as above
