"""A table with a column of every kind, and a detector's labels for it."""

import numpy as np
import pandas as pd

SELECTIONS = ["average", "best"]
N, N_ANOMALIES = 300, 6
LABELS = np.repeat([1, 0], [N_ANOMALIES, N - N_ANOMALIES])
ROW_0 = np.arange(N) == 0


def patients(n=N, seed=0, n_anomalies=N_ANOMALIES):
    """Return a table with a column of every kind; the first rows weigh too much."""
    rng = np.random.default_rng(seed)
    height = rng.normal(170, 10, n)
    weight = height - 100 + rng.normal(0, 3, n) + 40 * (np.arange(n) < n_anomalies)
    return pd.DataFrame(
        {
            "height": height,
            "weight": weight,
            "visits": rng.poisson(6, n).astype(float),
            "stars": rng.integers(1, 6, n).astype(float),
            "spend": rng.lognormal(2, 1.5, n),
            "insured": rng.integers(0, 2, n).astype(float),
            "city": rng.choice(["Bern", "Oslo", "Rome"], n),
            "smoker": rng.random(n) < 0.3,
        }
    )


def with_missing_cells(table, share=0.2, seed=0):
    rng = np.random.default_rng(seed)
    cells = table.astype({"smoker": object})
    return cells.mask(rng.random(table.shape) < share, None)


def typical(**changes):
    """Return one unremarkable patient, some cells changed."""
    cells = {
        "height": 170.0,
        "weight": 70.0,
        "visits": 6.0,
        "stars": 3.0,
        "spend": 8.0,
        "insured": 1.0,
        "city": "Oslo",
        "smoker": False,
    }
    return pd.DataFrame([cells | changes])


NOTHING = typical().astype(object).mask(np.ones((1, 8), dtype=bool), None)
