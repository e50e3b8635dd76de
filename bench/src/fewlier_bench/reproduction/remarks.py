"""What the page says in sentences and lists: the claims, and what differs from the paper."""

from collections.abc import Iterable, Sequence

import numpy as np

from fewlier_bench.pages.rendering import fold, to_list
from fewlier_bench.pages.statistics import compare
from fewlier_bench.reproduction.claims import Claim, Verdict
from fewlier_bench.reproduction.experiments import EXTRA, KS, METHODS, SUPERVISED
from fewlier_bench.reproduction.published import published_auc, published_average
from fewlier_bench.reproduction.tables import setting_grid
from fewlier_bench.runs.results import Result

LARGE = 0.03  # difference of averages that asks for an explanation
CLOSE = 0.05  # difference of two mean AUCs that is not remarkable


def list_claims(claims: Iterable[Claim]) -> str:
    """Return how many claims hold, and behind that the claims as a Markdown table."""
    claims = list(claims)
    n_held = sum(claim.verdict is Verdict.HOLDS for claim in claims)
    lines = ["| the paper's claim | here | figures |", "|---|---|---|"]
    lines += [f"| {c.text} | {c.verdict.value} | {c.figures} |" for c in claims]
    return fold(f"{n_held} of these {len(claims)} claims hold here", "\n".join(lines))


def list_large_differences(results: Sequence[Result]) -> str:
    """List the methods whose average differs from the paper's by more than `LARGE`."""
    lines = []
    for k in KS:
        common = setting_grid(results, k).only(methods=METHODS).common
        for method, ours in zip(METHODS, common.averages, strict=True):
            paper = published_average(method, k, common.datasets)
            if paper is not None and abs(ours - paper) > LARGE:  # NaN is not
                lines.append(
                    f"k = {k}, {method}: {ours:.3f}, {ours - paper:+.3f} against the paper"
                )
    return to_list(lines or ["none"])


def describe_agreement(results: Sequence[Result]) -> str:
    """Say how far cells are from those that the paper prints, and how often bold type agrees."""
    lines = []
    for k in KS:
        grid = setting_grid(results, k).only(methods=METHODS)
        bold, printed = grid.not_separated(), METHODS if k == 3 else SUPERVISED
        differences, same = [], 0
        for (row, column), mean in np.ndenumerate(grid.means):
            dataset, method = grid.datasets[row], METHODS[column]
            paper = published_auc(dataset, method, k) if method in printed else None
            if paper is not None and not np.isnan(mean):
                differences.append(mean - paper.auc)
                same += paper.is_bold == bold[row, column]
        if differences:
            sizes = np.abs(differences)
            lines.append(
                f"k = {k}: {len(sizes)} cells, mean difference {np.mean(differences):+.3f}, mean "
                f"absolute difference {sizes.mean():.3f}, {np.mean(sizes <= CLOSE):.0%} within "
                f"{CLOSE}; bold type agrees in {same / len(sizes):.0%}"
            )
    return to_list(lines or ["no results"])


def describe_default_detector(results: Sequence[Result]) -> str:
    """Say how fewlier's default detector compares with Proposed."""
    lines = []
    for k in KS:
        grid = setting_grid(results, k).only(methods=("Proposed", EXTRA))
        outcome, common = compare(grid, EXTRA, "Proposed"), grid.common
        proposed, extra = common.averages
        if not np.isnan(proposed + extra):
            lines.append(
                f"k = {k}: {extra:.3f} against {proposed:.3f} on average; significantly better on "
                f"{len(outcome.wins)} of {len(common.datasets)} tables, worse on "
                f"{len(outcome.losses)}"
            )
    return to_list(lines or ["no results"])
