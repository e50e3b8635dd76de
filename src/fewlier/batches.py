"""A batch of rows with its scores, and what is counted over the batches of a file."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple, final

import numpy as np
import pyarrow as pa

from fewlier.arrays import Floats, Ints
from fewlier.decision.calibration import Calibration
from fewlier.decision.drift import Drift
from fewlier.reasons.explanation import Explanation, explain
from fewlier.score.model import FittedModel
from fewlier.table import Table
from fewlier.table.reading import Batch

ADDED = ("anomaly_score", "is_anomaly", "p_value", "reason")
"""Columns that scoring adds."""
N_REASONS = 3


class ScoredBatch(NamedTuple):
    """Rows of a file with their scores, and a function that explains some of them."""

    batch: Batch
    table: Table
    scores: Floats
    explain: Callable[[Ints], Explanation]

    def add_scores(self, model: FittedModel, threshold: float, *, typed: bool) -> pa.Table:
        """Return the rows with the columns that `ADDED` names."""
        is_anomaly = self.scores > threshold
        reasons: list[str | None] = [None] * len(self.scores)
        flagged = np.flatnonzero(is_anomaly)
        for row, why in zip(flagged, self.explain(flagged).reasons(N_REASONS), strict=True):
            reasons[row] = "; ".join(map(str, why))
        p_values = model.calibration.p_value(self.scores)
        rows = self.batch.typed(self.table, model.encoder.schema) if typed else self.batch.rows
        columns = (self.scores, is_anomaly, p_values, pa.array(reasons, pa.string()))
        for name, values in zip(ADDED, columns, strict=True):
            rows = rows.append_column(name, pa.chunked_array([pa.array(values)]))
        return rows


def explain_later(model: FittedModel, batch: Batch, scores: Floats) -> ScoredBatch:
    """Return scored rows of which only those that turn out to be flagged are explained."""
    table = batch.table(model.encoder.schema)
    return ScoredBatch(batch, table, scores, lambda rows: explain(model, table.take(rows)))


@final
class Tally:
    """What is counted over all rows of a file while they are scored."""

    def __init__(self, model: FittedModel) -> None:
        self._model, self._names = model, model.encoder.schema.names
        self._calibration: Calibration = model.calibration
        self._cells = [np.zeros_like(part) for part in model.reference.counts]
        self._ranks = self._calibration.counts(np.empty(0))
        self._n_impossible = np.zeros(len(self._names), dtype=np.int64)
        self.unread: Counter[str] = Counter()  # cells that could not be read, by column

    def count(
        self, explained: Iterator[tuple[Batch, Explanation]]
    ) -> Iterator[tuple[Batch, Explanation]]:
        """Count rows and pass them on."""
        for batch, why in explained:
            self._ranks += self._calibration.counts(why.score)
            self._n_impossible += why.encoded.impossible.sum(0)
            self.unread.update({name: cells.n for name, cells in why.table.unread.items()})
            counts = self._model.reference.count(why.encoded)
            for total, new in zip(self._cells, counts, strict=True):
                total += new
            yield batch, why

    @property
    def n_rows(self) -> int:
        """Rows seen."""
        return int(self._ranks.sum())

    @property
    def n_impossible(self) -> dict[str, int]:
        """Cells whose value their column cannot have, by column."""
        return {name: int(n) for name, n in zip(self._names, self._n_impossible, strict=True) if n}

    @property
    def drift(self) -> Drift:
        """How the rows seen differ from the training normals."""
        return self._model.drift(self._ranks, self._cells)

    def threshold(self, fdr: float) -> float:
        """Return the threshold that keeps a false-discovery rate among the rows seen."""
        self._calibration.warn_if_too_few("false-discovery rate", fdr, "no row can be flagged")
        return self._calibration.at_discovery_rate(fdr, self._ranks).threshold
