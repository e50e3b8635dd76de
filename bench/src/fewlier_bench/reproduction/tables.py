"""The paper's tables, computed from result rows."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from fewlier_bench.data import list_datasets
from fewlier_bench.pages.footnotes import average_notes, gap_notes
from fewlier_bench.pages.printed import AVERAGE, PrintedColumn, PrintedTable, Value, known
from fewlier_bench.pages.statistics import Floats, Grid, make_grid
from fewlier_bench.reproduction.experiments import EXTRA, METHODS, RANKING, TIMES
from fewlier_bench.reproduction.published import (
    published_auc,
    published_average,
    published_datasets,
    setting_datasets,
)
from fewlier_bench.runs.results import Result, latest

_EXTRA_NOTE = (
    "†: fewlier's default detector, given the same rows. It is not one of the paper's methods, so "
    "it is left out of tests and ranks, and does not affect which tables are averaged."
)


def dataset_table() -> PrintedTable:
    """Return Table 1: rows, columns and anomalies of the tables; loading a table checks them."""
    pairs = [(entry.paper, published_datasets()[entry.name]) for entry in list_datasets()]
    n_rows = [Value(ours.n_rows, paper.n_rows) for ours, paper in pairs]
    n_columns = [Value(ours.n_columns, paper.n_columns) for ours, paper in pairs]
    n_anomalies = [Value(ours.n_anomalies, paper.n_anomalies) for ours, paper in pairs]
    rates = [Value(ours.n_anomalies / ours.n_rows, paper.anomaly_rate) for ours, paper in pairs]
    columns = (
        PrintedColumn("N", tuple(n_rows), 0, has_difference=False),
        PrintedColumn("D", tuple(n_columns), 0, has_difference=False),
        PrintedColumn("anomalies", tuple(n_anomalies), 0, has_difference=False),
        PrintedColumn("anomaly rate", tuple(rates), 3, has_difference=False),
    )
    rows = tuple(entry.name for entry in list_datasets())
    return PrintedTable("table_1", "Counts of the 16 tables", "the paper", rows, columns)


def auc_table(
    results: Sequence[Result],
    k: int,
    name: str,
    shown: Sequence[str] = METHODS,
    datasets: Sequence[str] | None = None,
) -> PrintedTable:
    """Return Table 2 or 3: mean AUCs, with `k` training anomalies, of the methods shown.

    Its rows are all tables of the setting, or the given ones.

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
            Value(known(mean), paper and paper.auc, bool(not_separated))
            for mean, paper, not_separated in zip(
                _means(grid, method), papers, is_bold, strict=True
            )
        ]
        average, printed = known(averages[method]), published_average(method, k, common)
        values.append(Value(average, printed, average is not None and method == highest))
        columns.append(PrintedColumn(_heading(method), tuple(values)))
    part = grid.only(methods=_with_extra(shown, results))
    notes = (*_extra_notes(results), *average_notes(common, datasets), *gap_notes(part, results, k))
    title = f"Mean test AUC with {k} training anomal{'y' if k == 1 else 'ies'}"
    return PrintedTable(name, title, "the paper", (*datasets, AVERAGE), tuple(columns), notes)


def averages_table(results: Sequence[Result], ks: Iterable[int]) -> PrintedTable:
    """Return the average AUC of each method, and its mean rank among the ten, for each k."""
    methods = _with_extra(METHODS, results)
    columns: list[PrintedColumn] = []
    notes = [*_extra_notes(results)]
    for k in ks:
        grid = setting_grid(results, k)
        common = grid.only(methods=METHODS).common
        averages = grid.only(common.datasets, methods).averages
        printed = [published_average(method, k, common.datasets) for method in methods]
        pairs = zip(averages, printed, strict=True)
        values = tuple(Value(known(ours), paper) for ours, paper in pairs)
        columns += [PrintedColumn(f"AUC, k = {k}", values), _rank_column(common, k, methods)]
        notes += [f"k = {k}: {n}" for n in average_notes(common.datasets, setting_datasets(k))]
    rows = tuple(_heading(method) for method in methods)
    title = "Average of the mean test AUCs, and mean rank among the ten methods"
    return PrintedTable("averages", title, "the paper", rows, tuple(columns), tuple(notes))


def variant_table(
    variant: Sequence[Result], main: Sequence[Result], ks: Iterable[int], name: str, title: str
) -> PrintedTable:
    """Return MADE and Proposed in a variant of the experiments, compared with the main run.

    Its rows are the tables that the variant has results of.
    """
    found = {row.dataset for row in variant}
    datasets = [dataset for dataset in published_datasets() if dataset in found]
    reference_rows = [replace(row, method=f"{row.method} in the main run") for row in main]
    references = [f"{method} in the main run" for method in RANKING]
    columns: list[PrintedColumn] = []
    notes: list[str] = []
    for k in ks:
        both = [row for row in (*variant, *reference_rows) if row.k == k]
        grid = make_grid(both, datasets, (*RANKING, *references))
        common, ran = grid.common, [name for name in datasets if name in setting_datasets(k)]
        for method, reference in zip(RANKING, references, strict=True):
            ours, theirs = (
                [*_means(grid, which), common.only(methods=[which]).averages[0]]
                for which in (method, reference)
            )
            pairs = zip(ours, theirs, strict=True)
            values = tuple(Value(known(value), known(other)) for value, other in pairs)
            columns.append(PrintedColumn(f"{method}, k = {k}", values))
        said = (
            *average_notes(common.datasets, ran, "the main run"),
            *gap_notes(grid.only(ran), both, k),
            *_paper_notes(k, common.datasets),
        )
        notes += [f"k = {k}: {note}" for note in said]
    rows = (*datasets, AVERAGE)
    return PrintedTable(name, title, "the main run", rows, tuple(columns), tuple(notes))


def _paper_notes(k: int, datasets: Sequence[str]) -> Iterable[str]:
    for method in RANKING:
        average = published_average(method, k, datasets)
        if average is not None:
            yield f"The paper's average of {method} over these tables is {average:.3f}."


def times_table(times: Iterable[Result], datasets: Sequence[str] | None = None) -> PrintedTable:
    """Return the seconds of one training of Proposed on each table, or on those that are given."""
    ours, paper = {row.dataset: row.seconds for row in latest(times)}, published_datasets()
    rows = tuple(paper if datasets is None else datasets)
    values = tuple(Value(ours.get(name), paper[name].training_seconds) for name in rows)
    column = PrintedColumn("seconds", values, 2, has_difference=False)
    title = "Seconds to train Proposed on one split with k = 3, on a CPU"
    return PrintedTable(TIMES, title, "the paper", rows, (column,))


def tables_of_run(results: Sequence[Result], ks: Sequence[int]) -> Iterator[PrintedTable]:
    """Yield, for each k, the mean AUCs of the tables and methods that have results."""
    found = _datasets_of(results)
    methods = {row.method for row in results}
    shown = [method for method in METHODS if method in methods]
    for k in ks:
        datasets = [name for name in found if name in setting_datasets(k)]
        if datasets:
            yield auc_table(results, k, f"k_{k}", shown, datasets)


def times_of_run(times: Sequence[Result]) -> PrintedTable:
    """Return the seconds of one training on each table that has them."""
    return times_table(times, _datasets_of(times))


def _datasets_of(results: Iterable[Result]) -> list[str]:
    """Return the tables that have results, in the paper's order."""
    found = {row.dataset for row in results}
    return [name for name in published_datasets() if name in found]


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


def _rank_column(common: Grid, k: int, methods: Sequence[str]) -> PrintedColumn:
    printed = [[published_auc(name, m, k) for m in METHODS] for name in common.datasets]
    aucs = np.array([[cell.auc if cell else np.nan for cell in row] for row in printed])
    aucs = aucs.reshape(len(printed), len(METHODS), 1)
    aucs[:, np.isnan(common.mean_ranks)] = np.nan  # ranked among those that have results here
    paper = Grid.of_values(common.datasets, METHODS, aucs).mean_ranks
    values = [Value(known(a), known(b)) for a, b in zip(common.mean_ranks, paper, strict=True)]
    values += [Value(None)] * (len(methods) - len(values))
    return PrintedColumn(f"rank, k = {k}", tuple(values), 1)


def _means(grid: Grid, method: str) -> Floats:
    means: Floats = grid.means[:, grid.methods.index(method)]
    return means
