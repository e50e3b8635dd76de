"""Tables to open: one file, or those of a folder or of a pattern, in sorted order."""

import glob
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, final

from fewlier.errors import UserError
from fewlier.files.atomic import INCOMPLETE, PathLike
from fewlier.files.parquet import MAGIC, ParquetFile
from fewlier.files.reading import Batch, TableFile, is_standard, naming
from fewlier.files.text import CsvFile, first_bytes
from fewlier.process.escape import list_names, list_some
from fewlier.process.progress import ReadProgress, no_progress

ENDINGS = (".parquet", ".pq", ".csv", ".tsv", ".txt")
PACKED = (".gz", ".bz2", ".zst")
# Files that are often given for a table and are not one, by their first bytes.
_FOREIGN = {
    b"PK\x03\x04": "a spreadsheet, zip or model",
    b"\xff\xfe": "text in UTF-16",
    b"\xfe\xff": "text in UTF-16",
    b"ARROW1": "an Arrow or Feather file",
}


@contextmanager
def open_table(path: PathLike) -> Iterator[TableFile]:
    """Open a CSV or Parquet file, or standard input for ``-``, by what it holds, not its name.

    CSV: comma, semicolon, tab or bar between columns, UTF-8 with or without a mark, quoted cells,
    which may span lines; plain, or compressed by gzip, bz2 or zstd.
    """
    name = "standard input" if is_standard(path) else str(path)
    with ExitStack() as stack:
        with naming(name):
            file: IO[bytes] = sys.stdin.buffer
            if not is_standard(path):
                file = stack.enter_context(Path(path).open("rb"))
            head = first_bytes(file, len(MAGIC) + 2)
            for magic, what in _FOREIGN.items():
                if head.startswith(magic):
                    raise UserError(
                        f"a table must be CSV in UTF-8 or Parquet; got {what}. Save it as CSV."
                    )
            if not head.startswith(MAGIC):
                table: TableFile = CsvFile(name, file, head)
            else:
                if not file.seekable():  # Parquet is read from its end
                    whole = stack.enter_context(tempfile.TemporaryFile())
                    whole.write(head)
                    shutil.copyfileobj(file, whole)
                    file = whole
                table = ParquetFile(name, file)
        yield table


@final
@dataclass(frozen=True)
class TableFolder:
    """Tables in files that belong together.

    Parameters
    ----------
    name : str
        The folder or the pattern, as it was given.
    root : Path
        The folder that holds them all.
    paths : tuple of Path
        The files, in sorted order.
    left_out : tuple of Path
        Other files there, which by their names are no tables.
    """

    name: str
    root: Path
    paths: tuple[Path, ...]
    left_out: tuple[Path, ...] = ()

    @classmethod
    def find(cls, path: PathLike) -> "TableFolder | None":
        """Find the tables of a folder, or of a pattern such as ``data/*.parquet``.

        None where the path is a single file, or standard input. In a folder, files and folders
        whose names begin with a point or an underscore do not count.
        """
        name, folder = str(path), Path(path)
        if is_standard(path) or folder.is_file():
            return None
        if folder.is_dir():
            if (folder / INCOMPLETE).exists():
                raise UserError(
                    f"{name}: a folder of tables must be complete; got one that was being written "
                    f"when the process was killed, or still is. Write it again, or delete "
                    f"{str(folder / INCOMPLETE)!r} to read what is there."
                )
            found = (p for p in sorted(folder.rglob("*")) if p.is_file())
            seen = [p for p in found if not _is_hidden(p.relative_to(folder))]
        elif glob.has_magic(name):
            folder = Path(*_before_magic(folder))
            pattern = str(Path(path).relative_to(folder))
            seen = [p for p in sorted(folder.glob(pattern)) if p.is_file()]
        else:
            return None
        tables = tuple(p for p in seen if _is_table(p))
        if not tables:
            raise UserError(
                f"{name}: a folder of tables must have a file that ends in {', '.join(ENDINGS)}, "
                f"or in one of these and {', '.join(PACKED)}; got none."
            )
        return cls(name, folder, tables, tuple(p for p in seen if p not in set(tables)))

    def check_output(self, path: PathLike) -> None:
        """Refuse an output folder whose files would count as tables of this one the next time."""
        root, target = self.root.resolve(), Path(path).resolve()
        is_flat = glob.has_magic(self.name) and len(Path(self.name).parts) == 1 + len(
            self.root.parts
        )
        if is_flat or root not in target.parents or _is_hidden(target.relative_to(root)):
            return
        raise UserError(
            f"The output must not be inside the input {self.name!r}, or it would be read as part "
            f"of it the next time; got {str(path)!r}. Choose a folder beside it, or a name that "
            "begins with an underscore."
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What is not read: other files, and what the names of folders say; in sentences."""
        names = list_some(repr(str(path.relative_to(self.root))) for path in self.left_out)
        notes = [f"not tables by their names, left out: {names}."] if names else []
        parts = (part for path in self.paths for part in path.relative_to(self.root).parts[:-1])
        keys = dict.fromkeys(
            name for name, is_hive, _ in (p.partition("=") for p in parts) if is_hive
        )
        if keys:
            notes.append(
                f"columns that only the names of folders hold are not read: {list_names(keys)}. "
                'In Python pyarrow.dataset.dataset(..., partitioning="hive") has them.'
            )
        return tuple(notes)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of the first file."""
        with open_table(self.paths[0]) as file:
            return file.columns

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Bytes of each file."""
        return tuple(path.stat().st_size for path in self.paths)

    def files(self) -> Iterator[tuple[TableFile, int]]:
        """Open one file after the other, and count the bytes before it."""
        n_before = 0
        for path, size in zip(self.paths, self.sizes, strict=True):
            with open_table(path) as file:
                yield file, n_before
            n_before += size

    def batches(self, progress: Callable[[ReadProgress], None] = no_progress) -> Iterator[Batch]:
        """Yield the rows of all files, of which some may have none, and tell how much was read."""
        n_rows = 0
        for file, n_before in self.files():
            n_of_file = 0
            for batch in file.batches(may_be_empty=True):
                yield batch
                n_of_file += batch.rows.num_rows
                n_bytes = n_before + file.bytes_read()
                share = min(n_bytes / max(sum(self.sizes), 1), 1.0)
                progress(ReadProgress(share, n_bytes, n_rows + n_of_file))
            n_rows += n_of_file


@contextmanager
def open_tables(path: PathLike) -> "Iterator[TableFile | TableFolder]":
    """Open a file as `open_table` does, or find the files of a folder or of a pattern."""
    folder = TableFolder.find(path)
    if folder is not None:
        yield folder
        return
    with open_table(path) as file:
        yield file


def _is_hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)


def _is_table(path: Path) -> bool:
    name = path.name.lower()
    for ending in PACKED:
        name = name.removesuffix(ending)
    return name.endswith(ENDINGS)


def _before_magic(path: Path) -> Iterator[str]:
    """Yield the parts of a pattern before the first that has a placeholder."""
    for part in path.parts[:-1]:
        if glob.has_magic(part):
            return
        yield part
