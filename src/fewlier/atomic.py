"""Files that are written whole or not at all."""

import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TypeAlias

from fewlier.stopping import removed_if_stopped, whole

PathLike: TypeAlias = str | os.PathLike[str]


@contextmanager
def replacing(path: PathLike, check: Callable[[Path], object] | None = None) -> Iterator[IO[bytes]]:
    """Open a file that takes the place of `path` when the block ends well.

    When it does not, or when `check`, which reads the file back, raises, whatever was at `path` is
    as before. The file is written under another name in the same folder. A device or a pipe cannot
    be replaced: it is written to directly, unchecked.
    """
    if Path(path).exists() and not Path(path).is_file():
        with Path(path).open("wb") as file:
            yield file
        return
    target = Path(path).resolve()
    temporary = target.with_name(f".{secrets.token_hex(8)}.tmp")
    with removed_if_stopped(temporary):
        with whole():
            file = temporary.open("xb")
        try:
            with file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            if check is not None:
                check(temporary)
            with whole():
                if target.exists():
                    shutil.copymode(target, temporary)
                temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def replacing_folder(path: PathLike) -> Iterator[Path]:
    """Make a folder that takes the place of `path` when the block ends well; yields where to write.

    When it does not, whatever was at `path` is as before.
    """
    target = Path(path).resolve()
    aside, old = (target.with_name(f".{secrets.token_hex(8)}.tmp") for _ in range(2))
    with removed_if_stopped(aside), removed_if_stopped(old):
        with whole():
            aside.mkdir()
        try:
            yield aside
            with whole():
                if target.exists():
                    target.rename(old)
                aside.rename(target)
        finally:
            for folder in (aside, old):
                shutil.rmtree(folder, ignore_errors=True)
