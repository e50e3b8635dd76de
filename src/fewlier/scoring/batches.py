"""Rows scored batch by batch, and what is counted over all batches."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, final

import numpy as np
import pyarrow as pa

from fewlier.decision.drift import Drift
from fewlier.detector import AnomalyDetector
from fewlier.files.atomic import PathLike
from fewlier.files.reading import Batch, naming
from fewlier.files.writing import Write
from fewlier.process.threads import ahead
from fewlier.reasons.explanation import reasons_of_anomalies
from fewlier.score.model import FittedModel
from fewlier.scoring.scored import Scored, added, check_free
from fewlier.table.arrays import Floats, Ints
from fewlier.table.frame import all_unread
from fewlier.table.text_forms import Unread


def score_batches(model: FittedModel, batches: Iterable[Batch]) -> Iterator[tuple[Batch, Scored]]:
    """Yield batches with the scores of their rows, while the next are read and scored."""
    return ahead(lambda batch: (batch, score_batch(model, batch)), batches)


def score_batch(model: FittedModel, batch: Batch, scores: Floats | None = None) -> Scored:
    """Score the rows of a batch, unless their scores are known already."""
    return Scored.of(model, batch.table(model.encoder.schema), scores)


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

    def __getstate__(self) -> dict[str, Any]:
        """Let it travel without the model, which is read where it arrives."""
        return {"path": self.path, "with_reason": self.with_reason}

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
        scored = score_batch(self.model, batch)
        reasons = reasons_of_anomalies(self.model, scored) if self.with_reason else None
        new = (column.combine_chunks() for column in scored.to_arrow(reasons).columns)
        return pa.RecordBatch.from_arrays([*rows.columns, *new], schema=schema)


@final
@dataclass(frozen=True)
class ScoreReport:
    """What scoring a file came to.

    `n_impossible` counts, by column, the cells whose value the column cannot have: a category
    never seen, a negative count; `unread` those in another form than the column's, which count as
    missing. `passed_through` names the columns that the model does not know.
    `threshold` is the model's own, or that of the file, infinite where no row can be above it.
    """

    n_rows: int
    n_above_threshold: int
    threshold: float
    passed_through: tuple[str, ...]
    n_impossible: dict[str, int]
    unread: dict[str, int]
    drift: Drift

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON values; an infinite threshold is None."""
        threshold = self.threshold if np.isfinite(self.threshold) else None
        lists = {"passed_through": list(self.passed_through), "drift": self.drift.to_json()}
        return asdict(self) | lists | {"threshold": threshold}


@final
@dataclass(frozen=True, eq=False)
class Tally:
    """What is counted over rows while they are scored; it travels between processes.

    Parameters
    ----------
    ranks : array (m + 1,)
        Rows by the rank of their scores among the m held-out normals.
    cells : tuple of arrays
        Rows by bin, for each column.
    n_impossible : array (d,)
        Cells whose value their column cannot have.
    n_above : int
        Rows above the threshold.
    names : tuple of str
        The columns of the rows.
    unread : dict of str to Unread
        Cells that could not be read, by column.
    """

    ranks: Ints
    cells: tuple[Ints, ...]
    n_impossible: Ints
    n_above: int
    names: tuple[str, ...]
    unread: dict[str, Unread]

    @classmethod
    def zero(cls, model: FittedModel) -> "Tally":
        """Count no rows."""
        ranks = model.calibration.counts(np.empty(0))
        cells = tuple(map(np.zeros_like, model.reference.counts))
        return cls(ranks, cells, np.zeros(model.encoder.n_columns, np.int64), 0, (), {})

    @classmethod
    def of(cls, model: FittedModel, batch: Batch, scored: Scored) -> "Tally":
        """Count the rows of a batch."""
        return cls(
            model.calibration.counts(scored.scores),
            model.reference.count(scored.encoded),
            scored.n_impossible,
            int(scored.is_anomaly.sum()),
            tuple(batch.rows.column_names),
            all_unread({}, scored.rows.unread, batch.start),
        )

    def plus(self, other: "Tally") -> "Tally":
        """Return the counts of these rows and of further ones, by the same model."""
        return Tally(
            self.ranks + other.ranks,
            tuple(own + new for own, new in zip(self.cells, other.cells, strict=True)),
            self.n_impossible + other.n_impossible,
            self.n_above + other.n_above,
            tuple(dict.fromkeys(self.names + other.names)),
            all_unread(self.unread, other.unread, 0),
        )

    def report(self, model: FittedModel) -> ScoreReport:
        """Say what was counted, by the model whose threshold was used."""
        schema = model.encoder.schema
        impossible = zip(schema.names, self.n_impossible.tolist(), strict=True)
        return ScoreReport(
            n_rows=int(self.ranks.sum()),
            n_above_threshold=self.n_above,
            threshold=model.calibration.threshold,
            passed_through=tuple(name for name in self.names if name not in schema.given),
            n_impossible={name: n for name, n in impossible if n},
            unread={name: cells.n for name, cells in self.unread.items()},
            drift=model.drift(self.ranks, self.cells),
        )


def write_scores(
    model: FittedModel,
    batches: Iterable[tuple[Batch, Scored]],
    write: Write | None,
    *,
    typed: bool = False,
) -> Tally:
    """Write batches with the columns that `ADDED` names, and count their rows.

    `typed` gives columns of text the types of the model. Without `write` rows are only counted.
    """
    total = Tally.zero(model)
    for batch, scored in batches:
        if write is not None:
            rows = batch.typed(scored.rows, model.encoder.schema) if typed else batch.rows
            new = scored.to_arrow(reasons_of_anomalies(model, scored))
            for field, column in zip(new.schema, new.columns, strict=True):
                rows = rows.append_column(field, column)
            write(rows)
        total = total.plus(Tally.of(model, batch, scored))
    return total


def at_discovery_rate(model: FittedModel, rate: float, ranks: Ints) -> FittedModel:
    """Move the threshold to where it keeps a false-discovery rate among rows of these ranks."""
    model.calibration.warn_if_none(rate, ranks)
    return model.with_calibration(model.calibration.at_discovery_rate(rate, ranks))
