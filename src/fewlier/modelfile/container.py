"""The model file as a container: a zip of exactly two plain parts, JSON and safetensors.

Sizes are checked before anything is read; neither reading nor writing needs torch.
"""

import errno
import json
import math
import os
import stat
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NoReturn, final
from zipfile import ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from fewlier.errors import FormatError, UserError
from fewlier.files.atomic import PathLike, replacing
from fewlier.modelfile.state import Array, Json, State, is_count, require

FORMAT, VERSION = "fewlier", 1
MANIFEST, WEIGHTS = "manifest.json", "weights.safetensors"
MAX_BYTES = {MANIFEST: 32 * 2**20, WEIGHTS: 4 * 2**30}
MAX_VALUES = 1_000_000  # in a JSON document; some hundred bytes of memory each

_MAX_HEADER_BYTES = 4 * 2**20  # names, types and shapes of all arrays; a model has some hundred
_MAX_AXES = 4
_ITEM_BYTES = {"F32": 4, "F64": 8, "I32": 4, "I64": 8, "I8": 1, "U8": 1}
_MAX_DIGITS = 18
_MAX_MESSAGE = 500
# What zipfile raises on damaged files; RuntimeError where a part asks for a password.
_DAMAGE = (BadZipFile, EOFError, OSError, OverflowError, RuntimeError, ValueError, struct.error)
# The last record of a zip, and the size of the one before it in zips of more than 2 GB.
_END = struct.Struct("<4sHHHHLLH")
_LOCATOR_BYTES = 20
_MAX_DIRECTORY_BYTES = 1024


@contextmanager
def opened(path: PathLike) -> Iterator[State]:
    """Read a model file; a `FormatError` in the block gets the name of the file.

    Sizes, types and the JSON itself have been checked; what the state says has not.
    """
    try:
        yield _read(path)
    except FormatError as error:
        raise FormatError(
            f"Model file {str(path)!r} is not one that fewlier has written: {brief(error)} "
            "Save the model again, or take another copy of the file."
        ) from error


def write(path: PathLike, state: State, check: Callable[[Path], object]) -> None:
    """Write a model file, whole or not at all: what was there before stays until it is replaced.

    That is after `check` has read the new one, and has not raised a `FormatError`.
    """
    record, arrays = state.flat()
    manifest = {"format": FORMAT, "version": VERSION} | record
    content = json.dumps(manifest, allow_nan=False, default=_plain).encode()
    weights = safetensors.numpy.save(arrays)
    for name, size in ((MANIFEST, len(content)), (WEIGHTS, len(weights))):
        if size > MAX_BYTES[name]:
            raise UserError(
                f"{name!r} in a model file can take {MAX_BYTES[name]} bytes; this model needs "
                f"{size}. Fit with fewer columns, categories, hidden units or members."
            )
    if _n_values(content) > MAX_VALUES:
        raise UserError(
            f"A model file can describe its columns in {MAX_VALUES} values; this model needs more. "
            "Leave out columns with many categories."
        )
    try:
        with replacing(path, check) as file, ZipFile(file, "w", ZIP_STORED) as archive:
            archive.writestr(ZipInfo(MANIFEST), content)
            archive.writestr(ZipInfo(WEIGHTS), weights)
    except FormatError as error:
        raise UserError(
            f"The model was not saved, because it could not be loaded again: "
            f"{brief(error.__cause__ or error)} Nothing was written to {str(path)!r}."
        ) from error
    except OSError as error:
        raise UserError(
            f"The model cannot be saved to {str(path)!r}: {error.strerror}. Nothing was changed; "
            "choose another path."
        ) from error


def brief(error: BaseException) -> str:
    """Return the message of an error, cut where it quotes a damaged file at length."""
    message = str(error)
    return message if len(message) <= _MAX_MESSAGE else f"{message[:_MAX_MESSAGE]} ..."


def parse_json(content: bytes, what: str) -> Json:
    """Read a JSON object, refusing what JSON leaves open: NaN, huge numbers, repeated keys."""
    require(_n_values(content) <= MAX_VALUES, f"{what} has more than {MAX_VALUES} values.")
    try:
        parsed = json.loads(
            content.decode("utf-8"),
            parse_constant=_refuse,
            parse_float=_finite,
            parse_int=_small,
            object_pairs_hook=_unrepeated,
        )
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{what} is not valid JSON ({error}).") from error
    require(isinstance(parsed, dict), f"{what} is not a JSON object.")
    return dict(parsed)


@final
class _Archive:
    """The parts of an open model file, whose names, sizes and storage are as they must be."""

    def __init__(self, file: IO[bytes]) -> None:
        try:
            n_bytes = _check_end(file)
            self._zip = ZipFile(file)
        except FormatError:
            raise
        except _DAMAGE as error:
            raise FormatError(f"it is not a zip ({error}).") from error
        _check_parts(self._zip.infolist(), n_bytes)

    def size(self, name: str) -> int:
        """Return the bytes of a part."""
        return self._zip.getinfo(name).file_size

    def read(self, name: str, n_bytes: int | None = None) -> bytes:
        """Return a part, or its first bytes; damage that its checksum reveals is an error."""
        try:
            with self._zip.open(name) as part:
                return part.read(self.size(name) if n_bytes is None else n_bytes)
        except _DAMAGE as error:
            raise FormatError(f"its part {name!r} cannot be read: {error}") from error


def _read(path: PathLike) -> State:
    """Read a file of this format and version."""
    try:
        # Asked before it is opened: a pipe would wait for a writer, a device has no end.
        mode = Path(path).stat().st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise OSError(errno.EINVAL, "a device or pipe")
        with Path(path).open("rb") as file:
            archive = _Archive(file)
            manifest = parse_json(archive.read(MANIFEST), "its manifest")
            _check_format(manifest.pop("format", None), manifest.pop("version", None))
            return State(manifest, _read_arrays(archive))
    except OSError as error:
        raise UserError(
            f"Model file {str(path)!r} cannot be read: {error.strerror}. Check the path."
        ) from error


def _check_format(name: object, version: object) -> None:
    require(name == FORMAT, "its manifest names another format.")
    require(is_count(version, 1), "its format version is not a positive integer.")
    newer = f"newer than {VERSION}, the newest that this fewlier reads. Upgrade fewlier."
    require(version == VERSION, f"its format version is {version}, {newer}")


def _read_arrays(archive: _Archive) -> dict[str, Array]:
    """Read the arrays, after their header proved to describe no more than the file holds."""
    size, start = archive.size(WEIGHTS), archive.read(WEIGHTS, 8)
    n_header = int.from_bytes(start, "little")
    is_header = len(start) == 8 and n_header <= min(size - 8, _MAX_HEADER_BYTES)
    require(is_header, "its weights have no header.")
    header = parse_json(archive.read(WEIGHTS, 8 + n_header)[8:], "the header of its weights")
    n_bytes = sum(_n_bytes(name, record) for name, record in header.items())
    require(
        size == 8 + n_header + n_bytes,
        f"its weights are {size} bytes, which is not what their header says.",
    )
    try:
        arrays: dict[str, Array] = safetensors.numpy.load(archive.read(WEIGHTS))
    except (SafetensorError, ValueError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"its weights are not safetensors ({error}).") from error
    return arrays


def _n_bytes(name: str, record: object) -> int:
    """Return the bytes that an array takes by its header."""
    dtype, shape = None, None
    if isinstance(record, dict):
        dtype, shape = record.get("dtype"), record.get("shape")
    is_type = isinstance(dtype, str) and dtype in _ITEM_BYTES
    is_shape = isinstance(shape, list) and len(shape) <= _MAX_AXES and all(map(is_count, shape))
    require(is_type and is_shape, f"array {name!r} has an unknown type or shape.")
    return _ITEM_BYTES[str(dtype)] * math.prod(shape or ())


def _check_end(file: IO[bytes]) -> int:
    """Bound the directory of the zip before zipfile reads it, and return the bytes of the file."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _END.size - _LOCATOR_BYTES))
    tail = file.read()
    signature, _, _, _, n_parts, n_bytes, _, n_comment = _END.unpack(tail[-_END.size :])
    needless = size < 2**31 and tail.startswith(b"PK\x06\x07")
    is_end = signature == b"PK\x05\x06" and n_comment == 0 and not needless
    require(is_end, "it does not end as a zip does.")
    is_short = n_parts == 2 and n_bytes <= _MAX_DIRECTORY_BYTES
    require(is_short, f"it has {n_parts} parts in a directory of {n_bytes} bytes, not 2.")
    return size


def _check_parts(parts: list[ZipInfo], n_bytes: int) -> None:
    """Check names, storage and sizes; later checks trust a size, so the file must be as long."""
    names = [part.filename for part in parts]
    require(
        sorted(names) == [MANIFEST, WEIGHTS],
        f"its parts are {names}, not {MANIFEST!r} and {WEIGHTS!r}.",
    )
    for part in parts:
        is_plain = part.compress_type == ZIP_STORED and part.compress_size == part.file_size
        require(is_plain and not part.flag_bits & 1, f"its {part.filename!r} is compressed.")
        limit = MAX_BYTES[part.filename]
        require(part.file_size <= limit, f"its {part.filename!r} is larger than {limit} bytes.")
    n_claimed = sum(part.file_size for part in parts)
    require(n_claimed <= n_bytes, f"its parts claim {n_claimed} of its {n_bytes} bytes.")


def _plain(value: object) -> Any:  # noqa: ANN401 - a JSON value
    """Return values that JSON does not know, such as numpy's, as those it does."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    raise UserError(f"A saved parameter must be text, numbers or lists; got {value!r}.")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number beyond float64")
    return number


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number")


def _unrepeated(pairs: list[tuple[str, Any]]) -> Json:
    record = dict(pairs)
    if len(record) < len(pairs):
        raise ValueError("a record has a key twice")
    return record


def _small(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise ValueError("an integer beyond 64 bits")
    return int(digits)


def _n_values(content: bytes) -> int:
    """Count the values of a JSON document, or somewhat more; parsing takes memory for each."""
    return sum(map(content.count, (b",", b"[", b"{")))
