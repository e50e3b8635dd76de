"""What the paper printed: AUCs and their bold type, counts of the tables, seconds of training.

The numbers come from Tables 1 to 3 and the section "Results" of T. Iwata and Y. Yamanaka
(2019), "Supervised Anomaly Detection based on Deep Autoregressive Density Estimators". They are
kept in `published_auc.csv` and `published_datasets.csv` next to this file.
"""

import csv
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from statistics import fmean
from typing import NamedTuple, final

from fewlier_bench.reproduction.experiments import SUPERVISED, UNSUPERVISED


class PublishedAuc(NamedTuple):
    """A printed AUC, and whether it is in bold type: not separated from the best of its row."""

    auc: float
    is_bold: bool


@final
@dataclass(frozen=True)
class PublishedDataset:
    """A row of the paper's Table 1, and how long its method took to train."""

    n_rows: int
    n_columns: int
    n_anomalies: int
    anomaly_rate: float
    training_seconds: float


@cache
def published_datasets() -> dict[str, PublishedDataset]:
    """Return the paper's Table 1 by name of the table, in its order."""
    return {
        row["dataset"]: PublishedDataset(
            int(row["instances"]),
            int(row["attributes"]),
            int(row["anomalies"]),
            float(row["anomaly_rate"]),
            float(row["training_seconds"]),
        )
        for row in _read("published_datasets.csv")
    }


def published_auc(dataset: str, method: str, k: int) -> PublishedAuc | None:
    """Return what the paper printed for `k` training anomalies; None where it printed nothing.

    The paper prints its unsupervised methods once, with k = 3, and says that they are the same for
    the other k; their bold type is that of k = 3.
    """
    if not _is_in_setting(dataset, k):
        return None
    return _printed().get((dataset, method, _printed_k(method, k)))


def published_average(method: str, k: int, datasets: Collection[str]) -> float | None:
    """Return the paper's average over these tables: as printed where it has the same ones.

    None if the paper has no number for one of them.
    """
    rows = [published_auc(dataset, method, k) for dataset in datasets]
    known = [row.auc for row in rows if row is not None]
    if not known or len(known) < len(rows):
        return None
    printed_k = _printed_k(method, k)
    if set(datasets) == set(setting_datasets(printed_k)):
        return _printed()["average", method, printed_k].auc
    return fmean(known)


def setting_datasets(k: int) -> tuple[str, ...]:
    """Return the tables of the paper's setting with `k` training anomalies, in its order."""
    return tuple(name for name in published_datasets() if _is_in_setting(name, k))


def _is_in_setting(dataset: str, k: int) -> bool:
    return (dataset, SUPERVISED[0], k) in _printed()


def _printed_k(method: str, k: int) -> int:
    return 3 if method in UNSUPERVISED else k


@cache
def _printed() -> dict[tuple[str, str, int], PublishedAuc]:
    return {
        (row["dataset"], row["method"], int(row["training_anomalies"])): PublishedAuc(
            float(row["auc"]), row["bold"] == "1"
        )
        for row in _read("published_auc.csv")
    }


def _read(name: str) -> Iterator[dict[str, str]]:
    text = files("fewlier_bench.reproduction").joinpath(name).read_text("utf-8")
    yield from csv.DictReader(text.splitlines())
