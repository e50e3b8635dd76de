"""Speed and memory, as ratios to a straightforward PyTorch loop measured in the same run.

fewlier-bench speed            # or: make bench
"""

import json
import math
import os
import resource
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import final

import numpy as np
import torch
from sklearn.ensemble import IsolationForest
from torch import Tensor, nn
from torch.nn import functional

from fewlier import AnomalyDetector, Training
from fewlier.density.rows import Rows
from fewlier.fitting.fit import make_template
from fewlier.fitting.recipe import read_recipe, read_schema
from fewlier.process.threads import one_thread
from fewlier.score.part import Part
from fewlier.table import Table
from fewlier.training.plan import plan_with_validation
from fewlier.training.stack import train
from fewlier_bench.studies.study import Study

N_ROWS, N_COLUMNS, N_ANOMALIES = 2700, 21, 3
EPOCHS = 10
N_SCORED = 20_000


@final
class PlainMade(nn.Module):
    """MADE as one would write it first: masked linear layers, mixtures with components last."""

    def __init__(self, d: int, width: int = 500, k: int = 3, n_orderings: int = 10) -> None:
        super().__init__()
        self.d, self.k = d, k
        self.hidden, self.output = nn.Linear(d, width), nn.Linear(width, 3 * k * d)
        self.masks = []
        for _ in range(n_orderings):
            position, degree = torch.randperm(d), torch.randint(0, d - 1, (width,))
            owner = torch.arange(d).repeat_interleave(3 * k)
            first = (degree[:, None] >= position).float()
            self.masks.append((first, (position[owner][:, None] > degree).float()))

    def log_prob(self, x: Tensor, index: int) -> Tensor:
        """Return log p(x) under one ordering."""
        first, second = self.masks[index]
        h = torch.relu(functional.linear(x, self.hidden.weight * first, self.hidden.bias))
        phi = functional.linear(h, self.output.weight * second, self.output.bias)
        logit, mu, s = phi.view(-1, self.d, 3, self.k).unbind(-2)
        sigma = functional.softplus(s) + 1e-3
        z = (x.unsqueeze(-1) - mu) / sigma
        log_normal = -0.5 * z**2 - sigma.log() - 0.5 * np.log(2 * np.pi)
        return torch.logsumexp(torch.log_softmax(logit, -1) + log_normal, -1).sum(-1)

    def score(self, x: Tensor) -> Tensor:
        """Return -log of the mean density over orderings."""
        with torch.no_grad():
            log_p = torch.stack([self.log_prob(x, i) for i in range(len(self.masks))])
        return math.log(len(log_p)) - torch.logsumexp(log_p, 0)


def train_plain(
    model: PlainMade, x: Tensor, anomalies: Tensor, validation: Tensor, epochs: int
) -> None:
    """Train one lambda, one batch of 100 at a time, with the validation that choosing needs."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    step = 0
    for _ in range(epochs):
        for batch in torch.randperm(len(x)).split(100):
            index = step % len(model.masks)
            normal, odd = model.log_prob(x[batch], index), model.log_prob(anomalies, index)
            ranking = torch.sigmoid(normal[None] - odd[:, None]).mean()
            optimizer.zero_grad()
            (-(normal.mean() + ranking)).backward()
            optimizer.step()
            step += 1
        model.score(validation)


def seconds(run: Callable[[], object], repeats: int = 3) -> float:
    """Return the shortest of a few runs."""
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    return min(times)


def rows(n: int, n_columns: int = N_COLUMNS, seed: int = 0) -> np.ndarray:
    """Draw correlated normal rows."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, n_columns)) @ np.random.default_rng(1).normal(size=(n_columns,) * 2)


def fitted(detector: AnomalyDetector) -> AnomalyDetector:
    """Fit a detector for the scoring benchmark; how well does not matter."""
    X, y = rows(5000), np.repeat([0, 1], [4990, 10])
    return detector.set_params(random_state=0, false_alarm_rate=0.1, training__max_epochs=2).fit(
        X, y
    )


def compare_training() -> dict[str, float]:
    """Time the lambda grid as a stack against one lambda in the plain loop."""
    X = rows(N_ROWS + 2 * N_ANOMALIES)
    labels = np.repeat([0, 1], [N_ROWS, 2 * N_ANOMALIES]).astype(np.int8)
    parameters = AnomalyDetector.as_published().set_params(training__max_epochs=EPOCHS).get_params()
    recipe = read_recipe(parameters)
    table = Table.of(X)
    schema = read_schema(parameters, table)
    training, held = np.arange(N_ROWS + N_ANOMALIES), np.arange(N_ROWS - 300, len(X))
    plan = plan_with_validation(
        schema,
        (table.take(training), labels[training]),
        (table.take(held), labels[held]),
        seed=0,
    )
    density = make_template(plan.encoder, recipe, seed=0)
    encoded = Rows.of(plan.encoded)
    members = plan.members(recipe.lambdas)
    x = encoded.targets[:N_ROWS]
    anomalies = encoded.targets[N_ROWS : N_ROWS + N_ANOMALIES]
    held_back = encoded.targets[N_ROWS + N_ANOMALIES :]
    # In turns, because the machine's speed drifts by more than what is measured.
    times = [
        (
            seconds(lambda: train_plain(PlainMade(N_COLUMNS), x, anomalies, held_back, EPOCHS), 1),
            seconds(lambda: train(density, encoded, members, recipe.settings), 1),
        )
        for _ in range(5)
    ]
    plain, stack = np.median(times, axis=0)
    return {
        f"plain loop, one lambda, {EPOCHS} epochs (s)": plain,
        f"stack of {len(members)} lambdas, {EPOCHS} epochs with validation (s)": stack,
        "stack / one lambda (aim: below 3)": float(np.median([b / a for a, b in times])),
    }


def compare_scoring() -> dict[str, float]:
    """Time ten orderings of one member against the plain code."""
    best, average = fitted(AnomalyDetector.as_published()), fitted(AnomalyDetector())
    X = rows(N_SCORED)
    plain, x = PlainMade(N_COLUMNS), torch.rand(N_SCORED, N_COLUMNS)
    rates = {
        "plain": N_SCORED / seconds(lambda: plain.score(x)),
        "plain, in batches of 100": N_SCORED
        / seconds(lambda: [plain.score(b) for b in x.split(100)]),
        "best": N_SCORED / seconds(lambda: best.anomaly_score(X)),
        "average": N_SCORED / seconds(lambda: average.anomaly_score(X)),
    }
    return {
        "plain loop, ten orderings, batches of 100 (rows/s)": rates["plain, in batches of 100"],
        "plain loop, ten orderings, all rows at once (rows/s)": rates["plain"],
        "fewlier best, 10 passes (rows/s)": rates["best"],
        "fewlier / plain in batches (aim: at least 3)": rates["best"]
        / rates["plain, in batches of 100"],
        "fewlier / plain at once": rates["best"] / rates["plain"],
        f"fewlier average, {average.model_.ensemble.passes_per_row} passes, compared with "
        f"{average.summary_.n_compared} rows (rows/s)": rates["average"],
    }


def labelled(n: int, n_columns: int = 20) -> tuple[np.ndarray, np.ndarray]:
    """Draw rows of which six are labelled anomalies that only labels can tell."""
    X, y = rows(n, n_columns), np.repeat([1, 0], [6, n - 6])
    middle, scale = np.median(X, axis=0), X.std(axis=0)
    X[:6, :3] = middle[:3] + scale[:3] * np.linspace(0.3, 0.5, 6)[:, None]
    return X, y


def compare_default() -> dict[str, float]:
    """Time the default with six labels, and other methods on the same rows."""
    X, y = labelled(5000)
    fresh = rows(100_000, 20, seed=2)
    ours = AnomalyDetector(random_state=0)
    forest = IsolationForest(n_estimators=100, random_state=0, n_jobs=2)
    found = {
        "fewlier: fit, 500 x 20 (s; aim: at most 1.5)": seconds(lambda: ours.fit(*labelled(500))),
        "fewlier: fit, 5,000 x 20 (s; aim: at most 5)": (fit := seconds(lambda: ours.fit(X, y))),
        "isolation forest: fit (s)": seconds(lambda: forest.fit(X)),
    }
    if find_spec("catboost"):
        trees = import_module("catboost").CatBoostClassifier(
            iterations=300, auto_class_weights="Balanced", verbose=False, allow_writing_files=False
        )
        found["CatBoost, balanced: fit (s)"] = other = seconds(lambda: trees.fit(X, y))
        found["fewlier / CatBoost: fit (aim: at most 8)"] = fit / other
        found["CatBoost, balanced: scoring (rows/s)"] = _rate(lambda: trees.predict(fresh), fresh)
    else:
        print("CatBoost is left out: run pip install 'fewlier-bench[methods]' for it")
    # In turns, because the machine's speed drifts by more than what is measured.
    times = [
        (
            seconds(lambda: ours.anomaly_score(fresh), 1),
            seconds(lambda: forest.score_samples(fresh), 1),
        )
        for _ in range(5)
    ]
    own, others = np.median(times, axis=0)
    found["isolation forest: scoring (rows/s)"] = len(fresh) / others
    found["fewlier: scoring (rows/s)"] = len(fresh) / own
    found["fewlier / isolation forest: scoring (aim: at least 0.5)"] = float(
        np.median([b / a for a, b in times])
    )
    found["fewlier: p-values (rows/s)"] = _rate(lambda: ours.p_value(fresh), fresh)
    some = fresh[:10_000]
    found["fewlier: contributions (rows/s)"] = _rate(lambda: ours.explain(some).contributions, some)
    found["fewlier: three reasons of each row (rows/s)"] = _rate(
        lambda: ours.explain(some).reasons(3), some
    )
    found["fewlier: update with ten labels (s; aim: at most 2)"] = seconds(
        lambda: ours.update(fresh[:10], np.repeat([0, 1], [7, 3])), 1
    )
    return found | time_parts(ours, fresh[: 2**14])


def time_parts(detector: AnomalyDetector, fresh: np.ndarray) -> dict[str, float]:
    """Time what a row costs in one thread: reading it, and each part of the score."""
    scorer = detector.model_.scorer
    table = Table.of(fresh).renamed(scorer.encoder.schema.names)
    encoded = detector.model_.encode(table)
    chunks = [Rows.of(encoded.take(np.arange(s, s + 1024))) for s in range(0, len(fresh), 1024)]
    before: list[dict[str, Tensor]] = [{} for _ in chunks]
    per_row = 1e6 / len(fresh)
    found = {"reading (us/row)": per_row * seconds(lambda: detector.model_.encode(table))}
    with one_thread():
        for _, part in scorer.addends:

            def score(part: Part = part) -> None:
                for rows, known in zip(chunks, before, strict=True):
                    known[part.name] = part.contributions(rows, known)

            found[f"{part.name} (us/row)"] = per_row * seconds(score)
    return found


def _rate(run: Callable[[], object], scored: np.ndarray) -> float:
    return len(scored) / seconds(run)


def measure_memory(n: int) -> None:
    """Print the peak memory of a fit in this process, before and after."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    X, y = rows(n, 20), np.repeat([0, 1], [n - 6, 6])
    AnomalyDetector(random_state=0, training=Training(max_epochs=1)).fit(X, y)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"before": before / 1024, "after": after / 1024}))


def report_memory() -> dict[str, float]:
    """Fit in fresh processes and read their peak memory."""
    result = {}
    for n in (10**4, 10**5, 10**6):
        code = f"from fewlier_bench.studies.speed import measure_memory; measure_memory({n})"
        command = [sys.executable, "-c", code]
        out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        result[f"peak memory of a fit, {n:,} x 20 (MB)"] = json.loads(out)["after"]
    return result


def report_starts() -> dict[str, float]:
    """Time what starts in new processes; the last line is what the packages below it take."""
    started = {
        "fewlier --help (s; aim: below 0.4)": ("-m", "fewlier", "--help"),
        "import of AnomalyDetector (s; aim: below 2.5)": (
            "-c",
            "from fewlier import AnomalyDetector",
        ),
        "import of torch and sklearn.base alone (s)": ("-c", "import torch, sklearn.base"),
    }
    # As where packages are installed: they are not compiled anew at every start.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    run = partial(subprocess.run, check=True, capture_output=True, env=environment)
    return {
        name: seconds(partial(run, [sys.executable, *words])) for name, words in started.items()
    }


def run(_: Namespace) -> None:
    """Run everything and print one line per figure."""
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads")
    for part in (compare_training, compare_scoring, compare_default, report_memory, report_starts):
        for name, value in part().items():
            print(f"{name:70s} {value:12,.2f}", flush=True)


STUDY = Study.of(run)
