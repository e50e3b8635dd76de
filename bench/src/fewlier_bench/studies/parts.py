"""What leaving a part of the score out costs, and what more or less trust in labels would give.

    fewlier-bench parts run --data DIR --out results/parts.csv --rows 2000 --splits 3
    fewlier-bench parts run --data DIR --out results/parts.csv --shard 2/16    # of 16 processes
    fewlier-bench parts show results/parts.csv

DIR holds `.npz` files with X (n, d) and y (n,), 1 for an anomaly. Each split of `fewlier-bench
compare` (without labels, with 6 and 50, of kinds nobody labelled, with hidden anomalies) is fitted
once by the default detector. Then the score is built again without each of its parts: a part of the
sum is left out of it, and what neighbours consist of is left out before they are fitted, with the
parts that are learned after them. Last, trees and rules together get each of some shares of the
score instead of their own, and the others what is left. Rows are appended to the file, which
several processes may do at the same time; those that are there already are not computed again.
"""

from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, TypeAlias
from unittest.mock import patch

import numpy as np
import torch
from sklearn.metrics import average_precision_score, roc_auc_score
from threadpoolctl import threadpool_limits
from torch import Tensor

from fewlier.density.rows import Rows
from fewlier.fitting import fit
from fewlier.score.neighbours import nearest, view
from fewlier.score.neighbours import part as neighbours
from fewlier.score.neighbours.coordinates import NormalScores, Standardised
from fewlier.score.neighbours.part import Neighbours
from fewlier.score.neighbours.view import View
from fewlier.score.part import Known
from fewlier.score.scorer import Scorer
from fewlier.table import Encoded, Table
from fewlier.training.plan import Plan
from fewlier_bench.comparison.parts_tables import (
    DEFAULT,
    FIELDS,
    LABELS_SHARES,
    POOLS,
    WITHOUT,
    Pool,
    part_tables,
    read_lines,
    share_name,
)
from fewlier_bench.data.few_labels import make_few_label_split, n_splits
from fewlier_bench.pages.rendering import to_markdown
from fewlier_bench.runs.stacks import SplitStack, fit_plans, given_rows
from fewlier_bench.studies.grid import append, load, read, table_paths
from fewlier_bench.studies.study import FILE, OUT, TABLES, Study, option

Scores: TypeAlias = dict[str, np.ndarray]
CHUNK = 1024  # rows scored at a time
LEARNED = ("trees", "rules")  # what labels teach
DETECTOR: dict[str, Any] = {"device": "cpu"}


def without_anomalies(fitted: Callable[..., View]) -> Callable[..., View]:
    """Return a fit of views that weighs columns by the labels, but measures no distance to them."""

    def fit_view(scales: Any, known: Known) -> View:  # noqa: ANN401
        plain, far = view._of_normals(fitted(scales, known).space, *known.labelled(False))
        return replace(plain, spread=view._spread(far))

    return fit_view


def nothing(part: Neighbours, rows: Rows, *_: object) -> Tensor:  # noqa: ARG001 - as a method
    """Score rows alike."""
    return rows.targets.new_zeros(len(rows.targets), rows.targets.shape[1] + 1, dtype=torch.float64)


def leave_out(part: str) -> AbstractContextManager[Any]:
    """Let scores be built without something that takes a new fit of neighbours and trees."""
    if part == "neighbours":
        return patch.object(Neighbours, "contributions", nothing)
    if part == "column weights":
        return patch.object(nearest, "_MAX_RATIO", 0.0)  # no column tells more than another
    if part == "distance to anomalies":
        return patch.object(View, "fit", without_anomalies(View.fit))
    if part == "novelty":
        return patch.object(view, "_novelty", lambda *_: 0.0)
    kept = {"scale of normal scores": Standardised, "scale of deviations": NormalScores}[part]
    return patch.object(neighbours, "COORDINATES", {kept.name: kept})


def score_parts(scorer: Scorer, encoded: Encoded) -> Scores:
    """Return what each part scores, by name."""
    chunks: list[Scores] = []
    for start in range(0, len(encoded), CHUNK):
        some = encoded.take(np.arange(start, min(start + CHUNK, len(encoded))))
        rows, found = Rows.of(some, scorer.device), dict[str, Tensor]()
        for _, part in scorer.addends:
            found[part.name] = part.contributions(rows, found)
        chunks.append({name: own.sum(1).cpu().numpy() for name, own in found.items()})
    return {name: np.concatenate([chunk[name] for chunk in chunks]) for name in chunks[0]}


def add_up(scores: Scores, shares: Mapping[str, float]) -> np.ndarray:
    """Add up the parts by their shares."""
    return np.asarray(sum(shares[name] * scores[name] for name in scores))


def variants(plan: Plan, recipe: fit.Recipe, test: Encoded) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the scores of test rows by the default, without each part, and by shares of labels."""
    ((model, _),) = fit_plans([plan], recipe)
    shares = {part.name: share for share, part in model.scorer.addends}
    scores = score_parts(model.scorer, test)
    yield DEFAULT, add_up(scores, shares)
    has_learned = any(name in shares for name in LEARNED)
    for part, needs_labels in WITHOUT.items():
        if needs_labels and not has_learned:
            continue
        if part in shares and part != Neighbours.name:
            yield part, add_up(scores, shares | {part: 0.0})
            continue
        with leave_out(part), patch.object(fit, "calibrate", return_value=model.calibration):
            scorer = fit.add_parts(plan, model.ensemble, recipe.false_alarm_rate).scorer
            yield part, add_up(score_parts(scorer, test), shares)
    taught = sum(shares.get(name, 0.0) for name in LEARNED)
    for share in LABELS_SHARES if has_learned else ():
        rescaled = {
            name: own * (share / taught if name in LEARNED else (1 - share) / (1 - taught))
            for name, own in shares.items()
        }
        yield share_name(share), add_up(scores, rescaled)


def lines_of(
    X: np.ndarray, y: np.ndarray, pool: Pool, numbers: Sequence[int]
) -> Iterator[dict[str, Any]]:
    """Yield the lines of some splits of a pool, or why there is none."""
    stack = SplitStack.of_table(Table.of(X), DETECTOR)
    for number in numbers:
        split = make_few_label_split(pool.experiment, X, y, pool.k, number)
        if isinstance(split, str):
            yield {"split": number, "reason": split}
            continue
        plan, truth = stack.plan(given_rows(split)), y[split.test]
        test = plan.encoder.encode(stack.table.take(split.test))
        for variant, scores in variants(plan, stack.recipe, test):
            yield {
                "split": number,
                "variant": variant,
                "auc": f"{roc_auc_score(truth, scores):.6f}",
                "average_precision": f"{average_precision_score(truth, scores):.6f}",
            }


def run(arguments: Namespace) -> None:
    """Compute the lines of this shard that are not in the file yet."""
    place, n_shards = map(int, arguments.shard.split("/"))
    torch.set_num_threads(1)
    collection = arguments.data.resolve().name
    done = {tuple(row[name] for name in FIELDS[:5]) for row in read(arguments.out)}
    paths = table_paths(arguments.data, arguments.tables)
    cells = [(path, pool) for path in paths for pool in POOLS][place - 1 :: n_shards]
    for path, pool in cells:
        key = (collection, path.stem, pool.experiment, str(pool.k))
        every = range(n_splits(pool.experiment, arguments.splits))
        numbers = [number for number in every if (*key, str(number)) not in done]
        if not numbers:
            continue
        with threadpool_limits(1):
            lines = list(lines_of(*load(path, arguments.rows), pool, numbers))
        common = dict(zip(FIELDS, key, strict=False))
        append(arguments.out, FIELDS, [{**common, **line} for line in lines])
        print(*key, flush=True)


def show(arguments: Namespace) -> None:
    """Print the tables of each collection as Markdown."""
    for table in part_tables(read_lines(arguments.out)):
        print(to_markdown(table))


STUDY = Study.of(
    run,
    OUT,
    *TABLES,
    option("--rows", type=int, default=12_000, help="tables are cut to as many"),
    option("--splits", type=int, default=3),
    option("--shard", default="1/1", metavar="I/N", help="one of N parts, from 1"),
) | Study.of(show, FILE)
