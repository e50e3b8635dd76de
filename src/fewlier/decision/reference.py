"""`Reference`: how often the training normals fall into the bins of each column."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from fewlier.modelfile.state import State, require
from fewlier.table import Encoded, Encoder, Kind
from fewlier.table.arrays import Ints

MAX_EDGES = 64
"""Most edges between the bins in which the normals of a numeric column are counted."""
MAX_COUNTED = 20_000
"""Most normals that are counted; far fewer are enough to see differences of a tenth."""
_N_EXTRA = 2  # bins for impossible and for missing cells


@final
@dataclass(frozen=True, eq=False)
class Reference:
    """How often the training normals fall into the bins of each column.

    A numeric column has the bins (-inf, e_1], (e_1, e_2], ..., (e_k, inf) of its targets, one with
    levels one bin per code; each has two more, for impossible cells and for missing ones.

    Parameters
    ----------
    edges : tuple of arrays of float32 (k,)
        The edges of each column, none where it has levels.
    counts : tuple of arrays of int64
        Normals by bin, for each column.
    share : float
        What each of them counts in a test: less than 1 where rows are copies of others.
    """

    edges: tuple[npt.NDArray[np.float32], ...]
    counts: tuple[Ints, ...]
    share: float = 1.0

    @classmethod
    def from_encoded(cls, encoder: Encoder, normals: Encoded, share: float = 1.0) -> "Reference":
        """Choose bins that each hold about the same number of normals, and count."""
        edges = []
        for d, column in enumerate(encoder.schema.columns):
            values = normals.targets[normals.observed[:, d] & ~normals.impossible[:, d], d]
            has_levels = column.coding in (Kind.BINARY, Kind.CATEGORY)
            edges.append(_edges(values[:0] if has_levels else values))
        return cls(tuple(edges), _count(normals, edges, _n_bins(encoder, edges)), share)

    def count(self, rows: Encoded) -> tuple[Ints, ...]:
        """Count rows by bin, for each column."""
        return _count(rows, self.edges, [len(counts) for counts in self.counts])

    def state(self) -> State:
        """Return what a model file holds of it."""
        edges, counts = np.concatenate(self.edges), np.concatenate(self.counts)
        n_edges = [len(edges) for edges in self.edges]
        record = {"n_edges": n_edges, "share": self.share}
        return State(record, {"edges": edges, "counts": counts})

    @classmethod
    def from_state(cls, state: State, encoder: Encoder) -> "Reference":
        """Inverse of `state`, checked."""
        n_edges = state.counts("n_edges", MAX_EDGES)
        require(len(n_edges) == encoder.n_columns, "its reference fits other columns.")
        flat = state.array("edges", np.float32, (sum(n_edges),))
        edges = np.split(flat, np.cumsum(n_edges)[:-1])
        is_sorted = all((np.diff(part) > 0).all() for part in edges)
        require(is_sorted, "the edges of its reference are not sorted.")
        n_bins = _n_bins(encoder, edges)
        flat = state.array("counts", np.int64, (sum(n_bins),))
        counts = np.split(flat, np.cumsum(n_bins)[:-1])
        require(bool((flat >= 0).all()), "its reference has negative counts.")
        # Python's integers: those of a hostile file may overflow.
        totals = {sum(part.tolist()) for part in counts}
        is_total = len(totals) == 1 and max(totals) <= MAX_COUNTED
        require(is_total, f"its reference does not count the same rows, at most {MAX_COUNTED}.")
        share = state.positive("share")
        require(share <= 1, "a row of its reference counts more than one.")
        return cls(tuple(edges), tuple(counts), share)


def _count(
    rows: Encoded, edges: Sequence[npt.NDArray[np.float32]], n_bins: Sequence[int]
) -> tuple[Ints, ...]:
    """Count rows by bin, for each column."""
    counts = []
    for d, (inner, n) in enumerate(zip(edges, n_bins, strict=True)):
        is_impossible, is_missing = rows.impossible[:, d], ~rows.observed[:, d]
        targets = np.where(is_impossible, 0, rows.targets[:, d])
        bins = np.searchsorted(inner, targets) if len(inner) else targets.astype(np.int64)
        bins = np.clip(bins, 0, n - 3)  # a column that never had a value has one bin for all
        bins = np.select([is_missing, is_impossible], [n - 1, n - 2], bins)
        counts.append(np.bincount(bins, minlength=n))
    return tuple(counts)


def _n_bins(encoder: Encoder, edges: Sequence[npt.NDArray[np.float32]]) -> list[int]:
    """Count the bins of each column."""
    codes = [
        2 if column.coding is Kind.BINARY else int(n)
        for column, n in zip(encoder.schema.columns, encoder.n_levels, strict=True)
    ]
    # A column with levels has no edges.
    return [_N_EXTRA + (n or 1) + len(part) for n, part in zip(codes, edges, strict=True)]


def _edges(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return values with about the same number between any two; all values if they are few."""
    if not len(values):
        return values
    shares = np.arange(1, MAX_EDGES + 1) / MAX_EDGES
    return np.unique(np.quantile(values, shares, method="inverted_cdf"))
