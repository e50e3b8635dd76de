"""What several test files build."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa

from fewlier import AnomalyDetector, Training
from fewlier.density import DENSITIES

SIZES = {name for settings in DENSITIES.values() for name in settings().get_params()}
QUICK = {"lambdas": (0, 10), "max_epochs": 10, "batch_size": 100, "learning_rate": 0.003}
TRAINING = {*Training().get_params()}
FEATURES = ["amount", "visits", "city"]


def small_density(name="made", **sizes):
    """Return small settings of a density; sizes that it does not have are left out."""
    settings = DENSITIES[name]()
    sizes = {"hidden": (16,), "n_orderings": 2} | sizes
    return settings.set_params(**{n: v for n, v in sizes.items() if n in settings.get_params()})


def small(density="made", **changes):
    """Return a detector that fits a few hundred rows in a second.

    Sizes of densities, such as `hidden`, may be given too; a density takes those that it has. So
    may what `Training` has, such as `max_epochs`.
    """
    settings = {
        "false_alarm_rate": 0.2,
        "random_state": 0,
    } | changes
    sizes = {name: settings.pop(name) for name in SIZES & set(settings)}
    own = {name: settings.pop(name) for name in TRAINING & settings.keys()}
    settings.setdefault("training", Training().set_params(**QUICK | own))
    if isinstance(density, str) and density in DENSITIES:
        density = small_density(density, **sizes)
    return AnomalyDetector(density=density, **settings)


def payments(n=200, seed=0):
    """Return a table of payments: an id, features of three kinds with gaps, a label with gaps."""
    rng = np.random.default_rng(seed)
    is_fraud = np.arange(n) % 20 == 3
    features = pd.DataFrame(
        {
            "amount": (rng.normal(50, 10, n) + 60 * is_fraud).round(2),
            "visits": rng.poisson(6, n).astype(float),
            "city": rng.choice(["Bern", "Oslo", "Rome"], n),
        }
    ).mask(rng.random((n, 3)) < 0.05, None)
    features.insert(0, "id", [f"{i:06d}" for i in range(n)])
    return features.assign(fraud=np.where(np.arange(n) % 5 == 4, np.nan, is_fraud))


def typed_rows(n=300, seed=0, zone="UTC"):
    """Return an Arrow table with columns of the types that files and engines have, with gaps."""
    rng = np.random.default_rng(seed)
    seconds = rng.integers(0, 90 * 86_400, n) + 1_700_000_000
    moments = pa.array(seconds * 10**6, pa.timestamp("us"))
    cents = [None if i % 17 == 0 else Decimal(int(c)) / 100 for i, c in enumerate(seconds % 9999)]
    columns = {
        "at": moments,
        "day": moments.cast(pa.date32(), safe=False),
        "price": pa.array(cents, pa.decimal128(10, 2)),
        "city": pa.array(rng.choice(["Bern", "Oslo", "Rome"], n)).dictionary_encode(),
        "visits": pa.array([None if i % 13 == 0 else i % 7 for i in range(n)], pa.int32()),
        "id": pa.array(range(n)),
    }
    return pa.table(columns | ({"zoned": moments.cast(pa.timestamp("us", zone))} if zone else {}))


def save_typed_model(path, zone="UTC"):
    """Write a model for `typed_rows` to a path, and return the path."""
    rows = typed_rows(zone=zone).drop_columns("id")
    small().fit(rows, np.where(np.arange(300) % 20 == 3, 1.0, np.nan)).save(path)
    return path


def visits(seed=0, n=120):
    """Return a table with columns of every kind, a tenth of its cells missing."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": rng.normal(40, 10, n) + 40 * (np.arange(n) < 6),
            "visits": rng.poisson(6, n).astype(float),
            "spend": rng.lognormal(2, 1.5, n),
            "insured": rng.integers(0, 2, n).astype(float),
            "city": rng.choice(["Bern", "Oslo", "Rome"], n),
        }
    )
    return table.mask(rng.random(table.shape) < 0.1, None)


def save_model(path):
    """Write a model for `payments` to a path, and return the path."""
    rows = payments()
    small().fit(rows[FEATURES], rows["fraud"]).save(path)
    return path
