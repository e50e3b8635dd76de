"""The paper's experiments as jobs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import final

from fewlier.errors import UserError
from fewlier_bench.data import THREE_VALIDATION_ANOMALIES, list_datasets
from fewlier_bench.methods.baselines import BASELINES
from fewlier_bench.reproduction.baseline_jobs import measure_baseline
from fewlier_bench.reproduction.detector_jobs import Kind, measure_alone, measure_stack
from fewlier_bench.reproduction.experiments import (
    DEDUPLICATED,
    DESIGNS,
    EXTRA,
    LAMBDAS,
    PAPER,
    RANKING,
    THREE_VALIDATION,
    TIMES,
    Design,
    lambda_name,
)
from fewlier_bench.reproduction.protocol import PAPER_PROTOCOL, PaperProtocol
from fewlier_bench.runs.jobs import Compute, Job
from fewlier_bench.runs.measuring import Source
from fewlier_bench.runs.results import Cell, Store, latest

QUICK_TABLES = ("Parkinson", "HeartDisease", "Stamps")

# What is trained as one stack, and the methods that come of it.
_STACKS: dict[Kind, tuple[str, ...]] = {
    "Proposed": RANKING,
    "VAE": ("VAE",),
    EXTRA: (EXTRA,),
}


@final
@dataclass(frozen=True)
class PaperScope:
    """The part of an experiment to run, and where detectors train; `make_scope` checks it."""

    experiment: str
    design: Design
    device: str = "auto"
    protocol: PaperProtocol = PAPER_PROTOCOL

    def anomalies_of(self, source: Source) -> tuple[int, ...]:
        """Return the k of a table: not every table has enough anomalies for all."""
        possible = self.protocol.splits.n_labelled_of(source.n_anomalies)
        return tuple(k for k in self.design.anomalies if k in possible)

    def cells(self, source: Source, methods: Sequence[str], experiment: str = "") -> list[Cell]:
        """Return the cells of some methods on a table."""
        return [
            Cell(experiment or self.experiment, source.name, method, k, split)
            for method in methods
            for k in self.anomalies_of(source)
            for split in range(self.design.n_splits)
        ]


def make_scope(
    experiment: str,
    *,
    methods: Sequence[str] = (),
    anomalies: Sequence[int] = (),
    n_splits: int | None = None,
    device: str = "auto",
) -> PaperScope:
    """Choose methods, numbers of anomalies and splits of an experiment; the default is all."""
    design = DESIGNS[experiment]
    _check("A method", methods, design.methods, experiment)
    _check("The number of labelled anomalies", anomalies, design.anomalies, experiment)
    _check("The number of splits", [n_splits or 1], range(1, design.n_splits + 1), experiment)
    chosen = Design(
        tuple(methods) or design.methods,
        tuple(anomalies) or design.anomalies,
        n_splits or design.n_splits,
    )
    return PaperScope(experiment, chosen, device)


def _check(what: str, given: Sequence[object], known: Sequence[object], experiment: str) -> None:
    for value in given:
        if value not in known:
            names = ", ".join(map(str, known))
            raise UserError(
                f"{what} must be one of {names} in the experiment '{experiment}'; got {value}."
            )


def find_sources(experiment: str, names: Sequence[str] = ()) -> list[Source]:
    """Read and check the tables of an experiment, or the named ones, before anything runs."""
    is_deduplicated = experiment == DEDUPLICATED
    entries = [e for e in list_datasets() if e.deduplicated is not None or not is_deduplicated]
    names = names or [entry.name for entry in entries]
    return [Source.find(name, deduplicated=is_deduplicated) for name in names]


def make_jobs(scope: PaperScope, sources: Sequence[Source], store: Store) -> list[Job]:
    """Return the jobs that fill the cells; `store` knows which lambdas are to be timed."""
    if scope.experiment == TIMES:
        return [_time_job(scope, source, store) for source in sources]
    if scope.experiment == THREE_VALIDATION:
        protocol = replace(scope.protocol, splits=THREE_VALIDATION_ANOMALIES)
        scope = replace(scope, protocol=protocol)
    jobs = (
        job
        for source in sources
        for job in (*_baseline_jobs(scope, source), *_stack_jobs(scope, source))
    )
    return [job for job in jobs if job.seeds]


def _baseline_jobs(scope: PaperScope, source: Source) -> Iterator[Job]:
    """Yield a job per split: fits may be shared by the numbers of labelled anomalies."""
    compute = partial(measure_baseline, source, scope.protocol)
    for method in (method for method in scope.design.methods if method in BASELINES):
        for split in range(scope.design.n_splits):
            cells = [cell for cell in scope.cells(source, [method]) if cell.split == split]
            yield _job(scope, source, cells, compute, _baseline_cost(source, method))


def _stack_jobs(scope: PaperScope, source: Source) -> Iterator[Job]:
    """Yield a job per kind of detector: all of its splits train as one stack."""
    for kind, together in _STACKS.items():
        methods = [method for method in together if method in scope.design.methods]
        cells = scope.cells(source, methods)
        if scope.experiment == PAPER and "Proposed" in methods:  # they come with it
            lambdas = list(map(lambda_name, scope.protocol.lambdas))
            cells += scope.cells(source, lambdas, LAMBDAS)
        compute = partial(measure_stack, source, scope.protocol, kind, scope.device)
        yield _job(scope, source, cells, compute, _stack_cost(source, cells))


def _time_job(scope: PaperScope, source: Source, store: Store) -> Job:
    (cell,) = scope.cells(source, ["Proposed"])
    chosen = [
        float(row.value)
        for row in latest(store.read(PAPER))
        if (row.dataset, row.method, row.k, row.split) == cell[1:] and not row.reason
    ]
    if not chosen:
        raise UserError(
            f"Training times must have the lambda that Proposed chose on {source.name} with "
            f"k = {cell.k} in split {cell.split}; {store.path(PAPER)} has none. Run first: "
            f"fewlier-bench reproduce --methods Proposed --tables {source.name}"
        )
    compute = partial(measure_alone, source, scope.protocol, {cell: chosen[0]})
    return _job(scope, source, [cell], compute, source.n_rows)


def _job(
    scope: PaperScope, source: Source, cells: Sequence[Cell], compute: Compute, cost: float
) -> Job:
    seeds = {cell: scope.protocol.seed_of(cell.split) for cell in cells}
    return Job(seeds, source.sha256, compute, cost)


def _baseline_cost(source: Source, method: str) -> float:
    """Return about how many operations a method takes; those with a kernel square the rows."""
    is_quadratic = method in ("LOF", "OCSVM", "KNN", "SVM")
    return source.n_rows * source.n_columns * (source.n_rows if is_quadratic else 1000)


def _stack_cost(source: Source, cells: Sequence[Cell]) -> float:
    """Return about how many operations a stack takes; the size of an epoch is bounded."""
    return len(cells) * min(source.n_rows, 10_000) * (source.n_columns + 10) * 1e4
