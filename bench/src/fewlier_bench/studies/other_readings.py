"""Comparison methods as the paper may have meant them, where its words allow another reading.

    fewlier-bench other-readings run --results results/reproduction --workers 8
    fewlier-bench other-readings show results/reproduction

- LOF fitted to training and scored rows together: scikit-learn's could not score new rows before
  version 0.20, of September 2018.
- OCSVM with the kernel's hyper-parameter as a squared width h of exp(-|x - x'|^2 / h), so that
  gamma = 1 / h is from 1 to 1000.
- RF with the last instead of the first of equal validation AUCs, that is, more trees.

Three training anomalies, all tables but KDDCup99, the splits and the choice of
`fewlier-bench reproduce`.
Rows are appended to RESULTS/other_readings.csv; those that are there are not computed again.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import final

import numpy as np
from sklearn.neighbors import LocalOutlierFactor

from fewlier_bench.data import list_datasets
from fewlier_bench.methods.baselines import (
    BASELINES,
    FittedBaseline,
    Labels,
    Values,
    fit_candidates,
)
from fewlier_bench.reproduction.baseline_jobs import measure_baseline
from fewlier_bench.reproduction.experiments import PAPER
from fewlier_bench.reproduction.paper_jobs import make_jobs, make_scope
from fewlier_bench.reproduction.published import published_average
from fewlier_bench.runs.execution import execute
from fewlier_bench.runs.jobs import Job
from fewlier_bench.runs.measuring import Source
from fewlier_bench.runs.results import Store, latest
from fewlier_bench.studies.grid import make_parser

EXPERIMENT = "other_readings"
LEFT_OUT = "KDDCup99"  # an hour of fits


@final
@dataclass(frozen=True, eq=False)
class AmongTheScored:
    """LOF of rows within a table of training rows (n, d) and themselves."""

    n_neighbors: int
    training: Values

    def score_samples(self, X: Values) -> Values:
        """Return minus the local outlier factor of each row."""
        together = LocalOutlierFactor(n_neighbors=self.n_neighbors)
        together.fit(np.concatenate([self.training, X]))
        factors: Values = together.negative_outlier_factor_
        return factors[len(self.training) :]


def lof(name: str, X: Values, y: Labels, seed: int) -> list[FittedBaseline]:  # noqa: ARG001
    """Keep the training rows for when other rows are scored."""
    baseline, X = BASELINES[name], X[y == 0]
    values = [value for value in baseline.grid if value < len(X)]
    return [FittedBaseline(baseline, v, AmongTheScored(int(v), X)) for v in values]


def ocsvm(name: str, X: Values, y: Labels, seed: int) -> list[FittedBaseline]:  # noqa: ARG001
    """Fit with the inverse of each value of the grid."""
    baseline, X = BASELINES[name], X[y == 0]
    gammas = [1 / width for width in baseline.grid]
    return [FittedBaseline(baseline, g, baseline.make(gamma=g).fit(X)) for g in gammas]


def rf(name: str, X: Values, y: Labels, seed: int) -> list[FittedBaseline]:
    """Turn the candidates round, since the first of equals is chosen."""
    return fit_candidates(name, X, y, seed)[::-1]


READINGS: dict[str, Callable[..., list[FittedBaseline]]] = {"LOF": lof, "OCSVM": ocsvm, "RF": rf}


def jobs_of(method: str, sources: list[Source], store: Store) -> list[Job]:
    """Return the paper's jobs of a method with another reading."""
    scope = make_scope(PAPER, methods=[method], anomalies=[3])
    return [
        replace(
            job,
            seeds={cell._replace(experiment=EXPERIMENT): seed for cell, seed in job.seeds.items()},
            compute=partial(measure_baseline, source, scope.protocol, fit=READINGS[method]),
        )
        for source in sources
        for job in make_jobs(scope, [source], store)
    ]


def run(arguments: argparse.Namespace) -> None:
    """Compute the rows that are not in the folder yet."""
    sources = [Source.find(entry.name) for entry in list_datasets() if entry.name != LEFT_OUT]
    store = Store(arguments.results)
    jobs = [job for method in READINGS for job in jobs_of(method, sources, store)]
    execute(jobs, store, workers=arguments.workers, retry=True)


def show(arguments: argparse.Namespace) -> None:
    """Print averages over the tables: this reading, the reproduction's, the paper's."""
    store = Store(arguments.results)
    print("| method | this reading | as in Table 2 | the paper |\n|---|---:|---:|---:|")
    for method in READINGS:
        other, ours = (
            {
                (row.dataset, row.split): row.auc
                for row in latest(store.read(experiment))
                if row.method == method and row.k == 3 and not row.reason
            }
            for experiment in (EXPERIMENT, PAPER)
        )
        names = sorted({name for name, _ in other})
        paper = published_average(method, 3, names)
        means = [np.mean([values[cell] for cell in other]) for values in (other, ours)]
        print(f"| {method} | {means[0]:.3f} | {means[1]:.3f} | {paper:.3f} |")


def main(words: Sequence[str]) -> None:
    """Run the command."""
    parser = make_parser(__name__, __doc__)
    commands = parser.add_subparsers(required=True)
    runner = commands.add_parser("run", help="compute what is not in the folder yet")
    runner.set_defaults(command=run)
    runner.add_argument("--results", type=Path, required=True)
    runner.add_argument("--workers", type=int, default=1)
    shower = commands.add_parser("show", help="print the averages as Markdown")
    shower.set_defaults(command=show)
    shower.add_argument("results", type=Path)
    arguments = parser.parse_args(words)
    arguments.command(arguments)
