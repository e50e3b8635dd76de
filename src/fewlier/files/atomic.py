"""Files that are written whole or not at all."""

import errno
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TypeAlias

from fewlier.process.signals import removed_if_stopped, uninterrupted

PathLike: TypeAlias = str | os.PathLike[str]

SUCCESS, INCOMPLETE = "_SUCCESS", "_INCOMPLETE"
"""Files that say of an output folder that all of it is written, and that it is not."""
# What renaming comes to on mounted object storage; Google's says that too many files are open.
_NO_RENAME = {
    *(errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EXDEV, errno.EPERM, errno.EMFILE)
}


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
        with uninterrupted():
            file = temporary.open("xb")
        try:
            with file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            if check is not None:
                check(temporary)
            with uninterrupted():
                if target.exists():
                    shutil.copymode(target, temporary)
                _rename(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)


def _rename(temporary: Path, target: Path) -> None:
    """Rename a file; where files cannot be renamed, copy it."""
    try:
        temporary.replace(target)
    except OSError as error:
        # What is there and may not be replaced stays.
        if error.errno not in _NO_RENAME or (error.errno == errno.EPERM and target.exists()):
            raise
        with removed_if_stopped(target):
            try:
                shutil.copyfile(temporary, target)
            except BaseException:
                target.unlink(missing_ok=True)
                raise


@contextmanager
def writing_folder(path: PathLike) -> Iterator[Path]:
    """Make a folder, or empty the one that is there, and let the block write to it.

    It holds `INCOMPLETE` until the block has ended well, and `SUCCESS` from then on. When the block
    does not end well, nothing is left of what it wrote, unless the process was killed.
    """
    target = Path(path).resolve()
    was_there, incomplete = target.exists(), target / INCOMPLETE
    with removed_if_stopped(target):
        with uninterrupted():
            target.mkdir(exist_ok=True)
            incomplete.touch()
        try:
            _empty(target, incomplete)
            yield target
            with uninterrupted():
                for left in target.rglob(".*.tmp"):  # of a writer that was killed
                    left.unlink()
                (target / SUCCESS).touch()
                incomplete.unlink()
        except BaseException:
            _empty(target, incomplete)
            if [*target.iterdir()] == [incomplete]:  # else somebody still writes
                incomplete.unlink()
                if not was_there:
                    target.rmdir()
            raise


def _empty(folder: Path, but: Path) -> None:
    """Remove what a folder holds; once more where somebody has added to it meanwhile."""
    for pause in (0.0, 0.5):
        if found := [path for path in folder.iterdir() if path != but]:
            time.sleep(pause)
        for path in found:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
