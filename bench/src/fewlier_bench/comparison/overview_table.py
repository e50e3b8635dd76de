"""One line for each situation that users meet: what fewlier and other methods reach in it."""

from pathlib import Path
from typing import NamedTuple

from fewlier_bench.comparison.comparison_tables import arrange, averaged
from fewlier_bench.comparison.peer_jobs import OURS
from fewlier_bench.data.few_labels import CLEAN, CONTAMINATED, UNSEEN
from fewlier_bench.pages.printed import PrintedColumn, PrintedTable, Value, known
from fewlier_bench.pages.statistics import Grid
from fewlier_bench.runs.results import Store, latest


class Situation(NamedTuple):
    """Cells of one collection and experiment, in words."""

    words: str
    collection: str
    experiment: str
    k: int


METHODS = (OURS, "XGBOD-style", "CatBoost", "kNN distance")
SITUATIONS = (
    Situation("dev: no labels", "dev", CLEAN, 0),
    Situation("dev: 6 labels", "dev", CLEAN, 3),
    Situation("dev: 50 labels", "dev", CLEAN, 25),
    Situation("dev: 6 labels, unseen kinds", "dev", UNSEEN, 3),
    Situation("dev: 6 labels, hidden anomalies", "dev", CONTAMINATED, 3),
    Situation("dev2: no labels", "dev2", CLEAN, 0),
    Situation("dev2: 6 labels", "dev2", CLEAN, 3),
    Situation("paper: no labels", "paper", CLEAN, 0),
    Situation("paper: 6 labels", "paper", CLEAN, 3),
    Situation("paper: 50 labels", "paper", CLEAN, 25),
    Situation("paper: 6 labels, unseen kinds", "paper", UNSEEN, 3),
    Situation("paper: 6 labels, hidden anomalies", "paper", CONTAMINATED, 3),
)


def overview_table(results: Path) -> PrintedTable:
    """Return the mean test AUC of each method in each situation, the best in bold."""
    grids = [_grid(results, situation) for situation in SITUATIONS]
    lines = [dict(zip(grid.methods, map(known, grid.averages), strict=True)) for grid in grids]
    best = [max((auc for auc in line.values() if auc), default=None) for line in lines]
    columns = []
    for method in METHODS:
        aucs = [line.get(method) for line in lines]
        pairs = zip(aucs, best, strict=True)
        values = tuple(Value(auc, is_bold=auc is not None and auc == most) for auc, most in pairs)
        columns.append(PrintedColumn(method, values, has_difference=False))
    title = "Mean test AUC of fewlier and the best other methods"
    words = tuple(situation.words for situation in SITUATIONS)
    return PrintedTable("overview", title, "", words, tuple(columns))


def _grid(results: Path, situation: Situation) -> Grid:
    rows = Store(results / situation.collection).read(situation.experiment)
    return averaged(arrange([row for row in latest(rows) if row.k == situation.k], METHODS))
