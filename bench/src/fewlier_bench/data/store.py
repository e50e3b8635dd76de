"""Finds tables: in the user's folder, in the cache, or on the collection's site."""

import hashlib
import logging
import os
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
import numpy.typing as npt

from fewlier.errors import UserError
from fewlier.files.atomic import replacing
from fewlier_bench.data.arff import ArffTable
from fewlier_bench.data.catalogue import Entry, Variant, find_entry, find_variant
from fewlier_bench.data.download import (
    FOLDER_VARIABLE,
    OnProgress,
    cache_folder,
    fetch_archive,
    read_archive,
)

_log = logging.getLogger(__name__)


@final
@dataclass(frozen=True, eq=False)
class Dataset:
    """A table of the paper as its file has it: unscaled, rows in the order of the file.

    Parameters
    ----------
    name : str
        Name in the paper.
    X : array of shape (n_rows, n_columns)
        Values, float64.
    y : array of shape (n_rows,)
        1 for an anomaly, 0 for a normal row, int8.
    feature_names : tuple of str
        Names of the columns.
    sha256 : str
        Hash of the shape, of X and of y, the same on every machine; results record it.
    path : Path
        The file that was read.
    """

    name: str
    X: npt.NDArray[np.float64]
    y: npt.NDArray[np.int8]
    feature_names: tuple[str, ...]
    sha256: str
    path: Path


def load_dataset(name: str, *, deduplicated: bool = False, download: bool = True) -> Dataset:
    """Load one of the paper's tables and check its counts.

    It is looked for in the folder that the environment variable FEWLIER_DATA names, then in the
    user's cache, then downloaded from the collection's site into the cache.

    Parameters
    ----------
    name : str
        Name in the paper, in any case of letters; `list_datasets` has them.
    deduplicated : bool
        Take the variant without duplicates of one of the six tables whose counts in the paper are
        of the variant with them.
    download : bool
        Whether to download a table that is not there; if not, that is an error.
    """
    variant = find_variant(name, deduplicated=deduplicated)
    if locate(variant) is None:
        if not download:
            raise UserError(
                f"Dataset {name} must be in ${FOLDER_VARIABLE} or in the cache; it is in neither. "
                f"Run: fewlier-bench datasets get {find_entry(name).name}"
            )
        _download([variant], _ignore)
    return _read(find_entry(name), variant)


def get_datasets(names: Iterable[str], on_progress: OnProgress | None = None) -> list[Dataset]:
    """Download the tables that are not there yet, with their variants without duplicates.

    Returns all of them, read and checked. An archive is downloaded and read once, however many
    of its tables are wanted.
    """
    entries = [find_entry(name) for name in names]
    both = [(e, v) for e in entries for v in (e.paper, e.deduplicated) if v is not None]
    _download([v for _, v in both if locate(v) is None], on_progress or _ignore)
    return [_read(entry, variant) for entry, variant in both]


def locate(variant: Variant) -> Path | None:
    """Return the file that holds a variant, or None if it has to be downloaded."""
    for folder in _folders():
        path = folder / variant.file
        if path.is_file():
            return path
    return None


def named_folder() -> Path | None:
    """Return the folder of tables that the environment names; None if it names none."""
    named = os.environ.get(FOLDER_VARIABLE)
    if not named:
        return None
    folder = Path(named).expanduser()
    if not folder.is_dir():
        raise UserError(
            f"${FOLDER_VARIABLE} must name a folder of tables; got {named!r}, which is not one. "
            "Correct or unset it."
        )
    return folder


def _folders() -> Iterator[Path]:
    """Yield the folders that may hold tables; the cache, whose place takes long to find, last."""
    named = named_folder()
    if named is not None:
        yield named
    try:
        yield cache_folder() / "tables"
    except UserError as error:  # nothing was ever downloaded
        _log.debug("there is no cache: %s", error)


def _download(variants: list[Variant], on_progress: OnProgress) -> None:
    archives = sorted({variant.archive for variant in variants})
    for i, name in enumerate(archives):
        _log.info("fetching the archive %s", name)
        path = fetch_archive(
            name, cache_folder() / "archives", _part(on_progress, i, len(archives))
        )
        for variant, table in read_archive(path, [v for v in variants if v.archive == name]):
            _write(cache_folder() / "tables" / variant.file, table)


def _part(on_progress: OnProgress, i: int, n: int) -> OnProgress:
    """Return a function that turns the progress of part i of n into that of the whole."""
    return lambda share: on_progress(None if share is None else (i + share) / n)


def _ignore(share: float | None) -> None:
    pass


def _write(path: Path, table: ArffTable) -> None:
    names = np.array(table.feature_names)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            np.savez_compressed(file, X=table.X, y=table.y, feature_names=names)
    except OSError as error:
        raise UserError(f"{path} must be writable; got: {error}. Make room for it.") from error


def _read(entry: Entry, variant: Variant) -> Dataset:
    path = locate(variant)
    if path is None:
        raise UserError(f"Dataset {entry.name} was there a moment ago and is gone. Get it again.")
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            X = np.ascontiguousarray(file["X"], dtype=np.float64)
            y, names = np.asarray(file["y"]), tuple(map(str, file["feature_names"]))
    except (OSError, EOFError, TypeError, ValueError, LookupError, zipfile.BadZipFile) as error:
        raise UserError(
            f"{path} must be an .npz file with X, y and feature_names; got: {error}. Delete it and "
            f"run: fewlier-bench datasets get {entry.name}"
        ) from error
    _check(path, variant, X, y, names)
    return Dataset(entry.name, X, y.astype(np.int8), names, hash_table(X, y.astype(np.int8)), path)


def _check(
    path: Path,
    variant: Variant,
    X: npt.NDArray[np.float64],
    y: npt.NDArray[np.int8],
    names: tuple[str, ...],
) -> None:
    if X.ndim != 2 or y.shape != X.shape[:1] or len(names) != X.shape[1]:
        wrong = f"X of shape {X.shape} with y of shape {y.shape} and {len(names)} names"
    elif not np.isfinite(X).all() or not np.isin(y, (0, 1)).all():
        wrong = "values that are not finite, or labels other than 0 and 1"
    else:
        wrong = variant.difference(X.shape, int(y.sum()))
    if wrong:
        raise UserError(
            f"{path} must have {variant.n_rows} rows, {variant.n_columns} columns and "
            f"{variant.n_anomalies} anomalies; got {wrong}. It is another variant of the table; "
            "remove it."
        )


def hash_table(X: npt.NDArray[np.float64], y: npt.NDArray[np.int8]) -> str:
    """Return a hash of the shape, values and labels of a table, the same on every machine."""
    digest = hashlib.sha256(f"{X.shape[0]} {X.shape[1]} ".encode())
    digest.update(np.ascontiguousarray(X, dtype="<f8").tobytes())
    digest.update(np.ascontiguousarray(y, dtype="i1").tobytes())
    return digest.hexdigest()
