"""The demonstration: scikit-learn's breast-cancer table, a handful of malignant rows labelled."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from rich.table import Table as Grid
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_auc_score

from fewlier.files.writing import create_table

if TYPE_CHECKING:
    from rich.console import Console

    from fewlier.detector import AnomalyDetector

# A malignant tumour that is missed is worse than some benign ones that are looked at.
FALSE_ALARM_RATE = 0.05
N_SHOWN = 5
TABLES = "train.csv", "test.csv"
LABEL = "malignant"
NUMBER = "tumour"


@final
@dataclass(frozen=True)
class Split:
    """A table of measurements with its labels (1 = malignant), and what is trained and tested."""

    table: pa.Table
    labels: npt.NDArray[np.int64]
    training: npt.NDArray[np.int64]
    test: npt.NDArray[np.int64]


def breast_cancer(n_labels: int, seed: int) -> Split:
    """Draw 80 % of the benign rows and a handful of malignant ones for training."""
    data = load_breast_cancer()
    labels = (data.target == 0).astype(np.int64)
    table = pa.table(dict(zip(data.feature_names.tolist(), data.data.T, strict=True)))
    rng = np.random.default_rng(seed)
    benign = rng.permutation(np.flatnonzero(labels == 0))
    malignant = rng.permutation(np.flatnonzero(labels == 1))
    n_benign = round(0.8 * len(benign))
    return Split(
        table,
        labels,
        np.concatenate([benign[:n_benign], malignant[:n_labels]]),
        np.concatenate([benign[n_benign:], malignant[n_labels:]]),
    )


def write_tables(split: Split, folder: Path) -> None:
    """Write the training and test rows as CSV files, to try the other commands on."""
    labelled = split.table.append_column(LABEL, pa.array(split.labels))
    for name, rows in zip(TABLES, (split.training, split.test), strict=True):
        with create_table(folder / name) as write:
            write(labelled.take(rows))


def test_rows(split: Split) -> pa.Table:
    """Return the test rows with their labels, and with their numbers in the whole table."""
    rows = split.table.append_column(LABEL, pa.array(split.labels)).take(split.test)
    return rows.append_column(NUMBER, pa.array(split.test))


def run(console: "Console", n_labels: int, seed: int) -> "tuple[AnomalyDetector, Split]":
    """Fit with and without labels, compare, and show the most anomalous rows.

    Returns the detector that had labels, and its rows.
    """
    split = breast_cancer(n_labels, seed)
    labels = split.labels[split.training]
    console.print(
        f"[bold]Breast-cancer table[/bold]: {split.table.num_rows} tumours, "
        f"{split.table.num_columns} measurements each. Training: {(labels == 0).sum()} benign "
        f"(normal) and {n_labels} malignant (anomalous). Testing on the other "
        f"{len(split.test)}, of which {split.labels[split.test].sum()} are malignant.\n"
    )
    with console.status("Fitting without the malignant rows ..."):
        unlabelled = _fitted(split, split.training[labels == 0], seed)
    with console.status("Fitting with them ..."):
        labelled = _fitted(split, split.training, seed)
    test, truth = split.table.take(split.test), split.labels[split.test]
    for name, detector in (("no labels", unlabelled), (f"{n_labels} labels", labelled)):
        auc = roc_auc_score(truth, detector.anomaly_score(test))
        console.print(f"Test AUC with {name:<10} [bold]{auc:.3f}[/bold]")
    console.print(f"\n[bold]What the second fit did[/bold]\n{labelled.summary_}\n", highlight=False)
    flagged = labelled.predict(test)
    console.print(
        f"Above the threshold: {flagged[truth == 1].mean():.0%} of the malignant test rows and "
        f"{flagged[truth == 0].mean():.0%} of the benign ones (asked for: at most "
        f"{FALSE_ALARM_RATE:.0%}).\n"
    )
    console.print(_most_anomalous(labelled, split))
    return labelled, split


def _fitted(split: Split, rows: npt.NDArray[np.int64], seed: int) -> "AnomalyDetector":
    from fewlier.detector import AnomalyDetector  # torch takes a second to load

    detector = AnomalyDetector(false_alarm_rate=FALSE_ALARM_RATE, random_state=seed)
    return detector.fit(split.table.take(rows), split.labels[rows])


def _most_anomalous(detector: "AnomalyDetector", split: Split) -> Grid:
    test = split.table.take(split.test)
    explanation = detector.explain(test)
    grid = Grid(title=f"Most anomalous test rows (score in {detector.score_unit_})")
    for heading in ("row", "score", "truth", "columns that made it so"):
        grid.add_column(heading, justify="right" if heading == "score" else "left")
    rows = np.argsort(-explanation.score)[:N_SHOWN].tolist()
    for row, top in zip(rows, explanation.tops(rows), strict=True):
        truth = "malignant" if split.labels[split.test[row]] else "benign"
        reasons = "\n".join(map(str, top))
        grid.add_row(str(split.test[row]), f"{explanation.score[row]:.1f}", truth, reasons)
    return grid
