"""What is counted while a service runs, summed over its workers, as Prometheus reads it.

prometheus_client keeps counts in files of the folder that PROMETHEUS_MULTIPROC_DIR names, some for
each worker, so that whichever is asked tells of all.
"""

import logging
import os
from pathlib import Path
from typing import final

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

FILE_BYTES = 2**16
"""Bytes of a file of counts: several times what all of them take."""

log = logging.getLogger(__name__)
_REQUESTS = Counter("fewlier_requests", "Requests answered.", ["path", "status"], registry=None)
_SECONDS = Histogram("fewlier_request_seconds", "Time to the answer.", ["path"], registry=None)
_ROWS = Counter("fewlier_rows", "Rows scored.", ["is_anomaly"], registry=None)
_FILES = Counter("fewlier_model_files", "Files taken up or refused.", ["result"], registry=None)


@final
class Counts:
    """What this worker has counted, in files of a folder; without room there, it counts nothing.

    Parameters
    ----------
    folder : Path
        Where all workers count.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._is_counting = folder, True
        try:
            for kind in ("counter", "histogram"):
                _allocate(folder / f"{kind}_{os.getpid()}.db")
        except OSError as error:
            self._is_counting = False
            log.error("this worker counts nothing for /metrics", extra={"reason": str(error)})

    def request(self, path: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        if self._is_counting:
            _REQUESTS.labels(path, str(status)).inc()
            _SECONDS.labels(path).observe(seconds)

    def rows(self, n_rows: int, n_flagged: int) -> None:
        """Count rows that were scored, and how many of them are above the threshold."""
        if self._is_counting:
            _ROWS.labels("true").inc(n_flagged)
            _ROWS.labels("false").inc(n_rows - n_flagged)

    def model_file(self, result: str) -> None:
        """Count a model file that was taken up or refused."""
        if self._is_counting:
            _FILES.labels(result).inc()

    def exposition(self) -> bytes:
        """Return the counts of all workers in Prometheus' text format."""
        registry = CollectorRegistry()
        MultiProcessCollector(registry, str(self._folder))  # type: ignore[no-untyped-call]
        return generate_latest(registry)


def _allocate(path: Path) -> None:
    """Write a file of zeros, which prometheus_client takes for one of no counts yet.

    It would make one without blocks on the disk, and end the process (SIGBUS) where there is no
    room for the first of them.
    """
    if path.exists():  # of a worker before, with the same process id
        return
    try:
        path.write_bytes(bytes(FILE_BYTES))
    except OSError:
        path.unlink(missing_ok=True)
        raise
