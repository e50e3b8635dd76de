"""Small tables to label, with the truth."""

import numpy as np


def planted(n=200, n_anomalies=8, seed=0, d=4):
    """Return normal rows and, before them, anomalies of two kinds; and which rows these are."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[:n_anomalies, 0] += 6
    X[: n_anomalies // 2, 1] -= 6
    return X, np.arange(n) < n_anomalies


def mixed(n=60, seed=0):
    """Return columns of a table with numbers, categories, dates, gaps, text and an identifier."""
    rng = np.random.default_rng(seed)
    amount = rng.gamma(2, 50, size=n).round(2).astype(object)
    amount[3] = None
    days = np.datetime64("2024-01-01") + rng.integers(0, 300, size=n)
    return {
        "id": [f"row-{i}-{seed}" for i in range(n)],
        "amount": amount.tolist(),
        "shop": rng.choice(["north", "south", "east"], size=n).tolist(),
        "day": [str(day) for day in days],
        "visits": rng.poisson(3, size=n).tolist(),
        "note": [f"customer {i} wrote that all is well, {i * 7919 % 1000}" for i in range(n)],
    }
