"""Collections of labelled tables to compare methods on: the paper's, or a folder of files."""

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np

from fewlier.errors import UserError
from fewlier_bench.data import hash_table, list_datasets, load_dataset
from fewlier_bench.data.few_labels import Floats, Labels, cut
from fewlier_bench.runs.measuring import Source

PAPER = "paper"  # name of the collection of the paper's tables


@final
@dataclass(frozen=True)
class LabelledTable:
    """A table of a collection: where `load` finds it, and its size after `cut`.

    `path` is None for a table of the paper.
    """

    name: str
    path: Path | None
    sha256: str
    n_rows: int
    n_columns: int

    def load(self) -> tuple[Floats, Labels]:
        """Return values, unscaled, and labels of at most `MAX_ROWS` rows."""
        if self.path is not None:
            return cut(*_read(self.path))
        table = load_dataset(self.name, download=False)
        return cut(table.X, table.y)


def find_tables(folder: Path | None, names: Sequence[str] = ()) -> list[LabelledTable]:
    """Read and check the named tables, or all tables, of a folder or of the paper."""
    if folder is None:
        return [_of_paper(name) for name in names or [entry.name for entry in list_datasets()]]
    paths = {path.stem: path for path in sorted(folder.glob("*.npz"))}
    unknown = [name for name in names if name not in paths]
    if unknown or not paths:
        got = f"no {unknown[0]}.npz" if unknown else "none"
        raise UserError(
            f"{folder} must have tables as .npz files, each with X and y; got {got}. "
            f"There are: {', '.join(paths) or 'none'}."
        )
    return [_of_file(name, paths[name]) for name in names or paths]


def collection_name(folder: Path | None) -> str:
    """Return the name of a collection: that of its folder, or 'paper'."""
    return PAPER if folder is None else folder.resolve().name


def _of_paper(name: str) -> LabelledTable:
    source = Source.find(name)
    X, _ = LabelledTable(source.name, None, source.sha256, 0, 0).load()
    return LabelledTable(source.name, None, source.sha256, *X.shape)


def _of_file(name: str, path: Path) -> LabelledTable:
    X, y = _read(path)
    sha256 = hash_table(X, y)
    X, y = cut(X, y)
    return LabelledTable(name, path, sha256, *X.shape)


def _read(path: Path) -> tuple[Floats, Labels]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            X, y = archive["X"].astype(np.float64), archive["y"]
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise UserError(
            f"{path} must have arrays of numbers X and y; got: {error}. Write it with numpy.savez."
        ) from None
    if X.ndim != 2 or y.shape != X.shape[:1] or not np.isin(y, (0, 1)).all():
        raise UserError(
            f"{path} must have X of shape (n, d), and y of shape (n,) with 1 for an anomaly and 0 "
            f"for a normal row; got shapes {X.shape} and {y.shape}. Label all rows."
        )
    return X, y.astype(np.int8)
