"""A batch of rows with its scores: the one way to score, and what is counted over all batches."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
import pyarrow as pa

from fewlier.decision.calibration import Calibration
from fewlier.decision.drift import Drift
from fewlier.detector import AnomalyDetector
from fewlier.files.atomic import PathLike
from fewlier.files.reading import Batch, naming
from fewlier.reasons.explanation import Explanation, explain
from fewlier.score.model import FittedModel
from fewlier.scoring.scored import added, check_free, judge
from fewlier.table import Table
from fewlier.table.arrays import Floats, Ints


class ScoredBatch(NamedTuple):
    """Rows with their scores, and a function that explains some of them."""

    batch: Batch
    table: Table
    scores: Floats
    explain: Callable[[Ints], Explanation]

    @classmethod
    def of(cls, batch: Batch, why: Explanation) -> "ScoredBatch":
        """Return rows that have been explained."""
        return cls(batch, why.table, why.score, why.take)

    def add_scores(
        self, model: FittedModel, threshold: float, *, typed: bool = False, with_reason: bool = True
    ) -> pa.Table:
        """Return the rows with the columns that `ADDED` names, the reason only where it is wanted.

        `typed` gives columns of text the types of the model.
        """
        explain = self.explain if with_reason else None
        new = judge(self.scores, model.calibration, threshold, explain)
        rows = self.batch.typed(self.table, model.encoder.schema) if typed else self.batch.rows
        for name, column in zip(new.column_names, new.columns, strict=True):
            rows = rows.append_column(name, column)
        return rows


@final
class BatchScorer:
    """Scores rows batch by batch: an Arrow record batch in, a record batch out.

    This is what `fewlier score` does to each batch of a file, for whatever streams Arrow: DuckDB,
    Polars, pyarrow, Ray or Spark. It holds the path of a model, reads the file when it meets its
    first batch, and can be pickled, so it travels to other processes.

    Parameters
    ----------
    path : str or PathLike
        A model file.
    with_reason : bool
        Whether to say of each anomaly why it is one, which takes longer the more there are.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import pyarrow as pa
    >>> from fewlier import AnomalyDetector
    >>> from fewlier.scoring.batches import BatchScorer
    >>> amount = np.append(np.random.default_rng(0).normal(50, 10, 199), 400)
    >>> payments = pa.table({"amount": amount})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     AnomalyDetector(random_state=0).fit(payments).save(f"{folder}/fraud.fewlier")
    ...     score = BatchScorer(f"{folder}/fraud.fewlier")
    ...     for scored in map(score, payments.to_batches(max_chunksize=100)):
    ...         print(scored.num_rows, "rows, of the last:", scored["is_anomaly"][-1])
    100 rows, of the last: False
    100 rows, of the last: True
    >>> scored.schema.names
    ['amount', 'anomaly_score', 'is_anomaly', 'p_value', 'reason']
    """

    def __init__(self, path: PathLike, *, with_reason: bool = True) -> None:
        self.path, self.with_reason = str(Path(path).absolute()), with_reason

    def __repr__(self) -> str:
        """Name the model."""
        return f"BatchScorer({self.path!r}, with_reason={self.with_reason})"

    def __reduce__(self) -> tuple[Callable[[str, bool], "BatchScorer"], tuple[str, bool]]:
        """Let it travel without the model, which is read where it arrives."""
        return _scorer, (self.path, self.with_reason)

    @cached_property
    def model(self) -> FittedModel:
        """The model, read from its file on first use."""
        model: FittedModel = AnomalyDetector.load(self.path).model_
        return model

    def schema(self, rows: pa.Schema) -> pa.Schema:
        """Return the schema of what comes out, given that of what goes in."""
        check_free(rows.names)
        for name, dtype in added(self.with_reason).items():
            rows = rows.append(pa.field(name, dtype))
        return rows

    def __call__(
        self, rows: pa.RecordBatch, *, file: str = "a batch", start: int = 0
    ) -> pa.RecordBatch:
        """Return rows in their order, all of their columns unchanged, and those of `ADDED` behind.

        Columns are found by name, and those that the model does not know pass through.

        Parameters
        ----------
        rows : pyarrow.RecordBatch
            Rows to score; there may be none.
        file : str
            What to call their source in errors.
        start : int
            Rows of the source before these, so that errors count from its first.
        """
        with naming(file):
            schema = self.schema(rows.schema)
        batch = Batch(file, pa.Table.from_batches([rows]), start, None)
        scored = ScoredBatch.of(batch, explain(self.model, batch.table(self.model.encoder.schema)))
        threshold = self.model.calibration.threshold
        whole = scored.add_scores(self.model, threshold, with_reason=self.with_reason)
        new = whole.columns[rows.num_columns :]
        return pa.RecordBatch.from_arrays(
            [*rows.columns, *(column.combine_chunks() for column in new)], schema=schema
        )


def _scorer(path: str, with_reason: bool) -> BatchScorer:
    return BatchScorer(path, with_reason=with_reason)


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
        self._passed_through: dict[str, None] = {}
        self.unread: Counter[str] = Counter()  # cells that could not be read, by column

    def count(
        self, explained: Iterator[tuple[Batch, Explanation]]
    ) -> Iterator[tuple[Batch, Explanation]]:
        """Count rows and pass them on."""
        for batch, why in explained:
            self.add_rows(batch, why)
            yield batch, why

    def add_rows(self, batch: Batch, why: Explanation) -> None:
        """Count rows."""
        self._ranks += self._calibration.counts(why.score)
        self._passed_through |= dict.fromkeys(batch.rows.column_names)
        self._n_impossible += why.encoded.impossible.sum(0)
        self.unread.update({name: cells.n for name, cells in why.table.unread.items()})
        counts = self._model.reference.count(why.encoded)
        for total, new in zip(self._cells, counts, strict=True):
            total += new

    def totals(self) -> dict[str, Any]:
        """Return what was counted, as JSON values, for `add`."""
        return {
            "ranks": self._ranks.tolist(),
            "cells": [part.tolist() for part in self._cells],
            "n_impossible": self._n_impossible.tolist(),
            "passed_through": list(self._passed_through),
            "unread": dict(self.unread),
        }

    def add(self, totals: Mapping[str, Any]) -> None:
        """Count the rows that another has counted, by the same model."""
        self._ranks += np.array(totals["ranks"], dtype=np.int64)
        for total, new in zip(self._cells, totals["cells"], strict=True):
            total += np.array(new, dtype=total.dtype)
        self._n_impossible += np.array(totals["n_impossible"], dtype=np.int64)
        self._passed_through |= dict.fromkeys(totals["passed_through"])
        self.unread.update(totals["unread"])

    @property
    def n_rows(self) -> int:
        """Rows seen."""
        return int(self._ranks.sum())

    @property
    def passed_through(self) -> tuple[str, ...]:
        """Columns of the rows that the model does not know."""
        known = set(self._model.encoder.schema.given)
        return tuple(name for name in self._passed_through if name not in known)

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
        self._calibration.warn_if_none(fdr, self._ranks)
        return self._calibration.at_discovery_rate(fdr, self._ranks).threshold
