"""The model that is served, as its file is now."""

import hashlib
import logging
import time
from pathlib import Path
from typing import Any, NamedTuple, final

from fewlier.detector import AnomalyDetector
from fewlier.modelfile.inspection import inspect_file
from fewlier.process.escape import shown
from fewlier.score.model import FittedModel
from fewlier.service.limits import Refusal
from fewlier.service.metrics import Counts

RETRY_SECONDS = 10.0
"""Seconds after which a file that could not be read is read again, though it looks the same."""

log = logging.getLogger(__name__)


def stamp(path: Path) -> tuple[int, ...]:
    """Return what changes when a file is replaced, or when other users may read it."""
    found = path.stat()
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


class Served(NamedTuple):
    """A model as one file held it.

    Parameters
    ----------
    name : str
        Name of the file, without the suffix.
    sha256 : str
        Hash of the file, in hexadecimal.
    model : FittedModel
        The model.
    inspection : dict
        What `fewlier inspect --json` says of the file.
    """

    name: str
    sha256: str
    model: FittedModel
    inspection: dict[str, Any]

    @classmethod
    def of(cls, path: Path) -> "Served":
        """Read a file."""
        model: FittedModel = AnomalyDetector.load(path).model_
        inspection, _ = inspect_file(path)
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        return cls(shown(path.stem), sha256, model, inspection | {"model": shown(path.name)})

    @property
    def columns(self) -> set[str]:
        """What rows must have."""
        return set(self.model.encoder.schema.sources)

    @property
    def facts(self) -> dict[str, Any]:
        """What each answer says of the model that gave it."""
        return {"model": self.name, "model_sha256": self.sha256}


@final
class ModelFile:
    """A model file that may be replaced; if the new one is damaged, keep the old model.

    Parameters
    ----------
    path : Path
        The file.
    counts : Counts
        Where it is counted how often it was taken up or refused.
    """

    def __init__(self, path: Path, counts: Counts) -> None:
        self._path, self._counts = path, counts
        self.newest: Served | None = None
        self._seen: tuple[int, ...] = ()
        self._refused, self._again = "", 0.0

    @property
    def served(self) -> Served:
        """The model; refused while no file was good since this worker began."""
        if self.newest is None:
            raise Refusal(503, "There is no model yet: its file cannot be read. The log has more.")
        return self.newest

    def refresh(self) -> None:
        """Take up the file if it has changed, or could not be read a while ago."""
        try:
            seen = stamp(self._path)
            if seen == self._seen and time.monotonic() < self._again:
                return
            self._seen, self._again = seen, time.monotonic() + RETRY_SECONDS
            new = Served.of(self._path)
            if stamp(self._path) == seen:
                self._take_up(new)
        # A file that is gone for a moment, or half written, is whole in a later round.
        except Exception as error:  # noqa: BLE001 - nothing must end the rounds
            self._refuse(f"{type(error).__name__}: {error}")

    def _take_up(self, new: Served) -> None:
        old, self.newest = self.newest, new
        self._refused, self._again = "", float("inf")
        if old is not None and old.sha256 == new.sha256:
            return
        self._counts.model_file("taken up")
        log.info("model file taken up", extra=new.facts)
        if old is not None and old.columns != new.columns:
            added, gone = sorted(new.columns - old.columns), sorted(old.columns - new.columns)
            facts = new.facts | {"added": added, "gone": gone}
            log.error("the new model has other columns; requests for the old one fail", extra=facts)

    def _refuse(self, reason: str) -> None:
        if reason != self._refused:  # once, and not in every round
            self._refused = reason
            self._counts.model_file("refused")
            kept = self.newest.facts if self.newest else {}
            log.warning("model file refused", extra=kept | {"reason": reason})
