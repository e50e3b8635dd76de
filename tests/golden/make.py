"""Writes the golden model file and what it must say; run it when the format changes.

python tests/golden/make.py
"""

import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from factories import small, visits

FOLDER = Path(__file__).parent


def main() -> None:
    detector = small(hidden=(8,), n_orderings=3, max_epochs=3, learning_rate=0.001)
    detector.fit(visits(), np.repeat([1, 0], [6, 114])).set_threshold(contamination=0.1)
    detector.save(FOLDER / "version_1.fewlier")
    table = visits(1).head(8)
    expected = {
        "rows": table.astype(object).where(table.notna(), None).to_dict("list"),
        "scores": detector.anomaly_score(table).tolist(),
        "proba": detector.predict_proba(table)[:, 1].tolist(),
        "threshold": detector.threshold_,
        "drifted": list(detector.drift(visits().assign(age=70.0)).columns),
    }
    text = json.dumps(expected, indent=2) + "\n"
    (FOLDER / "version_1.json").write_text(text, "utf-8")


if __name__ == "__main__":
    main()
