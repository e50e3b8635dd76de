"""What is counted while a service runs, summed over its workers, as Prometheus reads it."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import final

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from fewlier.decision.drift import Drift
from fewlier.score.model import FittedModel
from fewlier.table import Encoded
from fewlier.table.arrays import Floats, Ints

# prometheus_client keeps these in files of the folder that PROMETHEUS_MULTIPROC_DIR names, one for
# each worker, so that whichever is asked tells of all.
REQUESTS = Counter("fewlier_requests", "Requests answered.", ["endpoint", "status"], registry=None)
ERRORS = Counter("fewlier_errors", "Requests answered by an error.", ["endpoint"], registry=None)
SECONDS = Histogram(
    "fewlier_request_seconds", "From a request to its answer.", ["endpoint"], registry=None
)
ROWS = Counter("fewlier_rows", "Rows scored.", ["model"], registry=None)
FLAGGED = Counter("fewlier_rows_flagged", "Rows above the threshold.", ["model"], registry=None)
SWAPS = Counter(
    "fewlier_model_files", "Model files that were taken up or refused.", ["result"], registry=None
)


@final
class RowCounts:
    """Rows that one model has scored in this process: how many, and where their values lie.

    They are in a file of the folder, so that other workers can add them up.

    Parameters
    ----------
    model : FittedModel
        The model.
    name : str
        What no other model of the service has: its hash.
    folder : Path
        Where all workers keep their counts.
    """

    def __init__(self, model: FittedModel, name: str, folder: Path) -> None:
        self._model, self._name, self._folder = model, name, folder
        counts = self._of_no_row()
        self._sizes = [len(part) for part in counts]
        path = folder / f"{name}.{os.getpid()}.rows"
        if not path.exists():
            path.write_bytes(bytes(8 * sum(self._sizes)))
        self._own = np.memmap(path, np.int64, "r+")

    def add(self, encoded: Encoded, scores: Floats) -> None:
        """Count rows, and how many of them are above the threshold."""
        calibration, reference = self._model.calibration, self._model.reference
        flagged = np.array([(scores > calibration.threshold).sum()])
        self._own += np.concatenate(
            [flagged, calibration.counts(scores), *reference.count(encoded)]
        )

    def total(self) -> tuple[int, int, Drift]:
        """Return rows, those above the threshold, and their drift, over all workers."""
        files = self._folder.glob(f"{self._name}.*.rows")
        counts = sum((np.fromfile(file, np.int64) for file in files), np.zeros_like(self._own))
        (flagged,), ranks, *cells = np.split(counts, np.cumsum(self._sizes)[:-1])
        return int(ranks.sum()), int(flagged), self._model.drift(ranks, cells)

    def _of_no_row(self) -> list[Ints]:
        ranks = self._model.calibration.counts(np.empty(0))
        return [np.zeros(1, np.int64), ranks, *self._model.reference.counts]


@final
class Rates(Collector):
    """The share of rows above the threshold, and drift, of each model that is served now."""

    def __init__(self, counts: Iterable[tuple[str, RowCounts]]) -> None:
        self._counts = counts

    def collect(self) -> Iterator[Metric]:
        """Yield what is true since the service, or its newest file of a model, started."""
        share = GaugeMetricFamily(
            "fewlier_share_flagged", "Share of rows above the threshold.", labels=["model"]
        )
        drift = GaugeMetricFamily(
            "fewlier_drift",
            "How far rows have drifted from the training normals, 0 to 1; 0 if not significantly.",
            labels=["model", "column", "what"],
        )
        for name, counts in self._counts:
            n_rows, n_flagged, found = counts.total()
            share.add_metric([name], n_flagged / n_rows if n_rows else 0.0)
            for change in found.changes if n_rows else ():
                distance = change.distance if change.is_drift else 0.0
                drift.add_metric([name, change.column or "", change.what], distance)
        yield share
        yield drift


def exposition(counts: Iterable[tuple[str, RowCounts]]) -> bytes:
    """Return all counts in Prometheus' text format."""
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    registry.register(Rates(counts))
    return generate_latest(registry)
