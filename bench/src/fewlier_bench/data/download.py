"""The collection's archives: download, checksum, and the tables in them.

Nothing else in fewlier or its benchmark opens a connection.
"""

import logging
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias, final

from fewlier.errors import UserError
from fewlier.process.signals import removed_if_stopped
from fewlier_bench.data.arff import ArffTable, read_arff
from fewlier_bench.data.catalogue import ARCHIVES, Variant

OnProgress: TypeAlias = Callable[[float | None], None]
"""Takes the share of the bytes that have come, or None when their number is unknown."""

FOLDER_VARIABLE = "FEWLIER_DATA"
N_RETRIES = 3
CHUNK_BYTES = 1 << 16
# Files that an error names at most.
N_NAMED = 12


def cache_folder() -> Path:
    """Return the folder that downloaded archives and tables are kept in."""
    import pooch  # takes long to load

    try:
        return Path(pooch.os_cache("fewlier")).expanduser()
    except RuntimeError as error:  # a user without a home
        raise UserError(
            f"Downloaded tables need a folder to be kept in, and there is none: {error}. Set HOME, "
            f"or name a folder with the tables in ${FOLDER_VARIABLE}."
        ) from error


def fetch_archive(name: str, folder: Path, on_progress: OnProgress) -> Path:
    """Return the path of an archive in `folder`, downloaded unless it is there with its checksum.

    A download that breaks off or has another checksum is tried again, and leaves no file behind.
    """
    import pooch  # takes long to load

    archive, file = ARCHIVES[name], f"{name}.tar.gz"
    keeper = pooch.create(
        path=folder,
        base_url="",
        registry={file: f"sha256:{archive.sha256}"},
        urls={file: archive.url},
        retry_if_failed=N_RETRIES,
    )

    def attempt(url: str, file: str, *more: Any) -> None:  # noqa: ANN401 - what pooch passes on
        with removed_if_stopped(file):
            pooch.HTTPDownloader(_Bar(on_progress), CHUNK_BYTES)(url, file, *more)

    try:
        with _quiet(pooch.get_logger()):
            return Path(keeper.fetch(file, downloader=attempt))
    except OSError as error:
        raise UserError(
            f"{archive.url} must be reachable and {folder} writable; got: {error}. Try again "
            "later, or put the tables into a folder and name it in $FEWLIER_DATA."
        ) from error
    except ValueError as error:  # how pooch says that the checksum differs
        raise UserError(
            f"{archive.url} must have the SHA-256 checksum {archive.sha256}; got another one "
            f"{N_RETRIES + 1} times. The file was changed or is damaged; nothing was kept."
        ) from error


def read_archive(path: Path, variants: Iterable[Variant]) -> Iterator[tuple[Variant, ArffTable]]:
    """Yield the tables of the variants, in one pass through an archive.

    Raises an error after the last if some were not found, which names what there was instead.
    """
    wanted, others = list(variants), list[str]()
    try:
        with tarfile.open(path, "r:gz") as archive:
            for member in archive:
                if not wanted:
                    return
                inner = member.name.removeprefix("./")
                others.append(inner)
                for variant in [v for v in wanted if fnmatchcase(inner, v.member)]:
                    file = archive.extractfile(member)
                    table = read_arff(file.read() if file else b"", f"{path}: {inner}")
                    wrong = variant.difference(table.X.shape, int(table.y.sum()))
                    if wrong:
                        others[-1] += f" with {wrong}"
                        continue
                    wanted.remove(variant)
                    yield variant, table
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        raise UserError(
            f"{path} must be a whole tar.gz archive; got: {error}. Delete it and get it again."
        ) from error
    if wanted:
        raise _not_found(path, wanted[0], others)


def _folder(member: str) -> str:
    return str(PurePosixPath(member).parent)


def _not_found(path: Path, variant: Variant, others: list[str]) -> UserError:
    candidates = [name for name in others if _folder(name) == _folder(variant.member)]
    read = [name for name in candidates if " with " in name]
    found = "; ".join((read or candidates)[:N_NAMED]) or "no file of that table"
    return UserError(
        f"{path} must hold {variant.member} with {variant.n_rows} rows, {variant.n_columns} "
        f"columns and {variant.n_anomalies} anomalies; got {found}. The collection has changed: "
        "put the table into a folder and name it in $FEWLIER_DATA."
    )


@final
class _Bar:
    """A progress bar for one attempt; pooch sets `total` before it starts."""

    def __init__(self, on_progress: OnProgress) -> None:
        self.total, self._done, self._show = 0, 0, on_progress

    def update(self, n_bytes: int) -> None:
        self._done += n_bytes
        self._show(min(1.0, self._done / self.total) if self.total else None)

    def reset(self) -> None:
        self._done = 0

    def close(self) -> None:
        pass


@contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    """Keep pooch from writing to standard error; the command line reports progress itself."""
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)
