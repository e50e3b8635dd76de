"""Made-up results: what a run may have written, around the numbers of the paper."""

import numpy as np

from fewlier_bench.reproduction.experiments import KS, METHODS
from fewlier_bench.reproduction.published import published_auc, published_datasets, setting_datasets
from fewlier_bench.runs.results import Result, Store

LAMBDAS = ("0", "0.1", "1", "10", "100", "1000", "10000")
DEDUPLICATED = ("Annthyroid", "Cardiotocography", "KDDCup99", "PageBlocks", "SpamBase", "Wilt")


def result(dataset="Pima", method="MADE", k=3, split=0, auc=0.8, **changes):
    facts = {
        "seed": 0,
        "parameter": "lambda",
        "value": "1",
        "validation_auc": auc,
        "average_precision": auc,
        "seconds": 1.0,
        "sha256": "00",
        "versions": "fewlier 0.1.0",
        "machine": "a machine",
        "date": "2025-01-31",
    }
    return Result(dataset=dataset, method=method, k=k, split=split, auc=auc, **facts | changes)


def around(center, rng, spread=0.02):
    return float(np.clip(center + rng.normal(0, spread), 0.3, 0.9999))


def paper_results(n_splits=10, seed=0):
    """Return AUCs of all methods around the published ones, with one effect per split."""
    rng = np.random.default_rng(seed)
    rows = []
    for k in KS:
        for dataset in setting_datasets(k):
            for split in range(n_splits):
                shift = rng.normal(0, 0.02)
                for method in (*METHODS, "fewlier"):
                    like = "Proposed" if method == "fewlier" else method
                    center = published_auc(dataset, like, k).auc + shift
                    rows.append(result(dataset, method, k, split, around(center, rng)))
    return rows


def lambda_results(n_splits=10, seed=1):
    rng = np.random.default_rng(seed)
    rows = []
    for k in KS:
        for dataset in setting_datasets(k):
            made, ours = (published_auc(dataset, m, k).auc for m in ("MADE", "Proposed"))
            best = rng.integers(1, len(LAMBDAS))
            for number, value in enumerate(LAMBDAS):
                closeness = max(0.0, 1 - abs(number - best) / 3) if number else 0.0
                center = made + closeness * (ours - made) - 0.02 * max(0, number - best)
                rows += [
                    result(dataset, f"lambda={value}", k, split, around(center, rng))
                    for split in range(n_splits)
                ]
    return rows


def variant_results(ks, datasets, n_splits=10, seed=2):
    rng = np.random.default_rng(seed)
    return [
        result(dataset, method, k, split, around(published_auc(dataset, method, k).auc, rng))
        for k in ks
        for dataset in datasets
        if published_auc(dataset, "Proposed", k)
        for method in ("MADE", "Proposed")
        for split in range(n_splits)
    ]


def time_results(seed=3):
    rng = np.random.default_rng(seed)
    return [
        result(name, "Proposed", 3, 0, seconds=dataset.training_seconds * rng.lognormal(1, 0.6))
        for name, dataset in published_datasets().items()
    ]


def write_results(folder, n_splits=10):
    """Write a folder of results as a full run does."""
    store = Store(folder)
    datasets = list(published_datasets())
    store.append("paper", paper_results(n_splits))
    store.append("lambdas", lambda_results(n_splits))
    store.append("three_validation_anomalies", variant_results((1, 5), datasets, n_splits))
    store.append("deduplicated", variant_results((3,), DEDUPLICATED, n_splits))
    store.append("times", time_results())
    return store
