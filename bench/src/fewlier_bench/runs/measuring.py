"""What a job measures: a table of the paper, and the accuracy of scores on it."""

from dataclasses import dataclass, replace
from typing import final

import numpy as np
import numpy.typing as npt
from sklearn.metrics import average_precision_score, roc_auc_score

from fewlier_bench.data import Dataset, load_dataset, scale_columns
from fewlier_bench.runs.jobs import Measurement

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int8]


@final
@dataclass(frozen=True)
class Source:
    """A table to measure on: where `load` finds it, and its counts."""

    name: str
    deduplicated: bool
    sha256: str
    n_rows: int
    n_columns: int
    n_anomalies: int

    @classmethod
    def find(cls, name: str, *, deduplicated: bool = False) -> "Source":
        """Read and check a table that must be here; nothing is downloaded."""
        table = _load(name, deduplicated)
        n_rows, n_columns = table.X.shape
        return cls(table.name, deduplicated, table.sha256, n_rows, n_columns, int(table.y.sum()))

    def load(self) -> tuple[Floats, Labels]:
        """Return its values, each column scaled to [0, 1], and its labels."""
        table = _load(self.name, self.deduplicated)
        return scale_columns(table.X), table.y


def _load(name: str, deduplicated: bool) -> Dataset:
    return load_dataset(name, deduplicated=deduplicated, download=False)


def add_accuracy(facts: Measurement, y: Labels, scores: Floats) -> Measurement:
    """Add the accuracy of the scores of test rows, which are higher for anomalies."""
    return replace(
        facts,
        auc=float(roc_auc_score(y, scores)),
        average_precision=float(average_precision_score(y, scores)),
    )
