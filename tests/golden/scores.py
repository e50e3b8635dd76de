"""Golden scores: what small fits of every make must give, whatever is moved in the code.

python tests/golden/scores.py            compare to the last digits; same machine, same torch
python tests/golden/scores.py --write    write scores.json anew, in a commit that says why
"""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1]))
from factories import payments, small, visits

FILE = Path(__file__).with_name("scores.json")
LABELS = np.repeat([1.0, 0.0], [6, 114])
SOME = np.where(np.arange(120) < 6, 1.0, np.where(np.arange(120) % 2, 0.0, np.nan))
N_ROWS = 12  # of each case whose scores are kept


def dated(seed=0):
    """Return payments with the moment they were made, and whether they were fraud."""
    table = payments(seed=seed)
    minutes = np.random.default_rng(seed).integers(0, 200 * 24 * 60, len(table))
    moments = np.datetime64("2024-03-01T00:00") + minutes.astype("timedelta64[m]")
    return table.drop(columns=["id", "fraud"]).assign(moment=pd.Series(moments)), table["fraud"]


def numbers(seed=0):
    """Return 300 rows of eight numbers, six of them anomalies."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 8)) @ rng.normal(size=(8, 8))
    y = np.arange(300) < 6
    X[y, :2] += 8
    return X, y


def fitted_on_visits(y=LABELS, **changes):
    return small(**changes).fit(visits(), y), visits(1)


def fitted_on_dates():
    return small().fit(*dated()), dated(1)[0]


def fitted_on_numbers(**changes):
    return small(**changes).fit(*numbers()), numbers(1)[0]


def fitted_with_validation():
    validation = visits(2), LABELS
    return small(selection="best").fit(visits(), LABELS, validation=validation), visits(1)


def updated():
    detector, rows = fitted_on_visits(y=SOME)
    return detector.update(visits(3).head(40), np.repeat([1.0, 0.0], [6, 34])), rows


CASES = {
    "average": fitted_on_visits,
    "average, some unlabelled": lambda: fitted_on_visits(y=SOME),
    "average, unlabelled as normal": lambda: fitted_on_visits(y=SOME, unlabelled="normal"),
    "average, no labels": lambda: fitted_on_visits(y=None),
    "average, numbers": fitted_on_numbers,
    "average, two labels": lambda: fitted_on_visits(y=np.repeat([1.0, 0.0], [2, 118])),
    "average, dates": fitted_on_dates,
    "average, updated": updated,
    "average, vae": lambda: fitted_on_visits(density="vae"),
    "average, flow": lambda: fitted_on_visits(density="flow"),
    "average, autoencoder": lambda: fitted_on_visits(density="autoencoder"),
    "best": lambda: fitted_on_visits(selection="best"),
    "best, numbers": lambda: fitted_on_numbers(selection="best"),
    "best, validation": fitted_with_validation,
    "best, vae": lambda: fitted_on_visits(density="vae", selection="best"),
    "best, flow": lambda: fitted_on_visits(density="flow", selection="best"),
    "best, autoencoder": lambda: fitted_on_visits(density="autoencoder", selection="best"),
}


def observe(name):
    """Fit a case, and return what must stay: scores, decisions, reasons."""
    detector, rows = CASES[name]()
    rows = rows[:N_ROWS]
    explanation = detector.explain(rows)
    return {
        "threshold": detector.threshold_,
        "scores": detector.anomaly_score(rows).tolist(),
        "p_values": detector.p_value(rows).tolist(),
        "decisions": detector.predict(rows).tolist(),
        "contributions": explanation.contributions.tolist(),
    }


def expected():
    return json.loads(FILE.read_text("utf-8"))


def differences(found, kept, tolerance):
    """Return which of two observations' numbers differ by more than a share of their size."""
    for name in ("threshold", "scores", "contributions"):
        if not np.allclose(found[name], kept[name], rtol=tolerance, atol=tolerance):
            yield name
    yield from (name for name in ("p_values", "decisions") if found[name] != kept[name])


def main() -> None:
    if sys.argv[1:] == ["--write"]:
        FILE.write_text(json.dumps({name: observe(name) for name in CASES}) + "\n", "utf-8")
        return
    kept, n_wrong = expected(), 0
    for name in CASES:
        found = observe(name)
        wrong = list(differences(found, kept[name], 1e-9))
        n_wrong += len(wrong)
        print(f"{name}: {', '.join(wrong) or 'equal'}")  # noqa: T201
    sys.exit(min(n_wrong, 1))


if __name__ == "__main__":
    main()
