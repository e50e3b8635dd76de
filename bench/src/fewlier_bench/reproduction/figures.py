"""The paper's figures from results; `illustrations` has those that need none."""

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fewlier_bench.pages.drawing import GREY, OURS, PAPER, WIDTH, styled
from fewlier_bench.pages.statistics import Grid
from fewlier_bench.reproduction.claims import (
    LAMBDA_GRID,
    average_growth,
    growth_datasets,
    lambda_grid,
)
from fewlier_bench.reproduction.experiments import KS
from fewlier_bench.reproduction.published import published_datasets, setting_datasets
from fewlier_bench.runs.results import Result, latest


@styled
def draw_lambdas(lambdas: Sequence[Result]) -> Figure:
    """Draw Figure 3: the AUC with k = 3 against lambda on each table, with standard errors.

    The horizontal line is lambda = 0, with its standard error as a band.
    """
    grid = lambda_grid(lambdas, 3)
    figure = Figure(figsize=(WIDTH, 6.2), layout="constrained")
    axes = figure.subplots(4, 4, sharex=True)
    for panel, dataset in zip(axes.flat, grid.datasets, strict=True):
        _draw_panel(panel, grid.only([dataset]))
        panel.set_title(dataset)
    for panel in axes[-1]:
        panel.set_xlabel("λ")
    for panel in axes[:, 0]:
        panel.set_ylabel("test AUC")
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2)
    return figure


def _draw_panel(panel: Axes, grid: Grid) -> None:
    x = np.array(LAMBDA_GRID[1:])
    means, errors = grid.means[0], np.nan_to_num(grid.standard_errors[0])
    panel.axhline(means[0], color=PAPER, linewidth=1, label="λ = 0, with its standard error")
    panel.axhspan(means[0] - errors[0], means[0] + errors[0], color=PAPER, alpha=0.15, linewidth=0)
    panel.errorbar(
        x,
        means[1:],
        errors[1:],
        color=OURS,
        marker="o",
        markersize=3,
        capsize=2,
        elinewidth=0.8,
        label="λ > 0, mean and standard error over splits",
    )
    panel.set_xscale("log")
    panel.set_xticks([0.1, 10, 1000], ["0.1", "10", "1000"])
    panel.set_xticks([1, 100, 10000], ["", "", ""], minor=True)
    panel.yaxis.set_major_locator(MaxNLocator(4))
    if np.isnan(means).all():
        panel.set_yticks([])
        panel.text(0.5, 0.5, "no results", ha="center", transform=panel.transAxes, color=GREY)


@styled
def draw_growth(results: Sequence[Result]) -> Figure:
    """Draw the average AUC against the number of training anomalies, 0 being MADE.

    Once over the tables that all have in common, once over all tables of each number, as the paper
    prints it.
    """
    common = growth_datasets(results)
    panels: tuple[tuple[str, Callable[[int], Sequence[str]]], ...] = (
        (f"the {len(common)} tables common to all", lambda _: common),
        ("all tables of each number, as the paper prints it", setting_datasets),
    )
    figure = Figure(figsize=(WIDTH, 2.6), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    x = (0, *KS)
    for panel, (title, datasets_of) in zip(axes.flat, panels, strict=True):
        pairs = average_growth(results, datasets_of)
        paper = [np.nan if average is None else average for _, average in pairs]
        panel.plot(x, paper, color=PAPER, marker="s", markersize=4, ls="--", label="the paper")
        panel.plot(
            x, [ours for ours, _ in pairs], color=OURS, marker="o", markersize=4, label="here"
        )
        panel.set_title(title)
        panel.set_xticks(x)
        panel.set_xlabel("training anomalies (0: MADE)")
        panel.grid(axis="y", linewidth=0.3)
        panel.tick_params(labelleft=True)
    axes.flat[0].set_ylabel("average test AUC")
    axes.flat[0].legend(loc="upper left")
    return figure


@styled
def draw_times(times: Sequence[Result]) -> Figure:
    """Draw the seconds of one training on each table next to the paper's, slowest table on top."""
    paper = {name: table.training_seconds for name, table in published_datasets().items()}
    ours = {row.dataset: row.seconds for row in latest(times) if row.seconds is not None}
    names = sorted(paper, key=lambda name: paper[name])
    figure = Figure(figsize=(WIDTH, 3.6), layout="constrained")
    panel = figure.subplots()
    rows = np.arange(len(names))
    for row, name in zip(rows, names, strict=True):
        if name in ours:
            panel.plot([paper[name], ours[name]], [row, row], color="#BBBBBB", zorder=1)
    for seconds, colour, marker, label in (
        (paper, PAPER, "s", "the paper"),
        (ours, OURS, "o", "here"),
    ):
        x = [seconds.get(name, np.nan) for name in names]
        panel.plot(x, rows, marker, color=colour, markersize=5, label=label)
    panel.set_xscale("log")
    panel.set_xlabel("seconds to train the proposed method on one split, on a CPU")
    panel.set_yticks(rows, names)
    panel.grid(axis="x", linewidth=0.3)
    panel.set_axisbelow(True)
    panel.legend(loc="lower right")
    return figure
