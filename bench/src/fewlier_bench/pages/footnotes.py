"""What is said of results: how they were computed, why a cell is empty, what an average is over."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

import numpy as np

from fewlier_bench.pages.rendering import fold, to_list
from fewlier_bench.pages.statistics import Grid
from fewlier_bench.runs.results import Result, latest

_MAX_CELLS = 6  # named in one note
_MAX_LETTERS = 200  # of a reason


def describe_run(experiments: Mapping[str, Sequence[Result]]) -> str:
    """Say what was computed when, where and with which versions."""
    rows = list(chain.from_iterable(experiments.values()))
    counts = ", ".join(f"{len(rows)} of `{name}`" for name, rows in experiments.items() if rows)
    dates = sorted({row.date for row in rows})
    cells = [row for group in experiments.values() for row in latest(group)]
    failed = sum(row.has_failed for row in cells)
    left_out = sum(bool(row.reason) for row in cells) - failed
    also = f"; {left_out} cells were left out by the rules" if left_out else ""
    lines = [
        f"Rows: {counts}; {failed or 'no'} cells failed{also}.",
        f"Dates: {dates[0]}" + (f" to {dates[-1]}." if len(dates) > 1 else "."),
        f"Machines: {_each(row.machine for row in rows)}.",
        f"Versions: {_each(row.versions for row in rows)}.",
    ]
    return fold("How these results were computed: rows, dates, machines, versions", to_list(lines))


def average_notes(
    common: Sequence[str], datasets: Sequence[str], reference: str = "the paper"
) -> tuple[str, ...]:
    """Say which tables an average is over, unless it is over all of them."""
    if len(common) == len(datasets):
        return ()
    if not common:
        return ("There is no average: no table has results of every method.",)
    return (
        f"The average is over the {len(common)} of {len(datasets)} tables where every method has "
        f"results, {reference}'s average too: {', '.join(common)}.",
    )


def gap_notes(grid: Grid, results: Sequence[Result], k: int) -> tuple[str, ...]:
    """Say why cells are empty, each reason once, and which tables have fewer splits than others."""
    cells: dict[str, list[str]] = {}
    failures = _failures(results, k)
    for (row, column), is_complete in np.ndenumerate(grid.is_complete):
        dataset, method = grid.datasets[row], grid.methods[column]
        reason = failures.get((dataset, method)) or _missing(grid, row, column)
        if not is_complete and (grid.expected[row].any() or (dataset, method) in failures):
            cells.setdefault(reason, []).append(f"{method} on {dataset}")
    notes = [f"–: {_listed(names)}: {reason}." for reason, names in cells.items()]
    most, counts = grid.expected.shape[1], grid.expected.sum(axis=1)
    pairs = list(zip(grid.datasets, counts, strict=True))
    none = [dataset for dataset, count in pairs if count == 0]
    fewer = [f"{dataset} ({count})" for dataset, count in pairs if 0 < count < most]
    notes += [f"No results: {', '.join(none)}."] if none else []
    notes += [f"Fewer than {most} splits: {', '.join(fewer)}."] if fewer else []
    return tuple(notes)


def _failures(results: Sequence[Result], k: int) -> dict[tuple[str, str], str]:
    reasons: dict[tuple[str, str], list[str]] = {}
    for row in latest(results):
        if row.k == k and row.reason:
            reason = " ".join(row.reason.split())[:_MAX_LETTERS].rstrip(".")
            found = reasons.setdefault((row.dataset, row.method), [])
            found += [] if reason in found else [reason]
    return {cell: "; ".join(found) for cell, found in reasons.items()}


def _missing(grid: Grid, row: int, column: int) -> str:
    n_splits = grid.expected[row].sum()
    n_missing = n_splits - (~np.isnan(grid.values[row, column])).sum()
    return (
        "no result" if n_missing == n_splits else f"no result in {n_missing} of {n_splits} splits"
    )


def _listed(names: Sequence[str]) -> str:
    rest = f" and {len(names) - _MAX_CELLS} more" if len(names) > _MAX_CELLS else ""
    return ", ".join(names[:_MAX_CELLS]) + rest


def _each(values: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(filter(None, values)))
