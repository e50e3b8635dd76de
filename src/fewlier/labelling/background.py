"""`BackgroundFits`: full fits of a session, each in a process of its own, beside the questions."""

import json
import os
import subprocess  # nosec B404
import sys
import tempfile
import threading
from pathlib import Path
from typing import NamedTuple, final

import numpy as np
import pyarrow.feather

from fewlier.detector import AnomalyDetector
from fewlier.errors import UserError
from fewlier.labelling.session_table import Expected, SessionTable, as_given, expected_values
from fewlier.modelfile.file import settings_as_records, settings_from_records
from fewlier.modelfile.state import State
from fewlier.process.signals import removed_if_stopped
from fewlier.table import Table
from fewlier.table.arrays import Codes, Floats, Ints
from fewlier.table.labels import UNLABELLED

_MODEL, _TABLE, _LABELS = "model.fewlier", "rows.arrow", "labels.npy"
_JOB, _P_VALUES = "job.json", "p_values.npy"
_ERROR, _LOG = "error.txt", "log.txt"
FIXABLE = 2
"""Exit code of the process for what the user can fix."""
_NICENESS = 10  # more than that of this process: whoever answers comes first


MAX_ROWS = 50_000
"""Most rows of a fit: those with labels, and of the others as many as there is room for."""


class Job(NamedTuple):
    """What to fit: a detector, rows and labels; a detector that is fitted is updated.

    `numbers` (n,) are the numbers of the rows in the whole table, and `is_named` says whether its
    columns have names of the user's.
    """

    detector: AnomalyDetector
    rows: Table
    labels: Floats
    numbers: Ints
    is_named: bool


class Finished(NamedTuple):
    """A detector that knows the answers of a job, and the p-values (n,) of its rows."""

    detector: AnomalyDetector
    p_values: dict[int, float]


@final
class BackgroundFit:
    """A fit that was begun; it ends with this process, whatever ends that."""

    def __init__(self, job: Job) -> None:
        self._numbers = job.numbers
        self._folder = tempfile.TemporaryDirectory(prefix="fewlier-")
        self._kept = removed_if_stopped(self._folder.name)
        self._kept.__enter__()
        _write(job, Path(self._folder.name))
        with Path(self._folder.name, _LOG).open("wb") as said:
            # No shell, and no word of the user's.
            self._process = subprocess.Popen(  # nosec B603
                [sys.executable, "-m", "fewlier.labelling.background", self._folder.name],
                stdin=subprocess.PIPE,  # closed when this process ends, and then that one ends too
                stdout=subprocess.DEVNULL,
                stderr=said,
                env=os.environ | {"OMP_NUM_THREADS": "1"},
            )

    @property
    def is_done(self) -> bool:
        """Whether it has ended."""
        return self._process.poll() is not None

    def wait(self) -> Finished:
        """Return what was fitted, when it is; an error of the fit is raised here."""
        code = self._process.wait()
        folder = Path(self._folder.name)
        try:
            if code == FIXABLE:
                raise UserError((folder / _ERROR).read_text("utf-8"))
            if code:
                raise RuntimeError(f"The fit in the background failed.\n{_read(folder / _LOG)}")
            p_values = np.load(folder / _P_VALUES, allow_pickle=False)
            by_row = dict(zip(self._numbers.tolist(), p_values.tolist(), strict=True))
            return Finished(AnomalyDetector.load(folder / _MODEL), by_row)
        finally:
            self.close()

    def close(self) -> None:
        """Stop it, and remove its files; a second time does nothing."""
        self._process.kill()
        self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._folder.cleanup()
        self._kept.__exit__(None, None, None)


@final
class BackgroundFits:
    """Begins fits, and keeps what the last one found.

    Attributes
    ----------
    latest : Finished or None
        What the last fit that ended well found.
    error : str or None
        Why the last fit that ended did not end well, if so.
    """

    def __init__(self, data: SessionTable, detector: AnomalyDetector) -> None:
        self._data, self._first = data, detector
        self.latest: Finished | None = None
        if data.model is not None:
            self.latest = Finished(detector, {})
        self.error: str | None = None
        self._running: tuple[BackgroundFit, Codes] | None = None
        self._known = np.empty(0, dtype=np.int8)  # the labels that the latest knows

    @property
    def is_running(self) -> bool:
        """Whether a fit is under way."""
        return self._running is not None

    def begin(self, codes: Codes) -> None:
        """Begin a fit with the labels (n,) of all rows, unless one is under way."""
        if self._running is None:
            self._running = BackgroundFit(self._job(codes)), codes

    def collect(self) -> None:
        """Take what a fit that has ended found; its error is kept."""
        if self._running is not None and self._running[0].is_done:
            try:
                self._take(*self._running)
            except UserError as error:
                self.error = str(error)

    def detector(self, codes: Codes) -> AnomalyDetector:
        """Return a detector that knows these labels, and wait for it if need be."""
        if self.latest is not None and self._knows(self._known, codes):
            return self.latest.detector
        if self._running is not None and not self._knows(self._running[1], codes):
            self.close()
        self._running = self._running or (BackgroundFit(self._job(codes)), codes)
        return self._take(*self._running).detector

    def p_value(self, row: int) -> float | None:
        """Return the p-value of a row by the latest fit; None before the first."""
        if self.latest is None or row in self.latest.p_values:
            return self.latest and self.latest.p_values[row]
        return float(self.latest.detector.p_value(self._data.take(np.array([row])))[0])

    def expected(self, row: int) -> dict[str, Expected]:
        """Return what the latest fit expected of each column of a row; nothing before the first."""
        if self.latest is None:
            return {}
        return expected_values(self.latest.detector, self._data.take(np.array([row])))

    def close(self) -> None:
        """Stop the fit that is under way."""
        if self._running is not None:
            self._running[0].close()
            self._running = None

    def _take(self, fit: BackgroundFit, codes: Codes) -> Finished:
        self._running = None
        self.latest, self._known, self.error = fit.wait(), codes, None
        return self.latest

    def _knows(self, known: Codes, codes: Codes) -> bool:
        nothing = not len(known) and self._data.model is not None
        return bool((codes == UNLABELLED).all()) if nothing else np.array_equal(known, codes)

    def _job(self, codes: Codes) -> Job:
        rows = self._rows(codes)
        labels = np.where(codes[rows] == UNLABELLED, np.nan, codes[rows]).astype(np.float64)
        data = self._data
        return Job(self._first, data.table.take(rows), labels, rows, data.is_named)

    def _rows(self, codes: Codes) -> Ints:
        """Return the rows to fit to, in ascending order."""
        labelled, others = (np.flatnonzero(part) for part in (codes >= 0, codes < 0))
        room = max(MAX_ROWS - len(labelled), 0)
        drawn = np.random.default_rng(0).permutation(others)[:room]
        return np.sort(np.concatenate([labelled, drawn]))


def _write(job: Job, folder: Path) -> None:
    """Write what the process reads."""
    rows = as_given(job.rows, is_named=True)
    pyarrow.feather.write_feather(rows, folder / _TABLE, compression="uncompressed")
    np.save(folder / _LABELS, job.labels)
    parameters = None
    if hasattr(job.detector, "model_"):
        job.detector.save(folder / _MODEL)
    else:
        parameters = settings_as_records(job.detector.get_params(deep=False))
    record = {"is_named": job.is_named, "parameters": parameters}
    (folder / _JOB).write_text(json.dumps(record), "utf-8")


def _read(path: Path) -> str:
    return path.read_text("utf-8", errors="replace")


def _fit(folder: Path) -> None:
    """Do the job that lies in a folder."""
    table, labels = Table.of(pyarrow.feather.read_table(folder / _TABLE)), np.load(folder / _LABELS)
    record = json.loads((folder / _JOB).read_text("utf-8"))
    is_named, parameters = record["is_named"], record["parameters"]
    rows = as_given(table, is_named=is_named)
    if parameters is None:
        detector = AnomalyDetector.load(folder / _MODEL)
        known = ~np.isnan(labels)
        if known.any():
            detector.update(as_given(table.take(known), is_named=is_named), labels[known])
        p_values = detector.p_value(rows)
    else:
        parameters |= settings_from_records(State(parameters))
        detector = AnomalyDetector(**parameters).fit(rows, labels)
        p_values = detector.model_.calibration.p_value(detector.decision_scores_)
    np.save(folder / _P_VALUES, p_values)
    detector.save(folder / _MODEL)


def _end_with_parent() -> None:
    os.read(sys.stdin.fileno(), 1)  # returns when the other end is closed; nobody writes
    os._exit(1)


def main(folder: Path) -> None:
    """Do a job, and write down what the user can mend."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if hasattr(os, "nice"):  # not on Windows
        os.nice(_NICENESS)
    try:
        _fit(folder)
    except UserError as error:
        (folder / _ERROR).write_text(str(error), "utf-8")
        sys.exit(FIXABLE)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
