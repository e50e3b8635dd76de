"""OCSVM of the paper's experiment on a large table, with the whole kernel matrix in memory.

    fewlier-bench kernel-in-memory --table KDDCup99 --splits 0 1 2 --results DIR

`fewlier-bench reproduce` computes the same rows, in minutes per fit on KDDCup99: libsvm computes
its kernel values one by one, and again when a cache has dropped them. Here they are computed once
per gamma, in large blocks, and handed over as a matrix of n x n doubles: 19 GB for the 48,474
normal rows of KDDCup99 that train. There is one such matrix at a time. Rows are appended to
DIR/paper.csv after each split, those that are there already are not computed again, and
failures are.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import final

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from fewlier_bench.methods.baselines import BASELINES, Baseline, FittedBaseline, Labels, Values
from fewlier_bench.reproduction.baseline_jobs import measure_baseline
from fewlier_bench.reproduction.experiments import PAPER
from fewlier_bench.reproduction.paper_jobs import make_jobs, make_scope
from fewlier_bench.runs.execution import execute
from fewlier_bench.runs.measuring import Source
from fewlier_bench.runs.results import Store
from fewlier_bench.studies.grid import make_parser

METHOD = "OCSVM"
BLOCK = 1000  # rows of the kernel matrix that are computed at once


@final
@dataclass(frozen=True, eq=False)
class Expansion:
    """What scoring needs of a fit: rows (n, d) that support it, and their weights (n,)."""

    gamma: float
    rows: Values
    weights: Values

    def score_samples(self, X: Values) -> Values:
        """Return the weighted sum of kernel values of each row, as `OneClassSVM` does."""
        # Equal rows must stay ties in the AUC, but a product of matrices rounds by position.
        distinct, where = np.unique(X, axis=0, return_inverse=True)
        parts = [
            rbf_kernel(distinct[block], self.rows, self.gamma) @ self.weights
            for block in blocks(len(distinct))
        ]
        return np.concatenate(parts)[where.ravel()]


def blocks(n: int) -> Iterator[slice]:
    """Cut n rows into blocks."""
    for start in range(0, n, BLOCK):
        yield slice(start, start + BLOCK)


def fit_in_memory(name: str, X: Values, y: Labels, seed: int) -> list[FittedBaseline]:  # noqa: ARG001
    """Do what `fit_candidates` does for OCSVM, which draws no random numbers."""
    baseline, X = BASELINES[name], X[y == 0]
    kernel = np.empty((len(X), len(X)))
    return [_fit(baseline, gamma, X, kernel) for gamma in baseline.grid]


def _fit(baseline: Baseline, gamma: float, X: Values, kernel: Values) -> FittedBaseline:
    for block in blocks(len(X)):
        kernel[block] = rbf_kernel(X[block], X, gamma)
    fitted = baseline.make(kernel="precomputed").fit(kernel)
    return FittedBaseline(
        baseline, gamma, Expansion(gamma, X[fitted.support_], fitted.dual_coef_[0])
    )


def run(table: str, splits: list[int], results: Path) -> None:
    """Compute the rows of some splits that are not in the folder yet."""
    source, store, scope = Source.find(table), Store(results), make_scope(PAPER, methods=[METHOD])
    compute = partial(measure_baseline, source, scope.protocol, fit=fit_in_memory)
    jobs = [
        replace(job, compute=compute)
        for job in make_jobs(scope, [source], store)
        if job.cells[0].split in splits
    ]
    execute(
        jobs,
        store,
        workers=1,
        retry=True,
        on_progress=lambda share: print(f"{share:.0%}", flush=True),
    )


def main(words: Sequence[str]) -> None:
    """Run the command."""
    parser = make_parser(__name__, __doc__)
    parser.add_argument("--table", required=True)
    parser.add_argument("--splits", type=int, nargs="+", default=list(range(10)))
    parser.add_argument("--results", type=Path, required=True)
    run(**vars(parser.parse_args(words)))
