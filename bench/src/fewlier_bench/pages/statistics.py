"""Methods compared over datasets and splits: means, paired tests, averages, ranks, wins.

Nothing here knows which methods or datasets there are, nor what is measured, but that more of it is
better.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, final

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata, ttest_rel, wilcoxon

from fewlier_bench.runs.results import Result, latest

Floats: TypeAlias = npt.NDArray[np.float64]
Bools: TypeAlias = npt.NDArray[np.bool_]

LEVEL = 0.05  # of the t-tests


@final
@dataclass(frozen=True, eq=False)
class Grid:
    """Measurements of methods on datasets over splits.

    `values` has the shape (n_datasets, n_methods, n_splits), with NaN where nothing was measured.
    `expected`, of shape (n_datasets, n_splits), says which splits a dataset has: those where any
    method was measured. A part of a grid expects what the whole does.
    """

    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    values: Floats
    expected: Bools

    @classmethod
    def of_values(cls, datasets: Sequence[str], methods: Sequence[str], values: Floats) -> "Grid":
        """Return the grid of all that was measured."""
        expected = np.any(~np.isnan(values), axis=1)
        return cls(tuple(datasets), tuple(methods), values, np.asarray(expected))

    def of(self, dataset: str, method: str) -> Floats:
        """Return the values of a method on a dataset, shape (n_splits,)."""
        row: Floats = self.values[self.datasets.index(dataset), self.methods.index(method)]
        return row

    def only(
        self, datasets: Sequence[str] | None = None, methods: Sequence[str] | None = None
    ) -> "Grid":
        """Return the part with these datasets and methods, in this order."""
        datasets = self.datasets if datasets is None else tuple(datasets)
        methods = self.methods if methods is None else tuple(methods)
        rows = [self.datasets.index(name) for name in datasets]
        columns = [self.methods.index(name) for name in methods]
        return Grid(datasets, methods, self.values[np.ix_(rows, columns)], self.expected[rows])

    @property
    def is_complete(self) -> Bools:
        """Where a method has every split of its dataset, shape (n_datasets, n_methods)."""
        expected = self.expected[:, None, :]
        has_all = np.all(~np.isnan(self.values) | ~expected, axis=2)
        return np.asarray(has_all & np.any(expected, axis=2))

    @property
    def means(self) -> Floats:
        """Means over splits, shape (n_datasets, n_methods), NaN where splits are missing."""
        measured = ~np.isnan(self.values)
        counts = np.maximum(measured.sum(axis=2), 1)
        means = np.where(measured, self.values, 0).sum(axis=2) / counts
        return np.where(self.is_complete, means, np.nan)

    @property
    def standard_errors(self) -> Floats:
        """Standard errors of the means, NaN where splits are missing or there is only one."""
        measured = ~np.isnan(self.values)
        counts = measured.sum(axis=2)
        squares = np.where(measured, self.values - self.means[..., None], 0) ** 2
        variances = squares.sum(axis=2) / np.maximum(counts - 1, 1)
        known = self.is_complete & (counts > 1)
        return np.where(known, np.sqrt(variances / np.maximum(counts, 1)), np.nan)

    @property
    def common(self) -> "Grid":
        """The datasets where every method is complete; methods without any value do not count."""
        counted = ~np.isnan(self.values).all(axis=(0, 2))
        complete = self.is_complete[:, counted]
        pairs = zip(self.datasets, complete, strict=True)
        return self.only([name for name, row in pairs if counted.any() and row.all()])

    @property
    def averages(self) -> Floats:
        """Averages of the means over all datasets, shape (n_methods,), NaN if one is missing."""
        means = self.means
        return means.mean(axis=0) if len(means) else np.full(len(self.methods), np.nan)

    @property
    def mean_ranks(self) -> Floats:
        """Mean ranks over all datasets, 1 is best, ties share; NaN for methods with a gap."""
        means = self.means
        ranked = ~np.isnan(means).any(axis=0)
        ranks = np.full(len(self.methods), np.nan)
        if len(means) and ranked.any():
            ranks[ranked] = rankdata(-means[:, ranked], axis=1).mean(axis=0)
        return ranks

    def not_separated(self) -> Bools:
        """Return where a t-test does not separate a method from the best mean on its dataset.

        Shape (n_datasets, n_methods); the best itself is not separated, and a method with missing
        splits takes no part.
        """
        means, found = self.means, np.zeros(self.values.shape[:2], dtype=bool)
        for row, values in enumerate(self.values):
            complete = np.flatnonzero(~np.isnan(means[row]))
            if not len(complete):
                continue
            best = complete[means[row, complete].argmax()]
            for column in complete:
                found[row, column] = paired_p_value(values[column], values[best]) >= LEVEL
        return found


@final
@dataclass(frozen=True)
class Outcome:
    """On which datasets one method is separated from another, above or below, and where not."""

    wins: tuple[str, ...]
    ties: tuple[str, ...]
    losses: tuple[str, ...]


def make_grid(
    results: Iterable[Result],
    datasets: Sequence[str],
    methods: Sequence[str],
    measure: Literal["auc", "average_precision", "seconds"] = "auc",
) -> Grid:
    """Arrange a measure of results, all of one k; of a repeated cell the last row counts."""
    rows = [row for row in latest(results) if row.dataset in datasets and row.method in methods]
    splits = sorted({row.split for row in rows})
    values = np.full((len(datasets), len(methods), len(splits)), np.nan)
    for row in rows:
        value: float | None = getattr(row, measure)
        if value is not None:
            at = datasets.index(row.dataset), methods.index(row.method), splits.index(row.split)
            values[at] = value
    return Grid.of_values(datasets, methods, values)


def paired_p_value(first: Floats, second: Floats) -> float:
    """Return the p-value of a paired t-test, of both sides, over what both have measured.

    Fewer than two pairs separate nothing: 1. A difference that is the same in all pairs has no
    variance: 1 if it is zero, else 0.
    """
    paired = ~np.isnan(first) & ~np.isnan(second)
    first, second = first[paired], second[paired]
    difference = first - second
    if np.allclose(difference, 0, rtol=0, atol=1e-12) or len(difference) < 2:
        return 1.0
    if np.allclose(difference, difference[0], rtol=0, atol=1e-12):
        return 0.0
    return float(ttest_rel(first, second).pvalue)


def signed_rank_p_value(first: Floats, second: Floats) -> float:
    """Return the p-value of a Wilcoxon signed-rank test, of both sides, over what both have.

    Differences of zero say nothing; where all are, nothing is separated: 1.
    """
    difference = (first - second)[~np.isnan(first) & ~np.isnan(second)]
    difference = difference[np.abs(difference) > 1e-12]
    return float(wilcoxon(difference).pvalue) if len(difference) else 1.0


def compare(grid: Grid, method: str, other: str) -> Outcome:
    """Return where `method` is separated from `other`, on the datasets where both are complete."""
    both = grid.only(methods=(method, other))
    kinds: dict[str, list[str]] = {"win": [], "tie": [], "loss": []}
    for dataset, means, values in zip(both.datasets, both.means, both.values, strict=True):
        if np.isnan(means).any():
            continue
        if paired_p_value(*values) >= LEVEL:
            kinds["tie"].append(dataset)
        else:
            kinds["win" if means[0] > means[1] else "loss"].append(dataset)
    return Outcome(tuple(kinds["win"]), tuple(kinds["tie"]), tuple(kinds["loss"]))
