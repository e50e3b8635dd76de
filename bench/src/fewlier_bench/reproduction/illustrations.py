"""The paper's figures that need no results: 1, a table of one column, and 2, the sigmoid."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.special import expit
from scipy.stats import norm
from sklearn.svm import SVC

from fewlier import AnomalyDetector, Made, Training
from fewlier_bench.pages.drawing import ACCENT, GREY, OURS, PAPER, WIDTH, styled
from fewlier_bench.pages.statistics import Floats

Score = Callable[[Floats], Floats]


@final
@dataclass(frozen=True, eq=False)
class Example:
    """Rows of one column: two clouds of normals, and an anomaly where they nearly meet.

    `test` are anomalies that no method has seen: two beyond the normals, and one between.
    """

    normals: Floats
    anomalies: Floats
    test: Floats


def make_example() -> Example:
    """Return the rows of Figure 1: quantiles of two normal distributions, so none is random."""
    cloud = 1 + 0.5 * norm.ppf((np.arange(12) + 0.5) / 12)
    anomalies, test = np.array([0.0]), np.array([-2.6, 0.05, 2.6])
    return Example(np.concatenate([-cloud[::-1], cloud]), anomalies, test)


def score_example(example: Example) -> dict[str, Score]:
    """Fit the three ways of Figure 1, and return their anomaly scores."""
    X = np.concatenate([example.normals, example.anomalies])[:, None]
    y = np.repeat([0, 1], [len(example.normals), len(example.anomalies)])
    is_normal = y == 0
    density = _detector(0).fit(X[is_normal], y[is_normal], validation=(X[is_normal], y[is_normal]))
    classifier = SVC(C=100, gamma=2).fit(X, y)
    proposed = _detector(3).fit(X, y, validation=(X, y))
    return {
        "(a) unsupervised: density": lambda x: -density.score_samples(x[:, None]),
        "(b) supervised: classifier": lambda x: classifier.decision_function(x[:, None]),
        "(c) proposed": lambda x: -proposed.score_samples(x[:, None]),
    }


def _detector(weight: float) -> AnomalyDetector:
    return AnomalyDetector(
        columns="real",
        training=Training(lambdas=(weight,), patience=None, batch_size=20, learning_rate=0.01),
        unlabelled="normal",
        density=Made(hidden=(50,), n_orderings=1, n_components=4),  # two for each cloud
        false_alarm_rate=0.1,
        keep_rows=False,
        device="cpu",
        random_state=1,
    )


@styled
def draw_example() -> Figure:
    """Draw Figure 1: which unseen anomalies a density, a classifier and both together find.

    An anomaly is found if it scores above every observed normal.
    """
    example = make_example()
    figure = Figure(figsize=(WIDTH, 2.6), layout="constrained")
    axes = figure.subplots(1, 3)
    for panel, (title, score) in zip(axes.flat, score_example(example).items(), strict=True):
        _draw_score(panel, example, score)
        panel.set_title(title)
    axes.flat[0].set_ylabel("anomaly score (downwards)")
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, columnspacing=1.5)
    return figure


def _draw_score(panel: Axes, example: Example, score: Score) -> None:
    x = np.linspace(-3, 3, 241)
    curve, at_test = score(x).round(3), score(example.test)
    threshold = score(example.normals).max()
    low, high = curve.min(), curve.max()
    strip = low - 0.12 * (high - low)
    panel.plot(x, curve, color=GREY, label="anomaly score")
    panel.axhline(
        threshold, color=GREY, linewidth=0.8, linestyle=":", label="highest score of a normal"
    )
    for rows, marker, colour, label in (
        (example.normals, "^", OURS, "observed normal"),
        (example.anomalies, "o", PAPER, "observed anomaly"),
    ):
        y = np.full_like(rows, strip)
        panel.plot(rows, y, marker, color=colour, mfc="white", markersize=4.5, label=label)
    panel.plot(example.test, at_test, "o", color="black", markersize=5, label="test anomaly")
    for value, height in zip(example.test, at_test, strict=True):
        is_found = height > threshold
        mark, colour = ("✓ found", ACCENT) if is_found else ("✗ missed", PAPER)
        offset = (-22 * value / 2.6, -14)  # towards the middle and below, where no curve is
        panel.annotate(
            mark, (value, height), offset, textcoords="offset points", ha="center", color=colour
        )
    panel.set_ylim(high + 0.15 * (high - low), strip - 0.1 * (high - low))
    panel.set_xlabel("attribute")
    panel.set_xticks([])
    panel.set_yticks([])


@styled
def draw_sigmoid() -> Figure:
    """Draw Figure 2: the sigmoid of the log likelihood ratio, and the step that the AUC counts."""
    figure = Figure(figsize=(WIDTH / 2, 2.3), layout="constrained")
    panel = figure.subplots()
    ratio = np.linspace(-8, 8, 161)
    panel.plot([-8, 0, 0, 8], [0, 0, 1, 1], color=PAPER, linestyle="--")
    panel.plot(ratio, expit(ratio), color=OURS)
    panel.text(-0.4, 0.92, "step, in the AUC", ha="right", color=PAPER)
    panel.text(1.4, 0.6, "sigmoid, in\nthe objective", color=OURS)
    panel.set_xlabel("log p(normal row) − log p(anomaly)")
    panel.set_ylabel("value of the pair")
    panel.set_yticks([0, 0.5, 1])
    return figure
