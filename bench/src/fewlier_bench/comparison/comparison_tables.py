"""The few-label comparison as tables: what each method reaches, and where fewlier is ahead."""

from collections.abc import Iterator, Sequence

import numpy as np

from fewlier_bench.comparison.peer_jobs import DETECTORS, METHODS, OURS
from fewlier_bench.data.few_labels import CLEAN, CONTAMINATED, HIDDEN, N_DRAWS, UNSEEN
from fewlier_bench.pages.footnotes import gap_notes
from fewlier_bench.pages.printed import AVERAGE, PrintedColumn, PrintedTable, Value, known
from fewlier_bench.pages.statistics import Floats, Grid, compare, make_grid
from fewlier_bench.runs.results import LEFT_OUT, Result, latest

_WHERE = {
    CLEAN: "all other training rows are known to be normal",
    CONTAMINATED: f"{HIDDEN:.0%} of the unlabelled rows are hidden anomalies",
    UNSEEN: "tested on kinds of anomalies that nobody labelled",
}
SHORT = "short"
SHORT_KS = (0, 3, 10, 25)
N_BEST = 4  # peers in a short table
HALVES = {
    "": "",
    "_odd": ", over the tables in odd places by name",
    "_even": ", over the tables in even places by name",
}
"""Endings of the names of tables, and of their titles: all tables of data, or every other one."""


def half_of(names: Sequence[str], half: str) -> Sequence[str]:
    """Return the names in odd or even places, counted from 1, or all."""
    return names if not half else names[0 if half == "_odd" else 1 :: 2]


def short_tables(results: Sequence[Result]) -> Iterator[PrintedTable]:
    """Yield what fewlier and the best peers reach for some k, over all tables and over halves."""
    rows = [row for row in latest(results) if row.k in SHORT_KS]
    names = sorted({row.dataset for row in rows})
    for half in HALVES:
        kept = half_of(names, half)
        some = [row for row in rows if row.dataset in kept]
        if any(row.method == OURS and row.auc is not None for row in some):
            yield _short(some, half)


def _short(rows: Sequence[Result], half: str) -> PrintedTable:
    """Gather averages of fewlier, of the best peers with labels, and of the best without."""
    found: dict[str, dict[str, float | None]] = {}
    counts = []
    for k in SHORT_KS:
        some = [row for row in rows if row.k == k]
        grid = averaged(arrange(some, METHODS))
        precision = make_grid(some, grid.datasets, grid.methods, "average_precision")
        for heading, averages in (("AUC", grid.averages), ("AP", precision.averages)):
            found[f"{heading}, {labels(k)}"] = dict(
                zip(grid.methods, map(known, averages), strict=True)
            )
        counts += [f"{len(grid.datasets)} ({labels(k)})"] if grid.datasets else []

    def reached(method: str, *ks: int) -> float:
        return sum(found[f"AUC, {labels(k)}"].get(method) or 0.0 for k in ks)

    peers = [method for method in METHODS if method not in DETECTORS]
    best = sorted(peers, key=lambda method: -reached(method, *SHORT_KS[1:]))[:N_BEST]
    best += sorted(peers, key=lambda method: -reached(method, 0))[:1]
    shown = (OURS, *dict.fromkeys(method for method in best if reached(method, *SHORT_KS)))
    columns = tuple(
        bold_best(heading, [numbers.get(method) for method in shown])
        for heading, numbers in found.items()
        if numbers
    )
    title = f"Mean test AUC and average precision (AP) by number of labels{HALVES[half]}"
    notes = (f"Number of tables averaged: {', '.join(counts)}.",)
    return PrintedTable(f"{SHORT}{half}", title, "", shown, columns, notes)


def labels(k: int) -> str:
    """Say how many anomalies are labelled: k to train, and as many to validate."""
    return f"{2 * k} labels" if k else "no labels"


def numbers_of(table: PrintedTable, heading: str) -> dict[str, float | None]:
    """Return the numbers of a column by row."""
    (column,) = (column for column in table.columns if column.heading == heading)
    return dict(zip(table.rows, (value.ours for value in column.values), strict=True))


def bold_best(heading: str, numbers: Sequence[float | None]) -> PrintedColumn:
    """Return a column of numbers with the highest in bold."""
    best = max((number for number in numbers if number is not None), default=None)
    values = tuple(Value(number, is_bold=number == best is not None) for number in numbers)
    return PrintedColumn(heading, values, has_difference=False)


def summary_tables(results: Sequence[Result], experiment: str) -> Iterator[PrintedTable]:
    """Yield a table for each k: a row per method, all averages over the same tables."""
    for k in N_DRAWS[experiment]:
        rows = [row for row in latest(results) if row.k == k]
        if any(row.auc is not None for row in rows):
            yield summarise(rows, METHODS, f"{experiment}_k{k}", _title(experiment, k))


def detail_tables(results: Sequence[Result], experiment: str) -> Iterator[PrintedTable]:
    """Yield a table for each k: the mean AUC of each method on each table of data."""
    for k in N_DRAWS[experiment]:
        rows = [row for row in latest(results) if row.k == k]
        if any(row.auc is not None for row in rows):
            yield detail(rows, METHODS, f"{experiment}_k{k}_tables", _title(experiment, k))


def summarise(
    rows: Sequence[Result], methods: Sequence[str], name: str, title: str
) -> PrintedTable:
    """Return averages of methods, and where fewlier is ahead; the rows are of one k."""
    grid = arrange(rows, methods)
    common = averaged(grid)
    precision = make_grid(rows, grid.datasets, grid.methods, "average_precision")
    columns = [
        column_of("AUC", common.averages),
        column_of("AP", precision.only(common.datasets).averages),
        column_of("mean rank", common.mean_ranks, 1),
        *_outcomes(grid),
    ]
    notes = (*_average_note(grid), *gap_notes(grid, rows, rows[0].k), *_left_out(rows))
    if OURS in grid.methods:
        notes = (
            f"Wins, ties and losses count the tables on which {OURS} is better than the method, "
            "not separated from it, or worse, by a paired t-test of the AUC over splits (5 %).",
            *notes,
        )
    return PrintedTable(name, f"Averages with {title}", "", grid.methods, tuple(columns), notes)


def detail(rows: Sequence[Result], methods: Sequence[str], name: str, title: str) -> PrintedTable:
    """Return the mean AUC of each method on each table of data; the rows are of one k."""
    grid = arrange(rows, methods)
    bold, averages = grid.not_separated(), averaged(grid).averages
    columns = [
        PrintedColumn(
            method,
            (
                *(
                    Value(known(mean), is_bold=bool(is_bold))
                    for mean, is_bold in zip(grid.means[:, at], bold[:, at], strict=True)
                ),
                Value(known(averages[at]), is_bold=averages[at] == np.nanmax(averages)),
            ),
        )
        for at, method in enumerate(grid.methods)
    ]
    title, names = f"Mean test AUC on each table with {title}", (*grid.datasets, AVERAGE)
    return PrintedTable(name, title, "", names, tuple(columns), _average_note(grid))


def arrange(rows: Sequence[Result], methods: Sequence[str]) -> Grid:
    """Arrange the AUCs of all tables, and of these methods, that have any."""
    found = [row for row in rows if row.auc is not None]
    present = [method for method in methods if any(row.method == method for row in found)]
    return make_grid(rows, sorted({row.dataset for row in found}), present)


def averaged(grid: Grid) -> Grid:
    """Return the tables to average over: those where fewlier is complete, if it takes part.

    A method with a gap there has no average; it does not remove the table for the others.
    """
    if OURS not in grid.methods:
        return grid.common
    complete = grid.is_complete[:, grid.methods.index(OURS)]
    pairs = zip(grid.datasets, complete, strict=True)
    return grid.only([name for name, is_complete in pairs if is_complete])


def _outcomes(grid: Grid) -> Iterator[PrintedColumn]:
    if OURS not in grid.methods:
        return
    others = [None if m == OURS else compare(grid, OURS, m) for m in grid.methods]
    for kind in ("wins", "ties", "losses"):
        counts = [None if outcome is None else len(getattr(outcome, kind)) for outcome in others]
        yield PrintedColumn(kind, tuple(Value(n) for n in counts), 0, has_difference=False)


def _title(experiment: str, k: int) -> str:
    labelled = f"{2 * k} labelled anomalies" if k else "no labelled anomaly"
    return f"{labelled} (k = {k}); {_WHERE[experiment]}"


def _average_note(grid: Grid) -> tuple[str, ...]:
    names = averaged(grid).datasets
    if not names:
        who = OURS if OURS in grid.methods else "every method"
        return (f"There is no average: no table has all results of {who}.",)
    tables = "1 table" if len(names) == 1 else f"{len(names)} tables"
    return (f"Averages are over {tables}: {', '.join(names)}.",)


def _left_out(rows: Sequence[Result]) -> Iterator[str]:
    """Say which tables, or some splits of them, are left out and why."""
    tables: dict[str, dict[str, None]] = {}
    for row in rows:
        if row.reason.startswith(LEFT_OUT):
            tables.setdefault(row.reason.removeprefix(LEFT_OUT), {})[row.dataset] = None
    measured = {row.dataset for row in rows if row.auc is not None}
    for reason, names in tables.items():
        shown = [f"{name} (some splits)" if name in measured else name for name in names]
        yield f"Left out: {', '.join(shown)}: {reason}."


def column_of(heading: str, numbers: Floats, digits: int = 3) -> PrintedColumn:
    """Return a column of numbers that are compared with nothing."""
    values = tuple(Value(known(number)) for number in numbers)
    return PrintedColumn(heading, values, digits, has_difference=False)
