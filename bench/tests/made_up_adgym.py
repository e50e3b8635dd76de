"""A made-up benchmark in place of ADGym's: two small tables, and what was 'published' of them.

As a program it is `fewlier-bench` on this benchmark, in a process without optional packages.
"""
# ruff: noqa: NPY002, TID251 - ADGym draws from numpy's global generator

import os
import sys
from pathlib import Path

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

from fewlier import Made, Training
from fewlier_bench.comparison import adgym_jobs, adgym_published
from fewlier_bench.data import adgym, hash_table

ABSENT = ("catboost", "deepod", "jinja2", "lightgbm", "pooch", "shap", "xgboost", "zuko")
SIZES = {"vowels": 300, "fault": 3050}  # fault is in dev, and has more rows than are drawn
TINY = {
    "density": Made(hidden=(4,), n_orderings=1),
    "training": Training(lambdas=(0, 10), max_epochs=1),
}


def make_table(name):
    """Return values and labels of a table."""
    rng = np.random.default_rng(SIZES[name])
    y = (np.arange(SIZES[name]) % 5 == 0).astype(np.int8)
    return rng.normal(size=(len(y), 3)) + 1.5 * y[:, None], y


def draw(y, n_labels, seed):
    """Return rows to train, which of them are labelled, and rows to test, as ADGym's code does."""
    state = np.random.get_state()
    np.random.seed(seed)
    rows = np.arange(len(y))
    if len(y) > 3000:
        rows = np.random.choice(rows, 3000, replace=False)
    train, test = train_test_split(rows, test_size=0.3, shuffle=True, stratify=y[rows])
    is_labelled = np.zeros(len(train), dtype=bool)
    is_labelled[np.random.choice(np.flatnonzero(y[train] == 1), n_labels, replace=False)] = True
    np.random.set_state(state)
    return train, is_labelled, test


def publish():
    """Return a file of numbers of naive Bayes, and of a method that is always worse."""
    lines = ["dataset,labels,seed,measure,naive Bayes,chance"]
    for name in SIZES:
        X, y = make_table(name)
        for n_labels in (5, 10, 20):
            for seed in (1, 2, 3):
                train, is_labelled, test = draw(y, n_labels, seed)
                scores = GaussianNB().fit(X[train], is_labelled).predict_proba(X[test])[:, 1]
                for measure, score in (
                    ("auc", roc_auc_score),
                    ("average_precision", average_precision_score),
                ):
                    found = score(y[test], scores)
                    lines.append(f"{name},{n_labels},{seed},{measure},{found:.6f},{seed / 10}")
    return "\n".join(lines)


def write_tables(folder):
    for name, table in entries().items():
        X, y = make_table(name)
        np.savez(folder / table.file, X=X, y=y)


def entries():
    """Return the catalogue of the made-up tables."""
    found = {}
    for name in SIZES:
        X, y = make_table(name)
        rows = adgym.drawn_rows(len(X))
        real = adgym.ADGYM[name]
        sha256 = hash_table(X[rows], y[rows])
        found[name] = adgym.AdgymTable(name, real.file, *X.shape, sha256, real.is_dev)
    return found


def install(text):
    """Put the made-up benchmark in the place of the real one; detectors fit at once."""
    found = entries()
    adgym.ADGYM.clear()
    adgym.ADGYM.update(found)
    adgym_jobs.DETECTORS["fewlier"] = TINY
    adgym_published.published_results.cache_clear()
    adgym_published._read = lambda: text


if __name__ == "__main__":
    sys.modules |= dict.fromkeys(ABSENT)  # to import one of them is an error
    install(Path(os.environ["PUBLISHED"]).read_text("utf-8"))
    from fewlier_bench.cli import run

    run()
