"""`Journal`: the file of answers. One JSON record a line, only ever added to, on disk at once."""

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, final

import filelock

from fewlier import __version__
from fewlier.errors import UserError, warn
from fewlier.files.atomic import PathLike
from fewlier.labelling.answers.answer import Answer, Stack
from fewlier.process.signals import uninterrupted

FORMAT = "fewlier answers"
FORMAT_VERSION = 1
# Windows would write other ends of lines.
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)


def now() -> str:
    """Return the time in UTC, to the second, as in ISO 8601."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@final
@dataclass(frozen=True)
class Recorded:
    """What a file of answers holds.

    Parameters
    ----------
    columns : tuple of str
        The columns that the hashes of rows are of.
    stack : tuple of Answer
        The answers that were given and not taken back, in order.
    n_bytes : int
        How much of the file this is; a torn last line is not part of it.
    """

    columns: tuple[str, ...]
    stack: Stack
    n_bytes: int

    @classmethod
    def of(cls, content: bytes, name: str) -> "Recorded":
        """Read the content of a file; note a last line that was not written to its end."""
        lines = content.split(b"\n")
        if torn := lines.pop():
            warn(
                f"{name}: the last line was not written to its end, and was dropped: "
                f"{torn[:40].decode('utf-8', 'replace')!r}."
            )
        if not lines:
            return cls((), (), 0)
        columns = _read_header(lines[0], name)
        stack: list[Answer] = []
        for number, line in enumerate(lines[1:], 2):
            _read_line(line, stack, f"{name}, line {number}")
        return cls(columns, tuple(stack), len(content) - len(torn))


@final
class Journal:
    """An open file of answers, which no other session can write to meanwhile.

    Attributes
    ----------
    recorded : Recorded
        What it held when it was opened.
    """

    def __init__(self, path: PathLike) -> None:
        self._path = Path(path)
        try:
            self._file = os.open(self._path, _FLAGS, 0o666)
        except OSError as error:
            raise UserError(
                f"{path}: a file for answers must be one that can be written; {error.strerror}."
            ) from error
        try:
            self._lock()
            with os.fdopen(self._file, "rb", closefd=False) as file:  # Windows lets none else read
                self.recorded = Recorded.of(file.read(), str(path))
            self._n_bytes = self.recorded.n_bytes
            os.ftruncate(self._file, self._n_bytes)
        except BaseException:
            self.close()
            raise

    def begin(self, columns: Sequence[str]) -> None:
        """Write the first line of a new file."""
        self._write(_header(columns))
        with suppress(PermissionError):  # Windows opens no folder
            folder = os.open(self._path.resolve().parent, os.O_RDONLY)
            try:
                os.fsync(folder)  # else the file itself may be gone after a power cut
            finally:
                os.close(folder)

    def add(self, answer: Answer) -> None:
        """Write an answer; it is on disk when this returns."""
        self._write(answer.to_json())

    def take_back(self, answer: Answer) -> None:
        """Write that the last answer which stands is taken back."""
        self._write({"undo": answer.key._asdict(), "row": answer.row, "time": now()})

    def close(self) -> None:
        """Let others write; a second time does nothing."""
        with suppress(OSError):
            os.close(self._file)
        self._file = -1

    def _write(self, record: Mapping[str, Any]) -> None:
        line = as_line(record)
        self._check_same()
        try:
            with uninterrupted():
                self._write_whole(line)
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._file, self._n_bytes)
            raise UserError(
                f"{self._path}: the answer was not saved: "
                f"{error.strerror}. Make room, and answer again."
            ) from error
        self._n_bytes += len(line)

    def _write_whole(self, line: bytes) -> None:
        os.ftruncate(self._file, self._n_bytes)  # what an earlier failure may have left
        written = 0
        while written < len(line):
            written += os.write(self._file, line[written:])
        os.fsync(self._file)

    def _check_same(self) -> None:
        """Refuse to write to a file that is no longer at its path."""
        if self._file == -1:
            raise UserError(f"{self._path}: the session is closed. Open a new one to answer.")
        try:
            is_same = os.path.samestat(self._path.stat(), os.fstat(self._file))
        except OSError:
            is_same = False
        if not is_same:
            raise UserError(
                f"{self._path}: the answer was not saved, because the file was moved, removed or "
                "replaced. Put it back, or start again."
            )

    def _lock(self) -> None:
        try:
            is_ours = filelock.lock_descriptor(self._file, blocking=False)
        except OSError as error:
            raise UserError(
                f"{self._path}: a file for answers must be one that a session can lock against "
                f"others; {error.strerror}. Give a path on another disk."
            ) from error
        if not is_ours:
            raise UserError(
                f"{self._path}: only one session can write answers at a time; another one has this "
                "file open. Close it, or give another file and merge the two later."
            )


def read_answers(path: PathLike) -> Recorded:
    """Read a file of answers, whoever writes to it."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise UserError(
            f"{path}: a file of answers must be one that can be read; {error.strerror}."
        ) from error
    found = Recorded.of(content, str(path))
    if not found.n_bytes:
        raise UserError(f"{path}: a file of answers must hold a line; got none.")
    return found


def as_lines(columns: Sequence[str], answers: Stack) -> bytes:
    """Return a whole file of answers."""
    records = (_header(columns), *(answer.to_json() for answer in answers))
    return b"".join(map(as_line, records))


def is_answers(path: PathLike) -> bool:
    """Whether a file holds answers, by its first bytes; a pipe is not asked."""
    if not Path(path).is_file():
        return False
    with Path(path).open("rb") as file:
        start = as_line({"format": FORMAT})[:-2]
        return file.read(len(start)) == start


def as_line(record: Mapping[str, Any]) -> bytes:
    """Write a record as a line; JSON has no line feed inside."""
    return json.dumps(record, allow_nan=False).encode() + b"\n"


def _header(columns: Sequence[str]) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "version": __version__,
        "time": now(),
        "columns": list(columns),
    }


def _read_header(line: bytes, name: str) -> tuple[str, ...]:
    try:
        record = json.loads(line)
        columns = record["columns"] if record["format"] == FORMAT else None
        version = record["format_version"]
    except (ValueError, KeyError, TypeError):
        columns = version = None
    if not isinstance(columns, list) or not all(isinstance(column, str) for column in columns):
        raise UserError(
            f"{name}: a file of answers must be one that `fewlier label` wrote; its first line is "
            f"{line[:40].decode('utf-8', 'replace')!r}. Give another path."
        )
    if version != FORMAT_VERSION:
        raise UserError(
            f"{name}: a file of answers must have the format {FORMAT_VERSION}; got {version!r}. "
            "Install a newer version of fewlier."
        )
    return tuple(columns)


def _read_line(line: bytes, stack: list[Answer], where: str) -> None:
    """Add what one more line says to the answers."""
    try:
        record = json.loads(line)
        if "undo" not in record:
            stack.append(Answer.from_json(record))
            return
        if stack and stack[-1].key._asdict() == record["undo"]:
            stack.pop()
            return
        found = "it undoes an answer that is not the last"
    except (ValueError, KeyError, TypeError) as error:
        found = str(error) if isinstance(error, UserError) else "it is damaged"
    raise UserError(
        f"{where}: every line must be an answer, or undo the last one; got another: {found}. "
        "Restore the file, or remove the line."
    )
