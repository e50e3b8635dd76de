"""`BackgroundFit`: a full fit in a process of its own, which does not hold the questions up."""

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
from fewlier.labelling.subject import as_given
from fewlier.modelfile.file import settings_as_records, settings_from_records
from fewlier.modelfile.state import State
from fewlier.process.signals import removed_if_stopped
from fewlier.table import Table
from fewlier.table.arrays import Floats, Ints

_MODEL, _TABLE, _LABELS = "model.fewlier", "rows.arrow", "labels.npy"
_PARAMETERS, _IS_NAMED, _P_VALUES = "parameters.json", "is_named.json", "p_values.npy"
_ERROR, _SAID = "error.txt", "said.txt"
FIXABLE = 2
"""How the process ends where the user can mend what is wrong."""
_PATIENCE = 10  # added to how nice the process is: whoever answers comes first


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
        with Path(self._folder.name, _SAID).open("wb") as said:
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
                raise RuntimeError(f"The fit in the background failed.\n{_read(folder / _SAID)}")
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


def _write(job: Job, folder: Path) -> None:
    """Write what the process reads."""
    rows = as_given(job.rows, is_named=True)
    pyarrow.feather.write_feather(rows, folder / _TABLE, compression="uncompressed")
    np.save(folder / _LABELS, job.labels)
    (folder / _IS_NAMED).write_text(json.dumps(job.is_named), "utf-8")
    if hasattr(job.detector, "model_"):
        job.detector.save(folder / _MODEL)
        return
    parameters = settings_as_records(job.detector.get_params(deep=False))
    (folder / _PARAMETERS).write_text(json.dumps(parameters), "utf-8")


def _read(path: Path) -> str:
    return path.read_text("utf-8", errors="replace")


def _fit(folder: Path) -> None:
    """Do the job that lies in a folder."""
    table, labels = Table.of(pyarrow.feather.read_table(folder / _TABLE)), np.load(folder / _LABELS)
    is_named = json.loads((folder / _IS_NAMED).read_text("utf-8"))
    rows = as_given(table, is_named=is_named)
    if (folder / _MODEL).exists():
        detector = AnomalyDetector.load(folder / _MODEL)
        known = ~np.isnan(labels)
        if known.any():
            detector.update(as_given(table.take(known), is_named=is_named), labels[known])
        p_values = detector.p_value(rows)
    else:
        parameters = json.loads((folder / _PARAMETERS).read_text("utf-8"))
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
        os.nice(_PATIENCE)
    try:
        _fit(folder)
    except UserError as error:
        (folder / _ERROR).write_text(str(error), "utf-8")
        sys.exit(FIXABLE)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
