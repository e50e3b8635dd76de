"""Accuracy against seconds, for all methods: a figure, and what must be said of it."""

from collections.abc import Iterator, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fewlier_bench.comparison.comparison_tables import arrange, averaged
from fewlier_bench.comparison.peer_jobs import DETECTORS, METHODS
from fewlier_bench.pages.drawing import GREY, OURS, WIDTH, styled
from fewlier_bench.pages.rendering import to_list
from fewlier_bench.pages.statistics import Floats, make_grid
from fewlier_bench.runs.results import Result, latest

K = 3  # where all methods were run
_MIN_GAP = 0.035  # between labels that would overlap, as a share of the axis
_LETTER = 0.012  # the width of a letter, alike


@styled
def draw_accuracy_by_seconds(results: Sequence[Result]) -> Figure:
    """Draw the mean AUC of each method against the mean seconds of a fit and its scores."""
    methods, auc, seconds = _points(results)
    figure = Figure(figsize=(WIDTH, 3.4), layout="constrained")
    axes = figure.subplots()
    colours = [OURS if method in DETECTORS else GREY for method in methods]
    axes.scatter(seconds, auc, c=colours, s=18)
    axes.set_xscale("log")
    low, high = seconds.min(), seconds.max()
    axes.set_xlim(low / 1.6, high * (high / low) ** 0.2)  # room for the last labels
    margin = 0.05 * (auc.max() - auc.min()) or 0.05
    axes.set_ylim(auc.min() - margin, auc.max() + margin)
    _write_labels(axes, methods, auc, seconds, colours)
    axes.set_xlabel("seconds to fit, and to score the test rows (mean over tables)")
    axes.set_ylabel(f"mean test AUC, k = {K}")
    return figure


def describe_seconds(results: Sequence[Result]) -> str:
    """Say which machines the seconds are of."""
    machines: dict[str, dict[str, None]] = {}
    for row in latest(results):
        if row.k == K and row.machine:
            machines.setdefault(row.machine, {})[row.method] = None
    return to_list([f"{machine}: {', '.join(methods)}." for machine, methods in machines.items()])


def _points(results: Sequence[Result]) -> tuple[list[str], Floats, Floats]:
    """Return the methods that have an average, their mean AUC and their mean seconds."""
    rows = [row for row in latest(results) if row.k == K]
    grid = averaged(arrange(rows, METHODS))
    seconds = make_grid(rows, grid.datasets, grid.methods, "seconds").averages
    has_both = ~np.isnan(grid.averages) & ~np.isnan(seconds)
    methods = [method for method, is_shown in zip(grid.methods, has_both, strict=True) if is_shown]
    return methods, grid.averages[has_both], seconds[has_both]


def _write_labels(
    axes: Axes, methods: Sequence[str], auc: Floats, seconds: Floats, colours: Sequence[str]
) -> None:
    """Write each method's name beside its point, a little lower where another is in the way."""
    points = axes.transLimits.transform(axes.transScale.transform(np.c_[seconds, auc]))
    order = np.argsort(-auc)
    for place, at in zip(order, _spread(points[order], [methods[i] for i in order]), strict=True):
        axes.annotate(
            methods[place],
            points[place],
            at,
            xycoords=axes.transAxes,
            textcoords=axes.transAxes,
            va="center",
            fontsize=7,
            color=colours[place],
        )


def _spread(points: Floats, methods: Sequence[str]) -> Iterator[tuple[float, float]]:
    """Yield where labels begin, from the highest to the lowest, none over another."""
    taken: list[tuple[float, float, float]] = []
    for (x, y), method in zip(points, methods, strict=True):
        left, right, height = x + 0.012, x + 0.012 + _LETTER * len(method), y
        for begin, end, other in sorted(taken, key=lambda label: -label[2]):
            if left < end and begin < right and abs(height - other) < _MIN_GAP:
                height = other - _MIN_GAP
        taken.append((left, right, height))
        yield left, height
