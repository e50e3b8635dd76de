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

from fewlier.process.signals import removed_if_stopped, whole

PathLike: TypeAlias = str | os.PathLike[str]

MARKER = "_SUCCESS"
"""Says of a folder that it is whole, where it could not be made whole by renaming it."""
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
def replacing_folder(path: PathLike) -> Iterator[Path]:
    """Make a folder that takes the place of `path` when the block ends well; yields where to write.

    When it does not, whatever was at `path` is as before. Where folders cannot be renamed, as in
    object storage, or `path` is a volume of its own, the folder itself is emptied and written to,
    and a file `MARKER` comes last.
    """
    target = Path(path).resolve()
    can_rename = not target.is_mount() and _can_rename_beside(target)
    write = _aside if can_rename else _in_place
    with write(target) as folder:
        yield folder


@contextmanager
def _aside(target: Path) -> Iterator[Path]:
    aside, old = _hidden_names(target)
    with removed_if_stopped(aside), removed_if_stopped(old):
        with whole():
            aside.mkdir()
        try:
            yield aside
            with whole():
                _exchange(aside, target, old)
        finally:
            for folder in (aside, old):
                _remove(folder)


def _exchange(aside: Path, target: Path, old: Path) -> None:
    """Put a folder in the place of another, and that one, if there is one, aside."""
    try:
        if target.exists():
            target.rename(old)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _empty(target)  # it belongs to the image of a container, which cannot change
        for path in aside.iterdir():
            path.rename(target / path.name)
        (target / MARKER).touch()
    else:
        aside.rename(target)


@contextmanager
def _in_place(target: Path) -> Iterator[Path]:
    was_there = target.exists()
    with removed_if_stopped(target):
        with whole():
            target.mkdir(exist_ok=True)
            (target / MARKER).unlink(missing_ok=True)
            _empty(target)
        try:
            yield target
            (target / MARKER).touch()
        except BaseException:
            _empty(target)
            if not was_there:
                _remove(target)
            raise


def _can_rename_beside(target: Path) -> bool:
    """Whether folders that hold files can be renamed where one is to be."""
    probe, other = _hidden_names(target)
    with whole():
        probe.mkdir()
        try:
            (probe / "file").touch()
            probe.rename(other)
        except OSError as error:
            if error.errno not in _NO_RENAME:
                raise
            return False
        finally:
            for folder in (probe, other):
                _remove(folder)
    return True


def _hidden_names(target: Path) -> tuple[Path, Path]:
    """Return two names beside a path that nothing has."""
    one, other = (target.with_name(f".{secrets.token_hex(8)}.tmp") for _ in range(2))
    return one, other


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            _remove(path)
        else:
            path.unlink()


def _remove(folder: Path) -> None:
    """Remove a folder if it is there; once more where somebody has added to it meanwhile."""
    for pause in (0.0, 0.5):
        if folder.exists():
            time.sleep(pause)
            shutil.rmtree(folder, ignore_errors=True)
