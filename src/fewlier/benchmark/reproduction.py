"""The paper's experiments as jobs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import final

from fewlier.baselines import BASELINES
from fewlier.benchmark.baseline_jobs import measure_baseline
from fewlier.benchmark.detector_jobs import Kind, lambda_name, measure_alone, measure_stack
from fewlier.benchmark.jobs import Compute, Job
from fewlier.benchmark.measuring import Source
from fewlier.benchmark.protocol import EXPERIMENTS, Experiments
from fewlier.benchmark.results import (
    DEDUPLICATED,
    LAMBDAS,
    PAPER,
    THREE_VALIDATION,
    TIMES,
    Cell,
    Store,
    latest,
)
from fewlier.datasets import THREE_VALIDATION_ANOMALIES, list_datasets
from fewlier.errors import UserError

METHODS = ("LOF", "OCSVM", "IF", "VAE", "MADE", "KNN", "SVM", "RF", "NN", "Proposed", "fewlier")
"""The paper's ten methods in its order, and one that is not the paper's: the default detector."""

QUICK_TABLES = ("Parkinson", "HeartDisease", "Stamps")

RANKING = ("MADE", "Proposed")
"""Methods that train together, and that the variants of the experiments are about."""

# k of the paper's main table, which variants and training times are measured at.
_MAIN_K = 3


@final
@dataclass(frozen=True)
class Scope:
    """What to run: methods, numbers of labelled anomalies, splits, and where detectors train."""

    methods: tuple[str, ...] = METHODS
    anomalies: tuple[int, ...] = (1, 3, 5)
    n_splits: int = 10
    device: str = "auto"
    experiments: Experiments = EXPERIMENTS

    def __post_init__(self) -> None:
        """Refuse names and numbers that the experiments do not have."""
        for what, given, known in (
            ("A method", self.methods, METHODS),
            ("The number of labelled anomalies", self.anomalies, self._labelled),
        ):
            for value in given:
                if value not in known:
                    names = ", ".join(map(str, known))
                    raise UserError(f"{what} must be one of {names}; got {value!r}.")

    @property
    def _labelled(self) -> tuple[int, ...]:
        return self.experiments.splits.n_labelled

    def anomalies_of(self, source: Source) -> tuple[int, ...]:
        """Return the k of a table: not all have enough anomalies for each."""
        possible = self.experiments.splits.n_labelled_of(source.n_anomalies)
        return tuple(k for k in self.anomalies if k in possible)


def make_jobs(experiment: str, names: Sequence[str], scope: Scope, store: Store) -> list[Job]:
    """Return the jobs of an experiment on some tables, or without names on all it is about.

    All tables are read and checked first: one that is not here is an error before anything runs.
    `store` says which lambda is timed.
    """
    is_deduplicated = experiment == DEDUPLICATED
    entries = [e for e in list_datasets() if e.deduplicated is not None or not is_deduplicated]
    names = names or [entry.name for entry in entries]
    sources = [Source.find(name, deduplicated=is_deduplicated) for name in names]
    if experiment == TIMES:
        return _time_jobs(sources, scope, store)
    make = {
        PAPER: _paper_jobs,
        THREE_VALIDATION: _three_validation_jobs,
        DEDUPLICATED: _deduplicated_jobs,
    }[experiment]
    jobs = [job for source in sources for job in make(source, scope) if job.seeds]
    if not jobs:
        raise UserError(
            f"A table must have three times as many anomalies as are labelled; got "
            f"{', '.join(names)} with {' and '.join(map(str, scope.anomalies))} labelled."
        )
    return jobs


def _paper_jobs(source: Source, scope: Scope) -> Iterator[Job]:
    experiments, ks = scope.experiments, scope.anomalies_of(source)
    for method in (method for method in scope.methods if method in BASELINES):
        compute = partial(measure_baseline, source, experiments)
        for split in range(scope.n_splits):
            cells = [Cell(PAPER, source.name, method, k, split) for k in ks]
            yield _job(cells, source, experiments, compute, _baseline_cost(source, method))
    stacks: dict[Kind, tuple[str, ...]] = {"Proposed": RANKING, "VAE": ("VAE",)}
    for kind, together in (stacks | {"fewlier": ("fewlier",)}).items():
        methods = [method for method in together if method in scope.methods]
        cells = _cells(PAPER, source, methods, scope)
        if "Proposed" in methods:  # the models of its lambdas come with it
            cells += _cells(LAMBDAS, source, list(map(lambda_name, experiments.lambdas)), scope)
        yield _stack_job(cells, source, scope, kind)


def _three_validation_jobs(source: Source, scope: Scope) -> Iterator[Job]:
    """Validate on three anomalies whatever k is; with k = 3 nothing would change."""
    splits = THREE_VALIDATION_ANOMALIES
    anomalies = tuple(k for k in scope.anomalies if k != splits.validation_anomalies)
    experiments = replace(scope.experiments, splits=splits)
    variant = replace(scope, anomalies=anomalies, experiments=experiments)
    return _ranking_jobs(THREE_VALIDATION, source, variant)


def _deduplicated_jobs(source: Source, scope: Scope) -> Iterator[Job]:
    return _ranking_jobs(DEDUPLICATED, source, replace(scope, anomalies=(_MAIN_K,)))


def _ranking_jobs(experiment: str, source: Source, scope: Scope) -> Iterator[Job]:
    methods = [method for method in RANKING if method in scope.methods]
    yield _stack_job(_cells(experiment, source, methods, scope), source, scope, "Proposed")


def _time_jobs(sources: Sequence[Source], scope: Scope, store: Store) -> list[Job]:
    """Return the jobs that time one fit per table, with the lambda that Proposed chose there.

    They must run one at a time.
    """
    chosen = {
        row.dataset: float(row.value)
        for row in latest(store.read(PAPER))
        if (row.method, row.k, row.split) == ("Proposed", _MAIN_K, 0) and not row.reason
    }
    jobs = []
    for source in sources:
        if source.name not in chosen:
            raise UserError(
                f"Training times need the lambda that Proposed chose on {source.name}, split 0, "
                f"k = {_MAIN_K}; {store.path(PAPER)} has none. Run first: fewlier reproduce "
                f"--methods Proposed --tables {source.name}"
            )
        cell = Cell(TIMES, source.name, "Proposed", _MAIN_K, 0)
        compute = partial(measure_alone, source, scope.experiments, {cell: chosen[source.name]})
        jobs.append(_job([cell], source, scope.experiments, compute, 1.0))
    return jobs


def _cells(experiment: str, source: Source, methods: Sequence[str], scope: Scope) -> list[Cell]:
    return [
        Cell(experiment, source.name, method, k, split)
        for method in methods
        for k in scope.anomalies_of(source)
        for split in range(scope.n_splits)
    ]


def _stack_job(cells: Sequence[Cell], source: Source, scope: Scope, kind: Kind) -> Job:
    compute = partial(measure_stack, source, scope.experiments, kind, scope.device)
    return _job(cells, source, scope.experiments, compute, _stack_cost(source, cells))


def _job(
    cells: Sequence[Cell],
    source: Source,
    experiments: Experiments,
    compute: Compute,
    cost: float,
) -> Job:
    seeds = {cell: experiments.seed_of(cell.split) for cell in cells}
    return Job(seeds, source.sha256, compute, cost)


def _baseline_cost(source: Source, method: str) -> float:
    """Return about how many millions of operations a method takes."""
    is_quadratic = method in ("LOF", "OCSVM", "KNN", "SVM")
    return source.n_rows * source.n_columns * (source.n_rows if is_quadratic else 1000) / 1e6


def _stack_cost(source: Source, cells: Sequence[Cell]) -> float:
    """Return about how many millions of operations a stack takes; epochs are of bounded size."""
    return len(cells) * min(source.n_rows, 10_000) * (source.n_columns + 10) * 10_000 / 1e6
