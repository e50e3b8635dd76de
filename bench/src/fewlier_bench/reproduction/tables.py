"""The paper's tables from results: what each cell holds. `rendering` writes them down."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from fewlier_bench.data import list_datasets
from fewlier_bench.pages.footnotes import average_notes, gap_notes
from fewlier_bench.pages.statistics import Floats, Grid, make_grid
from fewlier_bench.reproduction.experiments import EXTRA, METHODS, RANKING, TIMES
from fewlier_bench.reproduction.published import (
    published_auc,
    published_average,
    published_datasets,
    setting_datasets,
)
from fewlier_bench.runs.results import Result, latest

AVERAGE = "average"  # name of the row below a rule
_EXTRA_NOTE = (
    "†: fewlier's default detector, given the same rows. It is not one of the paper's methods, and "
    "takes no part in tests, in ranks or in the choice of tables to average over."
)


@final
@dataclass(frozen=True)
class Value:
    """A number, and what it is compared with; None where there is none."""

    ours: float | None
    reference: float | None = None
    is_bold: bool = False

    @property
    def difference(self) -> float | None:
        """Ours minus the reference."""
        if self.ours is None or self.reference is None:
            return None
        return self.ours - self.reference


@final
@dataclass(frozen=True)
class Column:
    """Values of one kind, shown with so many digits after the point."""

    heading: str
    values: tuple[Value, ...]
    digits: int = 3
    has_difference: bool = True


@final
@dataclass(frozen=True)
class Table:
    """A table to be written down: a name per row, and columns with a value per row.

    `name` is that of its files, and `reference` says what values are compared with.
    """

    name: str
    title: str
    reference: str
    rows: tuple[str, ...]
    columns: tuple[Column, ...]
    notes: tuple[str, ...] = ()

    @property
    def compared(self) -> str:
        """What stands beside each value."""
        is_shown = any(column.has_difference for column in self.columns)
        return f"{self.reference}'s{', and the difference' if is_shown else ''}"


def dataset_table() -> Table:
    """Return Table 1: rows, columns and anomalies of the tables; loading a table checks them."""
    pairs = [(entry.paper, published_datasets()[entry.name]) for entry in list_datasets()]
    n_rows = [Value(ours.n_rows, paper.n_rows) for ours, paper in pairs]
    n_columns = [Value(ours.n_columns, paper.n_columns) for ours, paper in pairs]
    n_anomalies = [Value(ours.n_anomalies, paper.n_anomalies) for ours, paper in pairs]
    rates = [Value(ours.n_anomalies / ours.n_rows, paper.anomaly_rate) for ours, paper in pairs]
    columns = (
        Column("N", tuple(n_rows), 0, has_difference=False),
        Column("D", tuple(n_columns), 0, has_difference=False),
        Column("anomalies", tuple(n_anomalies), 0, has_difference=False),
        Column("anomaly rate", tuple(rates), 3, has_difference=False),
    )
    rows = tuple(entry.name for entry in list_datasets())
    return Table("table_1", "Counts of the 16 tables", "the paper", rows, columns)


def auc_table(
    results: Sequence[Result],
    k: int,
    name: str,
    shown: Sequence[str] = METHODS,
    datasets: Sequence[str] | None = None,
) -> Table:
    """Return Table 2 or 3: mean AUCs, with `k` training anomalies, of the methods shown.

    Its rows are all tables of the setting, or those of them that are given.

    The t-tests behind bold type are among all ten methods, and so is the choice of tables that the
    average is over. Of the averages, the highest is bold.
    """
    datasets = setting_datasets(k) if datasets is None else datasets
    grid = setting_grid(results, k).only(datasets)
    tested = grid.only(methods=METHODS)
    bold, common = tested.not_separated(), tested.common.datasets
    averages = dict(zip(grid.methods, grid.only(common).averages, strict=True))
    highest = max(METHODS, key=lambda method: np.nan_to_num(averages[method]))
    columns = []
    for method in _with_extra(shown, results):
        is_bold = bold[:, METHODS.index(method)] if method in METHODS else [False] * len(bold)
        papers = [published_auc(dataset, method, k) for dataset in datasets]
        values = [
            Value(_known(mean), paper and paper.auc, bool(not_separated))
            for mean, paper, not_separated in zip(
                _means(grid, method), papers, is_bold, strict=True
            )
        ]
        average, printed = _known(averages[method]), published_average(method, k, common)
        values.append(Value(average, printed, average is not None and method == highest))
        columns.append(Column(_heading(method), tuple(values)))
    part = grid.only(methods=_with_extra(shown, results))
    notes = (*_extra_notes(results), *average_notes(common, datasets), *gap_notes(part, results, k))
    title = f"Mean test AUC with {k} training anomal{'y' if k == 1 else 'ies'}"
    return Table(name, title, "the paper", (*datasets, AVERAGE), tuple(columns), notes)


def averages_table(results: Sequence[Result], ks: Iterable[int]) -> Table:
    """Return the average AUC of each method, and its mean rank among the ten, for each k."""
    methods = _with_extra(METHODS, results)
    columns: list[Column] = []
    notes = [*_extra_notes(results)]
    for k in ks:
        grid = setting_grid(results, k)
        common = grid.only(methods=METHODS).common
        averages = grid.only(common.datasets, methods).averages
        printed = [published_average(method, k, common.datasets) for method in methods]
        pairs = zip(averages, printed, strict=True)
        values = tuple(Value(_known(ours), paper) for ours, paper in pairs)
        columns += [Column(f"AUC, k = {k}", values), _rank_column(common, k, methods)]
        notes += [f"k = {k}: {n}" for n in average_notes(common.datasets, setting_datasets(k))]
    rows = tuple(_heading(method) for method in methods)
    title = "Average of the mean test AUCs, and mean rank among the ten methods"
    return Table("averages", title, "the paper", rows, tuple(columns), tuple(notes))


def variant_table(
    variant: Sequence[Result], main: Sequence[Result], ks: Iterable[int], name: str, title: str
) -> Table:
    """Return MADE and Proposed in a variant of the experiments, beside the experiments themselves.

    Its rows are the tables that the variant has results of.
    """
    found = {row.dataset for row in variant}
    datasets = [dataset for dataset in published_datasets() if dataset in found]
    beside = [replace(row, method=f"{row.method} in the main run") for row in main]
    references = [f"{method} in the main run" for method in RANKING]
    columns: list[Column] = []
    notes: list[str] = []
    for k in ks:
        both = [row for row in (*variant, *beside) if row.k == k]
        grid = make_grid(both, datasets, (*RANKING, *references))
        common, ran = grid.common, [name for name in datasets if name in setting_datasets(k)]
        for method, reference in zip(RANKING, references, strict=True):
            ours, theirs = (
                [*_means(grid, which), common.only(methods=[which]).averages[0]]
                for which in (method, reference)
            )
            pairs = zip(ours, theirs, strict=True)
            values = tuple(Value(_known(value), _known(other)) for value, other in pairs)
            columns.append(Column(f"{method}, k = {k}", values))
        said = (
            *average_notes(common.datasets, ran, "the main run"),
            *gap_notes(grid.only(ran), both, k),
            *_paper_notes(k, common.datasets),
        )
        notes += [f"k = {k}: {note}" for note in said]
    rows = (*datasets, AVERAGE)
    return Table(name, title, "the main run", rows, tuple(columns), tuple(notes))


def _paper_notes(k: int, datasets: Sequence[str]) -> Iterable[str]:
    for method in RANKING:
        average = published_average(method, k, datasets)
        if average is not None:
            yield f"The paper's average of {method} over these tables is {average:.3f}."


def times_table(times: Iterable[Result], datasets: Sequence[str] | None = None) -> Table:
    """Return the seconds of one training of Proposed on each table, or on those that are given."""
    ours, paper = {row.dataset: row.seconds for row in latest(times)}, published_datasets()
    rows = tuple(paper if datasets is None else datasets)
    values = tuple(Value(ours.get(name), paper[name].training_seconds) for name in rows)
    column = Column("seconds", values, 2, has_difference=False)
    title = "Seconds to train Proposed on one split with k = 3, on a CPU"
    return Table(TIMES, title, "the paper", rows, (column,))


def setting_grid(results: Iterable[Result], k: int) -> Grid:
    """Return the AUCs, with `k` training anomalies, of the paper's methods and the extra one."""
    rows = [row for row in results if row.k == k]
    return make_grid(rows, setting_datasets(k), (*METHODS, EXTRA))


def _with_extra(methods: Sequence[str], results: Iterable[Result]) -> tuple[str, ...]:
    is_there = any(row.method == EXTRA for row in results)
    return (*methods, EXTRA) if is_there else tuple(methods)


def _extra_notes(results: Iterable[Result]) -> tuple[str, ...]:
    return (_EXTRA_NOTE,) if _with_extra((), results) else ()


def _heading(method: str) -> str:
    return f"{method} †" if method == EXTRA else method


def _rank_column(common: Grid, k: int, methods: Sequence[str]) -> Column:
    printed = [[published_auc(name, m, k) for m in METHODS] for name in common.datasets]
    aucs = np.array([[cell.auc if cell else np.nan for cell in row] for row in printed])
    aucs = aucs.reshape(len(printed), len(METHODS), 1)
    aucs[:, np.isnan(common.mean_ranks)] = np.nan  # ranked among those that have results here
    paper = Grid.of_values(common.datasets, METHODS, aucs).mean_ranks
    values = [Value(_known(a), _known(b)) for a, b in zip(common.mean_ranks, paper, strict=True)]
    values += [Value(None)] * (len(methods) - len(values))
    return Column(f"rank, k = {k}", tuple(values), 1)


def _means(grid: Grid, method: str) -> Floats:
    means: Floats = grid.means[:, grid.methods.index(method)]
    return means


def _known(number: float) -> float | None:
    return None if np.isnan(number) else float(number)
