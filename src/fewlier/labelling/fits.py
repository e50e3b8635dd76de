"""`Fits`: the full fits of a session, one at a time, beside the questions."""

from typing import final

import numpy as np

from fewlier.detector import AnomalyDetector
from fewlier.errors import UserError
from fewlier.labelling.background import BackgroundFit, Finished, Job
from fewlier.labelling.subject import Subject
from fewlier.table.arrays import Codes, Ints
from fewlier.table.labels import UNLABELLED

MAX_ROWS = 50_000
"""Rows of a fit at most: those with labels, and of the others as many as there is room for."""


@final
class Fits:
    """Begins fits, and keeps what the last one found.

    Attributes
    ----------
    latest : Finished or None
        What the last fit that ended well found.
    error : str or None
        Why the last fit that ended did not end well, if so.
    """

    def __init__(self, subject: Subject, detector: AnomalyDetector) -> None:
        self._subject, self._first = subject, detector
        self.latest: Finished | None = None
        if subject.model is not None:
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
        nothing = not len(known) and self._subject.model is not None
        return bool((codes == UNLABELLED).all()) if nothing else np.array_equal(known, codes)

    def _job(self, codes: Codes) -> Job:
        rows = self._rows(codes)
        labels = np.where(codes[rows] == UNLABELLED, np.nan, codes[rows]).astype(np.float64)
        subject = self._subject
        return Job(self._first, subject.table.take(rows), labels, rows, subject.is_named)

    def _rows(self, codes: Codes) -> Ints:
        """Return the rows to fit to, in ascending order."""
        labelled, others = (np.flatnonzero(part) for part in (codes >= 0, codes < 0))
        room = max(MAX_ROWS - len(labelled), 0)
        drawn = np.random.default_rng(0).permutation(others)[:room]
        return np.sort(np.concatenate([labelled, drawn]))
