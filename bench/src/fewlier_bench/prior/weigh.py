"""How well weights rank the rows of tables that they have not seen."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

import numpy as np
import numpy.typing as npt
import torch
from sklearn.metrics import average_precision_score, roc_auc_score
from torch import Tensor

from fewlier_bench.data.few_labels import clusters
from fewlier_bench.prior.network import Label, Network

N_LABELS: Final = 6
_MAX_CONTEXT: Final = 512
_MAX_NORMALS: Final = 400
_MAX_ANOMALIES: Final = 150
_MIN_TESTED: Final = 3
SITUATIONS: Final = ("none", "six", "unseen")
"""No labels; six of all kinds; six of one cluster of anomalies, asked about the others."""


@final
@dataclass(frozen=True, eq=False)
class Question:
    """Rows of a table that are known, rows to rank, and the truth of these."""

    table: str
    situation: str
    seed: int
    normals: Tensor
    anomalies: Tensor
    asked: Tensor
    is_anomaly: npt.NDArray[np.int8]


def read_questions(
    folders: Iterable[Path], situations: Sequence[str], seeds: Iterable[int]
) -> list[Question]:
    """Draw questions about all `.npz` tables (X, y) of some folders."""
    found = []
    for folder in folders:
        for path in sorted(folder.glob("*.npz")):
            with np.load(path) as file:
                X, y = file["X"].astype(np.float64), file["y"].astype(np.int8)
            for seed in seeds:
                for situation in situations:
                    question = _draw(f"{folder.name}/{path.stem}", X, y, situation, seed)
                    found += [question] if question else []
    return found


def _draw(
    table: str, X: npt.NDArray[np.float64], y: npt.NDArray[np.int8], situation: str, seed: int
) -> Question | None:
    rng = np.random.default_rng(seed)
    normals, anomalies = (rng.permutation(np.flatnonzero(y == label)) for label in (0, 1))
    n_tested = min(_MAX_NORMALS, len(normals) // 3)
    labelled, tested = anomalies[:N_LABELS], anomalies[N_LABELS:]
    if situation == "unseen":
        kinds = clusters(X, y)[anomalies]
        known = kinds == kinds[seed % len(kinds)]
        labelled, tested = anomalies[known][:N_LABELS], anomalies[~known]
    if len(tested) < _MIN_TESTED or len(labelled) < N_LABELS:
        return None
    if situation == "none":
        labelled = labelled[:0]
    tested = tested[:_MAX_ANOMALIES]
    rows = np.concatenate([normals[:n_tested], tested])
    truth = np.repeat(np.array([0, 1], dtype=np.int8), [n_tested, len(tested)])
    context = normals[n_tested : n_tested + _MAX_CONTEXT]
    shrunk = torch.from_numpy(_shrink(X))
    parts = shrunk[context], shrunk[labelled], shrunk[rows]
    return Question(table, situation, seed, *parts, truth)


def _shrink(X: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """Return float32 of columns less their medians, so that no digits are lost."""
    middle = np.nanmedian(X, axis=0)
    shrunk = (X - middle) / np.maximum(np.nanstd(X, axis=0), 1e-12)
    return np.asarray(shrunk, dtype=np.float32)


@torch.no_grad()
def answer(network: Network, question: Question) -> npt.NDArray[np.float64]:
    """Return log odds of the rows that a question asks about."""
    device = next(network.parameters()).device
    n, k, q = (len(t) for t in (question.normals, question.anomalies, question.asked))
    values = torch.cat([question.normals, question.anomalies, question.asked])[None].to(device)
    labels = torch.tensor([Label.NORMAL] * n + [Label.ANOMALY] * k + [Label.ASKED] * q)
    is_category = torch.zeros(1, values.shape[-1], dtype=torch.bool, device=device)
    found = network(values, is_category, labels[None].to(device), n, k)
    return np.asarray(found[0].double().cpu())


def weigh(network: Network, questions: Iterable[Question]) -> list[dict[str, object]]:
    """Return a row for each question, with AUC and average precision."""
    rows: list[dict[str, object]] = []
    for question in questions:
        scores = answer(network, question)
        rows.append(
            {
                "table": question.table,
                "situation": question.situation,
                "seed": question.seed,
                "auc": float(roc_auc_score(question.is_anomaly, scores)),
                "ap": float(average_precision_score(question.is_anomaly, scores)),
            }
        )
    return rows


def means(rows: Iterable[dict[str, object]]) -> dict[str, float]:
    """Return mean AUC and average precision by folder and situation, such as `dev2 six auc`."""
    found: dict[str, list[float]] = {}
    for row in rows:
        for measure in ("auc", "ap"):
            name = f"{str(row['table']).partition('/')[0]} {row['situation']} {measure}"
            found.setdefault(name, []).append(float(str(row[measure])))
    return {name: math.fsum(values) / len(values) for name, values in found.items()}
