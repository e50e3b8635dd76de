"""The models that are served, each as its file is now."""

import hashlib
import logging
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, final

from fewlier.detector import AnomalyDetector
from fewlier.errors import UserError
from fewlier.modelfile.inspection import inspect_file
from fewlier.score.model import FittedModel
from fewlier.service.counts import SWAPS, RowCounts
from fewlier.service.limits import Refusal

SUFFIX = ".fewlier"
COPY = ".kept"

log = logging.getLogger(__name__)


class Stamp(NamedTuple):
    """What changes when a file is replaced."""

    modified: int
    size: int
    inode: int

    @classmethod
    def of(cls, path: Path) -> "Stamp | None":
        """Return that of a file, or None if there is none."""
        try:
            found = path.stat()
        except OSError:
            return None
        return cls(found.st_mtime_ns, found.st_size, found.st_ino)


@final
@dataclass(frozen=True, eq=False)
class Served:
    """A model as one file held it.

    Parameters
    ----------
    name : str
        What requests call it: the name of its file, without the suffix.
    sha256 : str
        Hash of the file, in hexadecimal.
    model : FittedModel
        The model.
    inspection : dict
        What `fewlier inspect --json` says of the file.
    counts : RowCounts
        What it has scored.
    """

    name: str
    sha256: str
    model: FittedModel
    inspection: dict[str, Any]
    counts: RowCounts

    @property
    def facts(self) -> dict[str, str]:
        """What each answer says of the model that gave it."""
        return {"model": self.name, "model_sha256": self.sha256}


@final
class Shelf:
    """The model of a file, or the models of a folder.

    Parameters
    ----------
    path : Path
        A model file, or a folder of them.
    folder : Path
        Where workers keep their counts, and a copy of the last good file of each model: a worker
        that starts while a file is damaged goes on with it.
    """

    def __init__(self, path: Path, folder: Path) -> None:
        self._path, self._folder = path, folder
        self._models: dict[str, Served] = {}
        self._seen: dict[str, Stamp | None] = {}
        self.is_folder = path.is_dir()

    def open(self) -> None:
        """Read all models; a file that cannot be read, and never could, is an error.

        A worker that starts later goes on with the copy of a file that is damaged by then, and
        without a file that was damaged from the first.
        """
        # Whoever has read a model counts rows.
        paths, was_open = self._paths(), any(self._folder.glob("*.rows"))
        if not paths and not was_open:
            raise UserError(
                f"{self._path}: a folder of models must hold files named NAME{SUFFIX}; got none."
            )
        for path in paths:
            try:
                self._take_up(path)
            except (UserError, OSError) as error:
                if not was_open:
                    raise
                self._fall_back(path, error)

    def refresh(self) -> None:
        """Take up files that are new or replaced; where one is damaged, the old model goes on."""
        paths = self._paths()
        for path in paths:
            if Stamp.of(path) == self._seen.get(path.stem):
                continue
            try:
                self._take_up(path)
            except (UserError, OSError) as error:
                _note_refused(path, error)
        for name in self._models.keys() - {path.stem for path in paths}:
            log.warning("model file removed", extra={"model": name})
            self._copy_of(self._path / f"{name}{SUFFIX}").unlink(missing_ok=True)
            del self._models[name], self._seen[name]

    def __iter__(self) -> Iterator[Served]:
        """Yield the models by name."""
        return iter(sorted([*self._models.values()], key=lambda served: served.name))

    def get(self, name: str | None = None) -> Served:
        """Return a model by its name, or without one the only model of a file."""
        if name is None:
            if self.is_folder:
                raise Refusal(404, "Several models are served: ask /models/NAME for one of them.")
            name = self._path.stem
        try:
            return self._models[name]
        except KeyError:
            raise Refusal(404, "No model of that name is served; /models lists them.") from None

    def _paths(self) -> list[Path]:
        # A file that is not there for a moment is being replaced by something careless.
        return sorted(self._path.glob(f"*{SUFFIX}")) if self.is_folder else [self._path]

    def _take_up(self, path: Path) -> None:
        """Read a file, keep a copy, and put its model in the place of the one before."""
        stamp = self._seen[path.stem] = Stamp.of(path)
        served = self._read(path, path)
        copy = self._folder / f"{os.getpid()}.copy"
        try:
            shutil.copyfile(path, copy)
            if Stamp.of(path) != stamp or _hash(copy) != served.sha256:
                self._seen[path.stem] = None
                raise UserError(f"{path} has changed while it was read.")
            copy.replace(self._copy_of(path))
        finally:
            copy.unlink(missing_ok=True)
        self._put(served)

    def _fall_back(self, path: Path, error: Exception) -> None:
        """Go on with the copy of a file that is damaged."""
        _note_refused(path, error)
        copy = self._copy_of(path)
        if copy.exists():
            self._put(self._read(copy, path))
        elif not self.is_folder:
            raise error

    def _read(self, source: Path, path: Path) -> Served:
        """Return the model of a file as that of a path."""
        model: FittedModel = AnomalyDetector.load(source).model_
        inspection, _ = inspect_file(source)
        sha256 = _hash(source)
        counts = RowCounts(model, sha256, self._folder)
        return Served(path.stem, sha256, model, inspection | {"model": path.name}, counts)

    def _put(self, served: Served) -> None:
        self._models[served.name] = served
        SWAPS.labels("taken up").inc()
        facts = {"model": served.name, "model_sha256": served.sha256}
        log.info("model file taken up", extra=facts)

    def _copy_of(self, path: Path) -> Path:
        return self._folder / f"{path.stem}{COPY}"


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _note_refused(path: Path, error: Exception) -> None:
    SWAPS.labels("refused").inc()
    log.warning("model file refused", extra={"model": path.stem, "reason": str(error)})
