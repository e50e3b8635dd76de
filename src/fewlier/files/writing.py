"""Data files out: CSV and Parquet, batch by batch, whole or not at all; rows that wait on disk."""

import csv
import gzip
import io
import secrets
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, TypeAlias, cast, final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from fewlier.errors import UserError
from fewlier.files.atomic import PathLike, replacing, writing_folder
from fewlier.files.reading import Batch, is_standard
from fewlier.files.text import DELIMITERS
from fewlier.process.signals import uninterrupted
from fewlier.table.arrays import Floats

Write: TypeAlias = Callable[[pa.Table], None]
_SCORES = "anomaly_score"
"""The column of scores of rows that are read once more."""

_TEXT_ENDINGS = (".csv", ".tsv", ".txt")
_PARQUET_ENDINGS = (".parquet", ".pq")


@contextmanager
def create_table(path: PathLike, delimiter: str = ",") -> Iterator[Write]:
    """Open a CSV or Parquet file, by its ending, or standard output for ``-``, for writing.

    Yields a function that appends rows, always of the same columns. The file is there when the
    block has ended well; otherwise nothing has changed.
    """
    with _naming_output(path), ExitStack() as stack:
        if is_standard(path):
            yield _csv_writer(sys.stdout.buffer, delimiter)
            sys.stdout.buffer.flush()
            return
        is_parquet = writes_parquet(path)
        file = stack.enter_context(replacing(path))
        if is_parquet:
            yield _parquet_writer(file, stack)
            return
        if str(path).lower().endswith(".gz"):
            # Without name and time in it, the same rows give the same file.
            packed = gzip.GzipFile("", "wb", fileobj=file, mtime=0)
            file = cast("IO[bytes]", stack.enter_context(packed))
        yield _csv_writer(file, "\t" if _is_tsv(path) else delimiter)


def _is_tsv(path: PathLike) -> bool:
    return Path(path).name.lower().removesuffix(".gz").endswith(".tsv")


def output_name(path: Path) -> Path:
    """Return what the scored rows of a file are called: its own name, or a kind that is written."""
    for packed in (".bz2", ".zst"):
        if path.name.lower().endswith(packed):
            return path.with_name(f"{path.name[: -len(packed)]}.gz")
    return path


def output_names(paths: Iterable[Path]) -> dict[Path, Path]:
    """Return `output_name` of each path; refuse two that would be written as one."""
    found: dict[Path, Path] = {}
    for path in paths:
        name = output_name(path)
        if name in found:
            raise UserError(
                f"Each table must have an output of its own; got {str(found[name])!r} and "
                f"{str(path)!r}, which would both be written as {str(name)!r}. Rename one of them."
            )
        found[name] = path
    return {path: name for name, path in found.items()}


def writes_parquet(path: PathLike) -> bool:
    """Whether a path, by its ending, is to become Parquet rather than CSV."""
    name = Path(path).name.lower()
    if name.endswith(_PARQUET_ENDINGS):
        return True
    is_device = Path(path).exists() and not Path(path).is_file()
    if is_standard(path) or is_device or name.removesuffix(".gz").endswith(_TEXT_ENDINGS):
        return False
    endings = ", ".join((*_TEXT_ENDINGS, *_PARQUET_ENDINGS))
    raise UserError(f"The output must end in {endings} or a text's .gz; got {str(path)!r}.")


def check_output(path: PathLike, *inputs: PathLike) -> None:
    """Refuse, before any work, an output that cannot be written or would replace an input."""
    target = Path(path)
    if is_standard(path):
        return
    try:
        for name in (Path(name) for name in inputs if not is_standard(name)):
            if target.exists() and name.exists() and target.samefile(name):
                raise UserError(
                    f"The output must be another file than the input; got {str(path)!r} for both. "
                    "Choose another path."
                )
        if target.is_dir():
            raise IsADirectoryError(0, "it is a folder")
        if target.is_file() or not target.exists():
            # Found out now, not after an hour of training.
            probe = target.resolve().with_name(f".{secrets.token_hex(8)}.tmp")
            with uninterrupted(), probe.open("xb"):
                probe.unlink()
    except (OSError, RuntimeError) as error:  # RuntimeError: a loop of links
        raise _not_writable(path, error) from error


@contextmanager
def create_folder(path: PathLike) -> Iterator[Path]:
    """Make a folder, in place of what is there; `writing_folder` says when it is complete."""
    with _naming_output(path), writing_folder(path) as folder:
        yield folder


def check_folder_output(path: PathLike, *inputs: PathLike, overwrite: bool = False) -> None:
    """Refuse, before any work, a folder that cannot be written or would replace what is needed."""
    if is_standard(path):
        raise UserError("The output of several tables must be a folder; got standard output.")
    target = Path(path).resolve()
    for name in (Path(name).resolve() for name in inputs):
        if target == name or target in name.parents:
            raise UserError(
                f"The output must be another folder than the one of the input {str(name)!r}; got "
                f"{str(path)!r}. Choose another path."
            )
    if target.exists() and not target.is_dir():
        raise UserError(f"The output of several tables must be a folder; {str(path)!r} is a file.")
    if target.exists() and any(target.iterdir()) and not overwrite:
        raise UserError(
            f"The output folder must be new or empty; {str(path)!r} holds files. Choose another "
            "path, or empty it with --overwrite."
        )
    probe = (target if target.exists() else target.parent) / f".{secrets.token_hex(8)}.tmp"
    with _naming_output(path), uninterrupted():
        probe.mkdir()
        probe.rmdir()


def write_bytes(path: PathLike, content: bytes) -> None:
    """Write a file whole or not at all."""
    with _naming_output(path), replacing(path) as file:
        file.write(content)


@contextmanager
def _naming_output(path: PathLike) -> Iterator[None]:
    """Let an error of the disk say which output cannot be written."""
    try:
        yield
    except BrokenPipeError:
        raise  # whoever reads standard output has seen enough
    except OSError as error:
        raise _not_writable(path, error) from error


def _not_writable(path: PathLike, error: OSError | RuntimeError) -> UserError:
    reason = str(error) if isinstance(error, RuntimeError) else error.strerror or error
    return UserError(
        f"The output must be a file that can be written; got {str(path)!r}: {reason}. Nothing was "
        "written; choose another path or make room."
    )


def _csv_writer(file: IO[bytes], delimiter: str) -> Write:
    """Write comma-separated values, quoted only where needed; an empty cell is missing."""
    # The delimiter is recognised by the header, so no other may stand free in it.
    to_quote = {"\r", *DELIMITERS} - {delimiter}

    def write(rows: pa.Table) -> None:
        nonlocal to_quote
        columns = [_texts(name, rows[name]).to_pylist() for name in rows.column_names]
        if len(to_quote) > 1:
            file.write(_lines([rows.column_names], delimiter, to_quote))
            to_quote = {"\r"}
        file.write(_lines([*zip(*columns, strict=True)], delimiter, to_quote))

    return write


def _lines(rows: list[Any], delimiter: str, to_quote: set[str]) -> bytes:
    """Return lines of CSV; if one of some characters is in them, every cell is quoted."""
    text = ""
    for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL):
        lines = io.StringIO(newline="")
        csv.writer(lines, delimiter=delimiter, lineterminator="\n", quoting=quoting).writerows(rows)
        text = lines.getvalue()
        if not any(character in text for character in to_quote):
            break
    return text.encode()


def _texts(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    try:
        return pc.cast(column, pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise UserError(
            f"Column {name!r} must hold values that CSV can hold; got {column.type}. Write "
            "Parquet instead.",
            column=name,
        ) from error


def _parquet_writer(file: IO[bytes], stack: ExitStack) -> Write:
    writers: list[pq.ParquetWriter] = []

    def write(rows: pa.Table) -> None:
        if not writers:
            writers.append(stack.enter_context(pq.ParquetWriter(file, rows.schema)))
        writers[0].write_table(rows)

    return write


@final
class Spool:
    """Rows and their scores on disk, until they are read once more; memory holds one batch."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `__exit__`
        self._batches = list[Batch]()

    def __enter__(self) -> "Spool":
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove what is on disk."""
        self._file.close()

    def keep(self, batch: Batch, scores: Floats) -> None:
        """Write a batch, which has no column `_SCORES`, and the scores of its rows."""
        rows = batch.rows.append_column(_SCORES, pa.array(scores))
        with pa.ipc.new_stream(self._file, rows.schema) as writer:
            writer.write_table(rows)
        self._batches.append(replace(batch, rows=batch.rows.schema.empty_table()))

    def read(self) -> Iterator[tuple[Batch, Floats]]:
        """Yield the batches in their order."""
        self._file.seek(0)
        for batch in self._batches:
            rows = pa.ipc.open_stream(self._file).read_all()
            scores = rows[_SCORES].to_numpy().copy()
            yield replace(batch, rows=rows.drop_columns(_SCORES)), scores
