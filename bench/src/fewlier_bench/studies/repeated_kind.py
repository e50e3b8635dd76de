"""A kind of anomaly that nobody labelled and that repeats itself: who ranks it, and who does not.

    fewlier-bench repeated-kind --seeds 8

A made-up log of connections has 2,500 labelled normals and six labelled anomalies of one kind, a
scan. The test rows also hold a second kind, an upload that repeats one session: far from normals
in two skewed columns, `sent` and `received`, and as most normals are in all others. The first table
is the mean AUC of each kind by the whole score, by each of its parts, by a fit without the labels,
by an isolation forest and by the distance to the five nearest normals; the second is what each
column adds to the parts, on average over the uploads, in standard units, and what it weighs in
distances on either scale.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

from fewlier import AnomalyDetector
from fewlier.density.rows import Rows
from fewlier_bench.studies.grid import make_parser

N_NORMALS, N_LABELS, N_TEST = 2500, 6, (2000, 100, 100)
KINDS = ("normal", "scan", "upload")
TEXT = ["service", "flag"]


def normals(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Return normal connections: one in a hundred moves far more bytes than the others."""
    is_large = rng.random(n) < 0.01
    sent = np.where(is_large, rng.lognormal(10, 1.5, n), rng.lognormal(5.5, 1.2, n))
    received = np.where(is_large, rng.lognormal(11, 1.5, n), rng.lognormal(7, 1.8, n))
    lasts = rng.random(n) < 0.2
    columns = {
        "service": rng.choice(["http", "smtp", "dns"], n, p=[0.6, 0.3, 0.1]),
        "flag": rng.choice(["SF", "REJ", "S0"], n, p=[0.94, 0.05, 0.01]),
        "duration": np.where(lasts, rng.lognormal(3, 2, n), 0).round(),
        "sent": np.where(is_large | (rng.random(n) < 0.9), sent, 0).round(),
        "received": np.where(is_large | (rng.random(n) < 0.85), received, 0).round(),
        "count": 1 + rng.poisson(rng.gamma(1, 8, n)),
        "same_service": 1 + rng.poisson(rng.gamma(1, 8, n)),
    }
    columns |= {f"rate_{i}": rng.beta(0.3, 0.6, n).round(2) for i in range(6)}
    columns |= {f"hosts_{i}": rng.integers(1, 256, n) for i in range(3)}
    return pd.DataFrame(columns)


def scans(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Return the kind that is labelled: many connections that send nothing."""
    counts = rng.integers(100, 300, n)
    return normals(rng, n).assign(flag="S0", count=counts, rate_0=1.0, sent=0.0)


def uploads(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Return the kind that is not: one session again and again."""
    same = {"service": "http", "flag": "SF", "duration": 0.0, "sent": 54540.0, "received": 150000.0}
    same |= {f"rate_{i}": 0.0 for i in range(6)}
    near = {name: rng.integers(2, 6, n) for name in ("count", "same_service")}
    near |= {f"hosts_{i}": rng.integers(120, 140, n) for i in range(3)}
    return normals(rng, n).assign(**same, **near)


def parts_of(detector: AnomalyDetector, test: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return what each column adds to each part of the score, unweighted by the part's share."""
    model = detector.model_
    rows = Rows.of(model.encode(detector._table(test)), model.scorer.device)
    found: dict[str, np.ndarray] = {}
    for part in model.parts.values():
        found[part.name] = part.contributions(rows, found)
    return {name: pd.DataFrame(x[:, :-1], columns=test.columns) for name, x in found.items()}


def peers(train: pd.DataFrame, test: pd.DataFrame) -> dict[str, np.ndarray]:
    """Score by an isolation forest and by the distance to the five nearest normals."""
    both = pd.get_dummies(pd.concat([train, test]), columns=TEXT).to_numpy(np.float64)
    both = StandardScaler().fit(both[: len(train)]).transform(both)
    fitted, rows = both[: len(train)], both[len(train) :]
    distances, _ = NearestNeighbors(n_neighbors=5).fit(fitted).kneighbors(rows)
    forest = IsolationForest(random_state=0).fit(fitted)
    return {"isolation forest": -forest.score_samples(rows), "kNN distance": distances.mean(1)}


def aucs(scores: Mapping[str, np.ndarray], kind: np.ndarray) -> pd.DataFrame:
    """Return the AUC of each kind of anomaly against normals, by score."""
    found = {}
    for number in (1, 2):
        judged = (kind == 0) | (kind == number)
        found[KINDS[number]] = {
            name: roc_auc_score(kind[judged] == number, score[judged])
            for name, score in scores.items()
        }
    return pd.DataFrame(found)


def run(seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the AUCs of one draw, and what columns add to the parts on its uploads."""
    rng = np.random.default_rng(seed)
    train = normals(rng, N_NORMALS)
    X = pd.concat([train, scans(rng, N_LABELS)])
    y = np.repeat([0, 1], [N_NORMALS, N_LABELS])
    makers = zip((normals, scans, uploads), N_TEST, strict=True)
    test = pd.concat([make(rng, n) for make, n in makers], ignore_index=True)
    kind = np.repeat([0, 1, 2], N_TEST)
    detector = AnomalyDetector(random_state=seed).fit(X, y)
    parts = parts_of(detector, test)
    scores = {"fewlier": detector.anomaly_score(test)}
    scores |= {f"its {name}": part.sum(axis=1).to_numpy() for name, part in parts.items()}
    scores["without labels"] = AnomalyDetector(random_state=seed).fit(train).anomaly_score(test)
    columns = pd.DataFrame({name: part[kind == 2].mean() for name, part in parts.items()})
    neighbours: Any = detector.model_.parts["neighbours"]
    for space in (view.normals.space for view in neighbours.views):
        columns[f"weight, {space.coordinates.name}"] = space.weight.numpy()
    return aucs(scores | peers(train, test), kind), columns


def main(words: Sequence[str]) -> None:
    """Print the means over some draws."""
    parser = make_parser(__name__, __doc__)
    parser.add_argument("--seeds", type=int, default=8)
    found = [run(seed) for seed in range(parser.parse_args(words).seeds)]
    for table in zip(*found, strict=True):
        print((sum(table) / len(table)).round(3).to_string(), end="\n\n")
