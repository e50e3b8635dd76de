"""Whether p-values, false-alarm rates and false-discovery rates keep what they promise.

    fewlier-bench certainty run --out results/certainty.csv --workers 2
    fewlier-bench certainty run --out results/certainty_dev.csv --data DIR --rows 200 1000
    fewlier-bench certainty run --out results/certainty_few.csv --default --rows 50 --seeds 15 \
        --tables normal_30 levels_10 --situations unlabelled labels
    fewlier-bench certainty show results/certainty.csv

Each line of the file is one fit, or one fit and an update. Tables are made up: `numbers`, `mixed`
(amounts, counts, a category, gaps), `counts`, and `few`, where most rows repeat others; on request
`normal_30`, 30 columns of normal numbers, or another number of them, and `levels_10`. With
`--data` they are those of a folder of `.npz` files with X (n, d) and y (n,), 1 for an anomaly, that
are large enough, and the normals that are not fitted are the fresh ones. Situations:

    unlabelled  nobody labelled anything, and every row is normal
    normal      every row is labelled normal
    labels      six anomalies are labelled, and every other row is labelled normal
    positives   six anomalies are labelled, and no other row is
    hidden      nobody labelled anything, and one row in twenty is an anomaly
    update      labels, and then an update with six more anomalies and the ten oddest of 50 normals

Detectors are small, so that a thousand fits take minutes, and train for long enough to know their
rows by heart; `--default` takes the default detector. A line has the share of fresh normals with a
p-value of at most 1, 5 and 10 %, the share of normals among the rows flagged at a false-discovery
rate of 0.05, 0.1 and 0.2 (the mean over batches of which one row in ten is an anomaly), and the
share of fresh anomalies that are found at each.

`show` prints means over fits with their standard errors. A rate holds if its mean is at most two
standard errors above what is promised. Lines that are in the file are not computed again.
"""

import warnings
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch

from fewlier import AnomalyDetector, Made, Training
from fewlier_bench.studies import made_up
from fewlier_bench.studies.grid import append, load, read, table_paths
from fewlier_bench.studies.study import FILE, OUT, SOME, Study, option

SITUATIONS = ("unlabelled", "normal", "labels", "positives", "hidden", "update")
RATES, DISCOVERY_RATES = (0.01, 0.05, 0.1), (0.05, 0.1, 0.2)
N_LABELS, HIDDEN = 6, 0.05
N_FRESH, N_BATCH, ODD_IN_BATCH, N_BATCHES = 1000, 100, 10, 10
N_LATER, ODDEST_LATER = 50, 10
ALARMS = [f"alarms_{100 * rate:g}" for rate in RATES]
RECALLS = [f"found_{100 * rate:g}" for rate in RATES]
FALSE = [f"false_{100 * rate:g}" for rate in DISCOVERY_RATES]
DISCOVERED = [f"discovered_{100 * rate:g}" for rate in DISCOVERY_RATES]
CELL = ["table", "rows", "situation", "seed"]
FIELDS = [*CELL, "normals", *ALARMS, *RECALLS, *FALSE, *DISCOVERED, "in_interval", "guarantee"]
SMALL: dict[str, Any] = {
    "density": Made(hidden=(32,), n_orderings=2),
    "training": Training(lambdas=(0, 10), max_epochs=20, learning_rate=0.01),
}


class Task(NamedTuple):
    """One line to compute; `path` is that of the table, None of a made-up one."""

    table: str
    rows: int
    situation: str
    seed: int
    path: Path | None
    is_default: bool


class Supply(NamedTuple):
    """Where rows come from, none of them twice: normals and anomalies, each given a number."""

    normals: Callable[[int], pd.DataFrame]
    anomalies: Callable[[int], pd.DataFrame]


def make_up(name: str, rng: np.random.Generator) -> Supply:
    """Draw rows of a made-up table; in anomalies numbers are too large and too far apart."""

    def anomalies(n: int) -> pd.DataFrame:
        table = made_up.ALL[name](n, rng)
        odd = table.select_dtypes("number").columns
        return table.assign(**{column: 3 * table[column] + 4 for column in odd})

    return Supply(lambda n: made_up.ALL[name](n, rng), anomalies)


def deal(path: Path, rng: np.random.Generator) -> Supply:
    """Deal the rows of a table out; the last are fewer than asked for, and then there are none."""
    X, y = load(path)
    left = {label: rng.permutation(np.flatnonzero(y == label)) for label in (0, 1)}

    def take(label: int, n: int) -> pd.DataFrame:
        rows, left[label] = np.split(left[label], [n])
        return pd.DataFrame(X[rows]).add_prefix("x")

    return Supply(lambda n: take(0, n), lambda n: take(1, n))


def fit(task: Task, supply: Supply) -> AnomalyDetector:
    """Fit a detector in a situation."""
    normals, situation = supply.normals(task.rows), task.situation
    odd = 0 if situation in ("unlabelled", "normal") else N_LABELS
    odd = round(HIDDEN * task.rows) if situation == "hidden" else odd
    X = pd.concat([supply.anomalies(odd), normals.iloc[odd:]], ignore_index=True)
    y: np.ndarray | None = (np.arange(len(X)) < odd).astype(float)
    if situation in ("unlabelled", "hidden"):
        y = None
    elif situation == "positives":
        y = np.where(np.arange(len(X)) < odd, 1, np.nan)
    settings = {} if task.is_default else SMALL
    detector = AnomalyDetector(**settings, random_state=task.seed).fit(X, y)
    if situation == "update":
        later = supply.normals(N_LATER)
        later = later.iloc[np.argsort(-detector.anomaly_score(later))[:ODDEST_LATER]]
        more = pd.concat([supply.anomalies(N_LABELS), later], ignore_index=True)
        detector.update(more, np.arange(len(more)) < N_LABELS)
    return detector


def discoveries(p_normal: np.ndarray, p_odd: np.ndarray, rate: float) -> Iterator[list[float]]:
    """Yield the share of normals among the flagged, and of anomalies that are flagged, by batch."""
    for batch in range(N_BATCHES):
        normal = np.resize(np.roll(p_normal, -batch * N_BATCH), N_BATCH - ODD_IN_BATCH)
        odd = np.resize(np.roll(p_odd, -batch * ODD_IN_BATCH), ODD_IN_BATCH)
        p = np.sort(np.concatenate([normal, odd]))
        below = p[p * N_BATCH <= rate * np.arange(1, N_BATCH + 1) * (1 + 1e-12)]
        most = below.max(initial=0)
        n_false, n_true = int((normal <= most).sum()), int((odd <= most).sum())
        yield [n_false / max(n_false + n_true, 1), n_true / ODD_IN_BATCH]


def compute(task: Task) -> dict[str, Any]:
    """Fit, and compare fresh rows with what is promised."""
    rng = np.random.default_rng([task.seed, task.rows, SITUATIONS.index(task.situation)])
    supply = make_up(task.table, rng) if task.path is None else deal(task.path, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # 1 % is not attainable with few rows
        detector = fit(task, supply)
    calibration = detector.model_.calibration
    p_normal = detector.p_value(supply.normals(N_FRESH))
    p_odd = detector.p_value(supply.anomalies(ODD_IN_BATCH * N_BATCHES))
    found = [np.mean(list(discoveries(p_normal, p_odd, q)), 0) for q in DISCOVERY_RATES]
    at = calibration.at_false_alarm_rate(RATES[1]).decision
    low, high = at.interval or (0.0, 1.0)
    alarms = float((p_normal <= (at.rate or 0) + 1e-9).mean())
    shares = [(p <= rate).mean() for p in (p_normal, p_odd) for rate in RATES]
    shares += [pair[which] for which in (0, 1) for pair in found]
    names = [*ALARMS, *RECALLS, *FALSE, *DISCOVERED]
    return {
        **dict(zip(CELL, task, strict=False)),
        "normals": len(calibration.normal_scores),
        **{name: f"{share:.4f}" for name, share in zip(names, shares, strict=True)},
        "in_interval": int(low <= alarms <= high),
        "guarantee": calibration.guarantee.split(":")[0],
    }


def fits(path: Path | None, rows: int) -> bool:
    """Say whether a table has so many rows to fit, and enough fresh ones of each label."""
    if path is None:
        return True
    n_normal, n_odd = np.bincount(load(path)[1].astype(np.int64), minlength=2).tolist()
    given = max(2 * N_LABELS, round(HIDDEN * rows))
    return bool(n_normal >= rows + N_LATER + N_BATCH and n_odd >= given + ODD_IN_BATCH)


def list_tasks(arguments: Namespace) -> list[Task]:
    """List the lines that are not in the file yet."""
    paths: dict[str, Path | None] = dict.fromkeys(arguments.tables or made_up.TABLES)
    if arguments.data is not None:
        paths = {path.stem: path for path in table_paths(arguments.data, arguments.tables)}
    done = {tuple(row[name] for name in CELL) for row in read(arguments.out)}
    sizes = [(name, n) for name, path in paths.items() for n in arguments.rows if fits(path, n)]
    tasks = [
        Task(table, rows, situation, seed, paths[table], arguments.default)
        for seed, (table, rows), situation in product(
            range(arguments.seeds), sizes, arguments.situations
        )
    ]
    return [task for task in tasks if tuple(map(str, task[: len(CELL)])) not in done]


def compute_all(tasks: Sequence[Task], workers: int) -> Iterator[dict[str, Any]]:
    """Yield the lines as they are done; with 1 worker in this process."""
    if workers == 1:
        yield from map(compute, tasks)
        return
    with ProcessPoolExecutor(
        workers, get_context("spawn"), torch.set_num_threads, (1,)
    ) as processes:
        for done in as_completed([processes.submit(compute, task) for task in tasks]):
            yield done.result()


def run(arguments: Namespace) -> None:
    """Compute the lines that are not in the file yet."""
    tasks = list_tasks(arguments)
    for number, line in enumerate(compute_all(tasks, arguments.workers), 1):
        append(arguments.out, FIELDS, [line])
        if number % 50 == 0 or number == len(tasks):
            print(f"{number} of {len(tasks)}", flush=True)


def show(arguments: Namespace) -> None:
    """Print the means over all fits, and over those of a situation, a size and a table."""
    lines = pd.read_csv(arguments.out)
    promised = [*RATES, *DISCOVERY_RATES]
    heads = [f"p ≤ {rate:g}" for rate in RATES] + [f"FDR {rate:g}" for rate in DISCOVERY_RATES]
    print(f"| fits | number | normals | {' | '.join(heads)} | found at 0.01 | FDR 0.1 | interval |")
    print("|---" * (len(heads) + 6) + "|")
    groups: list[tuple[str, pd.DataFrame]] = [("all but hidden", _clean(lines))]
    groups += [(name, some) for name, some in lines.groupby("situation", sort=False)]
    for column in ("rows", "table"):
        groups += [(f"{n} {column}", some) for n, some in _clean(lines).groupby(column)]
    for name, some in groups:
        measured = (some[field] for field in (*ALARMS, *FALSE))
        rates = [_against(values, p) for values, p in zip(measured, promised, strict=True)]
        others = [f"{some[field].mean():.0%}" for field in (RECALLS[0], DISCOVERED[1])]
        print(
            f"| {name} | {len(some)} | {some['normals'].mean():.0f} | {' | '.join(rates)} "
            f"| {' | '.join(others)} | {some['in_interval'].mean():.0%} |"
        )


def _clean(lines: pd.DataFrame) -> pd.DataFrame:
    return lines[lines["situation"] != "hidden"]


def _against(values: pd.Series, promised: float) -> str:
    """Write a mean with its standard error, and a mark if it is too high."""
    mean, error = values.mean(), values.std(ddof=0) / np.sqrt(len(values))
    mark = "" if mean <= promised + 2 * error else " **too high**"
    return f"{mean:.4f} ± {error:.4f}{mark}"


STUDY = Study.of(
    run,
    OUT,
    SOME,
    option("--data", type=Path, help="a folder of tables, in place of made-up ones"),
    option("--rows", type=int, nargs="+", default=[40, 150, 600]),
    option("--situations", nargs="+", choices=SITUATIONS, default=list(SITUATIONS)),
    option("--seeds", type=int, default=14),
    option("--workers", type=int, default=1),
    option("--default", action="store_true", help="fit the default detector"),
) | Study.of(show, FILE)
