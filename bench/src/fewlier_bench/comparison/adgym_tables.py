"""fewlier beside ADGym's published methods, as tables: averages, wins and losses, each table."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from fewlier_bench.comparison.adgym_jobs import DETECTORS
from fewlier_bench.comparison.adgym_published import published_methods, published_results
from fewlier_bench.comparison.comparison_tables import (
    arrange,
    averaged,
    bold_best,
    column_of,
    detail,
    numbers_of,
    summarise,
)
from fewlier_bench.comparison.peer_jobs import OURS
from fewlier_bench.data.adgym import ADGYM, LABELS
from fewlier_bench.pages.printed import PrintedTable
from fewlier_bench.pages.statistics import Grid, make_grid, signed_rank_p_value
from fewlier_bench.runs.results import Result, latest

SHORT, _ELSEWHERE, _EACH = "short", "_elsewhere", "_tables"
N_BEST = 5  # published methods in the short table
_AUC, _AP, _P_AUC, _P_AP = "AUC", "AP", "p AUC", "p AP"
_P_NOTE = (
    f"{_P_AUC}, {_P_AP}: two-sided Wilcoxon signed-rank tests of the method against {OURS}, over "
    "the tables' mean AUC and average precision (AP)."
)


def table_names() -> list[str]:
    """Return the names of all tables that there may be."""
    names = [f"labels_{k}" for k in LABELS]
    return [SHORT, *(f"{name}{which}" for name in names for which in ("", _ELSEWHERE, _EACH))]


def all_tables(results: Sequence[Result]) -> Iterator[PrintedTable]:
    """Yield the tables of a page."""
    summaries = list(summary_tables(results))
    short = short_table(results, summaries)
    if short is not None:
        yield short
    yield from summaries
    yield from detail_tables(results)


def summary_tables(results: Sequence[Result]) -> Iterator[PrintedTable]:
    """Yield two tables for each number of labels: all tables of data, and those not in dev."""
    for k, rows in _by_labels(results).items():
        yield _summary(rows, f"labels_{k}", _title(k))
        others = [row for row in rows if not ADGYM[row.dataset].is_dev]
        if others:
            title = f"{_title(k)}, without the tables in dev"
            yield _summary(others, f"labels_{k}{_ELSEWHERE}", title)


def detail_tables(results: Sequence[Result]) -> Iterator[PrintedTable]:
    """Yield a table for each number of labels: the mean AUC of each method on each table."""
    for k, rows in _by_labels(results).items():
        yield detail(rows, _methods(), f"labels_{k}{_EACH}", _title(k))


def short_table(
    results: Sequence[Result], summaries: Sequence[PrintedTable]
) -> PrintedTable | None:
    """Gather from summaries the averages of fewlier and of the best published methods.

    Methods with a gap take no part; without an average of fewlier there is no table.
    """
    tables = {table.name: table for table in summaries}
    labels = [k for k in LABELS if f"labels_{k}" in tables]
    columns = {
        f"{heading}{mark} {k}": _numbers(tables.get(f"labels_{k}{which}"), heading)
        for heading, mark, which in ((_AUC, "", ""), (_AP, "", ""), (_AUC, "*", _ELSEWHERE))
        for k in labels
    }
    complete = [m for m in _methods() if all(m in numbers for numbers in columns.values())]
    if OURS not in complete:
        return None
    best = sorted(
        set(complete) - set(DETECTORS),
        key=lambda method: -sum(columns[f"{_AUC} {k}"][method] for k in labels),
    )
    shown = (*(method for method in complete if method in DETECTORS), *best[:N_BEST])
    title = "Mean test AUC and average precision (AP) by number of labelled anomalies"
    note = (
        f"Averages are over {_n_tables(results)} tables; AUC* leaves out those on which {OURS}'s "
        "settings were chosen (dev)."
    )
    printed = (bold_best(name, [found[m] for m in shown]) for name, found in columns.items())
    return PrintedTable(SHORT, title, "", shown, tuple(printed), (note,))


def _by_labels(results: Sequence[Result]) -> dict[int, list[Result]]:
    """Return the rows of each number of labels, with those published of the same splits."""
    rows = latest(results)
    measured = {(row.dataset, row.k, row.split) for row in rows}
    published = [r for r in published_results() if (r.dataset, r.k, r.split) in measured]
    both = [*(row for row in rows if row.method in DETECTORS), *published]
    groups = {k: [row for row in both if row.k == k] for k in LABELS}
    return {k: group for k, group in groups.items() if group}


def _summary(rows: Sequence[Result], name: str, title: str) -> PrintedTable:
    """Add to averages, wins and losses the tests of fewlier against each method over tables."""
    table = summarise(rows, _methods(), name, title)
    if OURS not in table.rows:
        return table
    auc = averaged(arrange(rows, _methods()))
    precision = make_grid(rows, auc.datasets, auc.methods, "average_precision")
    columns = [
        column_of(heading, np.array([_p_value(grid, method) for method in grid.methods]))
        for heading, grid in ((_P_AUC, auc), (_P_AP, precision))
    ]
    return replace(table, columns=(*table.columns, *columns), notes=(_P_NOTE, *table.notes))


def _p_value(grid: Grid, method: str) -> float:
    """Compare fewlier with a method over tables; NaN for itself."""
    if method == OURS:
        return np.nan
    ours, other = grid.only(methods=(OURS, method)).means.T
    return signed_rank_p_value(ours, other)


def _n_tables(results: Sequence[Result]) -> str:
    """Say how many tables of data are averaged, which may depend on the number of labels."""
    groups = _by_labels(results).values()
    counts = [len(averaged(arrange(rows, _methods())).datasets) for rows in groups]
    return " to ".join(dict.fromkeys(map(str, (min(counts), max(counts)))))


def _numbers(table: PrintedTable | None, heading: str) -> dict[str, float]:
    """Return the numbers of a column by row, without gaps."""
    found = {} if table is None else numbers_of(table, heading)
    return {name: number for name, number in found.items() if number is not None}


def _methods() -> tuple[str, ...]:
    return (*DETECTORS, *published_methods())


def _title(k: int) -> str:
    return f"{k} labelled anomalies"
