"""What the paper says of its results, claim by claim, checked on ours."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias, final

import numpy as np

from fewlier_bench.pages.statistics import Grid, compare, make_grid, paired_p_value
from fewlier_bench.reproduction.experiments import (
    KS,
    METHODS,
    SUPERVISED,
    UNSUPERVISED,
    lambda_name,
)
from fewlier_bench.reproduction.protocol import PAPER_PROTOCOL
from fewlier_bench.reproduction.published import published_average, setting_datasets
from fewlier_bench.reproduction.tables import setting_grid
from fewlier_bench.runs.results import Result

LAMBDA_GRID = PAPER_PROTOCOL.lambdas
# The paper names no borders; these are ours.
RANGES = {
    "low": (0.1, 1.0),
    "intermediate": (10.0, 100.0),
    "high": (1e3, 1e4),
}
_GROWTH = (("MADE", 3), *(("Proposed", k) for k in KS))
Results: TypeAlias = Sequence[Result]


class Verdict(Enum):
    """What the results say of a claim."""

    HOLDS = "holds"
    FAILS = "does not hold"
    UNKNOWN = "cannot be decided"


@final
@dataclass(frozen=True)
class Claim:
    """A claim of the paper in our words, what the results say of it, and their figures."""

    text: str
    verdict: Verdict
    figures: str


def check_claims(results: Results, lambdas: Results) -> list[Claim]:
    """Check the claims on the results of all methods and of each lambda."""
    by_lambda = lambda_grid(lambdas, 3)
    return [
        *(_highest(results, k) for k in KS),
        _best_of(results, "MADE", UNSUPERVISED, "the unsupervised methods"),
        _best_of(results, "SVM", SUPERVISED[:-1], "the classifiers"),
        _above(results, "MADE", ("Annthyroid", "PenDigits", "Wilt")),
        _never_below(results, "MADE"),
        _above(results, "SVM", ("Arrhythmia", "Pima")),
        _growth(results),
        _best_lambda_differs(by_lambda),
        _trend(by_lambda, "high", ("PenDigits", "Shuttle")),
        _trend(by_lambda, "low", ("Annthyroid", "Stamps")),
        _trend(by_lambda, "intermediate", ("Cardiotocography", "Ionosphere")),
        _high_lambda_alone(by_lambda),
    ]


def lambda_grid(lambdas: Results, k: int) -> Grid:
    """Return the AUCs of each lambda, which are methods here, with `k` training anomalies."""
    rows = [row for row in lambdas if row.k == k]
    return make_grid(rows, setting_datasets(k), list(map(lambda_name, LAMBDA_GRID)))


def growth_datasets(results: Results) -> tuple[str, ...]:
    """Return the tables of k = 5 with results for 0 (MADE), 1, 3 and 5 training anomalies."""
    grids = [setting_grid(results, k).only(setting_datasets(5), [method]) for method, k in _GROWTH]
    complete = np.hstack([grid.is_complete for grid in grids])
    pairs = zip(setting_datasets(5), complete, strict=True)
    return tuple(dataset for dataset, row in pairs if row.all())


def average_growth(
    results: Results, datasets_of: Callable[[int], Sequence[str]]
) -> list[tuple[float, float | None]]:
    """Return our average AUC and the paper's with 0 (MADE), 1, 3 and 5 training anomalies.

    `datasets_of` k are the tables to average over; ours is NaN if one of them has no results.
    """
    pairs = []
    for method, k in _GROWTH:
        datasets = datasets_of(k)
        average = setting_grid(results, k).only(datasets, [method]).averages[0]
        pairs.append((float(average), published_average(method, k, datasets)))
    return pairs


def _highest(results: Results, k: int) -> Claim:
    text = f"Proposed has the highest average AUC of the ten methods with k = {k}"
    return _best(text, setting_grid(results, k).only(methods=METHODS), "Proposed", k)


def _best_of(results: Results, method: str, among: Sequence[str], words: str) -> Claim:
    text = f"{method} has the highest average AUC of {words} with k = 3"
    return _best(text, setting_grid(results, 3).only(methods=among), method, 3)


def _best(text: str, grid: Grid, method: str, k: int) -> Claim:
    common = grid.common
    averages = dict(zip(common.methods, common.averages, strict=True))
    if np.isnan(list(averages.values())).any():
        return Claim(text, Verdict.UNKNOWN, "not every method has results")
    others = {name: average for name, average in averages.items() if name != method}
    rival = max(others, key=lambda name: others[name])
    figures = (
        f"{method} {averages[method]:.3f}, next {rival} {others[rival]:.3f}, on "
        f"{_counted(common.datasets, setting_datasets(k))}"
    )
    return Claim(text, _verdict(averages[method] > others[rival]), figures)


def _above(results: Results, other: str, datasets: Sequence[str]) -> Claim:
    text = f"Proposed is significantly above {other} on {_and(datasets)} with k = 3"
    grid = setting_grid(results, 3)
    outcome = compare(grid, "Proposed", other)
    known = {*outcome.wins, *outcome.ties, *outcome.losses}
    figures = "; ".join(_pair(grid, dataset, "Proposed", other) for dataset in datasets)
    if any(dataset in known and dataset not in outcome.wins for dataset in datasets):
        return Claim(text, Verdict.FAILS, figures)
    is_known = known.issuperset(datasets)
    return Claim(text, Verdict.HOLDS if is_known else Verdict.UNKNOWN, figures)


def _never_below(results: Results, other: str) -> Claim:
    text = f"Proposed is nowhere significantly below {other} with k = 3"
    grid = setting_grid(results, 3)
    outcome = compare(grid, "Proposed", other)
    known = (*outcome.wins, *outcome.ties, *outcome.losses)
    figures = (
        f"above on {len(outcome.wins)} ({_and(outcome.wins)}), below on {len(outcome.losses)} "
        f"({_and(outcome.losses)}), not separated on {len(outcome.ties)}, of "
        f"{_counted(known, setting_datasets(3))}"
    )
    if outcome.losses:
        return Claim(text, Verdict.FAILS, figures)
    is_known = len(known) == len(setting_datasets(3))
    return Claim(text, Verdict.HOLDS if is_known else Verdict.UNKNOWN, figures)


def _growth(results: Results) -> Claim:
    text = "The average AUC of Proposed grows with 0 (MADE), 1, 3 and 5 training anomalies"
    common = growth_datasets(results)
    if not common:
        return Claim(text, Verdict.UNKNOWN, "no table has results for all of them")
    same = average_growth(results, lambda _: common)
    printed = average_growth(results, setting_datasets)
    figures = (
        f"{_path(same)} on {_counted(common, setting_datasets(5))} that have k = 5; "
        f"{_path(printed)} on all tables of each k, as the paper prints it"
    )
    return Claim(text, _verdict(all(np.diff([average for average, _ in same]) > 0)), figures)


def _best_lambda_differs(grid: Grid) -> Claim:
    text = "The best lambda differs from table to table"
    best = [_best_lambda(grid, dataset) for dataset in grid.common.datasets]
    if not best:
        return Claim(text, Verdict.UNKNOWN, "no results")
    counts = [f"{best.count(value)} with {value:g}" for value in LAMBDA_GRID if value in best]
    figures = f"{', '.join(counts)}, of {_counted(grid.common.datasets, setting_datasets(3))}"
    return Claim(text, _verdict(len(set(best)) > 1), figures)


def _trend(grid: Grid, name: str, datasets: Sequence[str]) -> Claim:
    values = _and([f"{value:g}" for value in RANGES[name]])
    text = f"On {_and(datasets)} {'an' if name[0] == 'i' else 'a'} {name} lambda ({values}) is best"
    parts, verdicts = [], []
    for dataset in datasets:
        means = {
            other: float(np.mean([_mean(grid, dataset, value) for value in there]))
            for other, there in RANGES.items()
        }
        shown = ", ".join(f"{other} {_three(mean)}" for other, mean in means.items())
        parts.append(f"{dataset}: {shown}")
        if not np.isnan(list(means.values())).any():
            verdicts.append(max(means, key=lambda other: means[other]) == name)
    figures = f"mean AUC of the lambdas; {'; '.join(parts)}"
    if not all(verdicts):
        return Claim(text, Verdict.FAILS, figures)
    is_known = len(verdicts) == len(datasets)
    return Claim(text, Verdict.HOLDS if is_known else Verdict.UNKNOWN, figures)


def _high_lambda_alone(grid: Grid) -> Claim:
    text = "Ranking without likelihood, a high lambda, is not effective on some tables"
    outcome = compare(grid, lambda_name(LAMBDA_GRID[-1]), lambda_name(0))
    known = (*outcome.wins, *outcome.ties, *outcome.losses)
    if not known:
        return Claim(text, Verdict.UNKNOWN, "no results")
    figures = (
        f"lambda = {LAMBDA_GRID[-1]:g} is significantly below lambda = 0 on {len(outcome.losses)} "
        f"({_and(outcome.losses)}) of {_counted(known, setting_datasets(3))}"
    )
    return Claim(text, _verdict(bool(outcome.losses)), figures)


def _mean(grid: Grid, dataset: str, lam: float) -> float:
    means = grid.only([dataset], [lambda_name(lam)]).means
    return float(means[0, 0])


def _best_lambda(grid: Grid, dataset: str) -> float:
    return LAMBDA_GRID[int(grid.only([dataset]).means[0].argmax())]


def _pair(grid: Grid, dataset: str, method: str, other: str) -> str:
    means = grid.only([dataset], (method, other)).means[0]
    if np.isnan(means).any():
        return f"{dataset}: no results"
    p_value = paired_p_value(grid.of(dataset, method), grid.of(dataset, other))
    return f"{dataset}: {means[0]:.3f} against {means[1]:.3f}, p = {p_value:.2g}"


def _path(pairs: Sequence[tuple[float, float | None]]) -> str:
    ours = ", ".join(_three(average) for average, _ in pairs)
    paper = ", ".join(_three(average) for _, average in pairs if average is not None)
    return f"{ours} (the paper: {paper})"


def _counted(found: Sequence[str], expected: Sequence[str]) -> str:
    n = len(found)
    return f"{n} tables" if n == len(expected) else f"{n} of {len(expected)} tables"


def _verdict(is_so: bool) -> Verdict:
    return Verdict.HOLDS if is_so else Verdict.FAILS


def _three(number: float) -> str:
    return "–" if np.isnan(number) else f"{number:.3f}"


def _and(names: Sequence[str]) -> str:
    if not names:
        return "none"
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)
