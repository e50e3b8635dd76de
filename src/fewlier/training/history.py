"""How members fared in training, small enough for a model file."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, final

import numpy as np

from fewlier.state import fields_of, is_finite_float, require

CriterionName = Literal["auc", "smooth_auc", "likelihood", "reconstruction"]

MAX_POINTS = 100
"""Epochs of a member that are kept; more would draw the same line."""


@final
@dataclass(frozen=True)
class MemberHistory:
    """How one member fared.

    `curve` is its validation criterion after each epoch, with a few passes; `criterion` is that of
    the best epoch with the passes that it scores with: `auc` or `smooth_auc`, or where no anomaly
    was held back the mean of validation normals: log p, `likelihood`, or minus their error,
    `reconstruction`.
    """

    lam: float
    fold: int
    seed: int
    n_anomalies: int
    curve: tuple[float, ...]
    best_epoch: int
    criterion_name: CriterionName
    criterion: float
    weight: float
    status: Literal["kept", "left out", "diverged"]


@final
@dataclass(frozen=True)
class MemberCurve:
    """The validation criterion of one member over its epochs, of which some may be left out.

    An update judges its start too: its first epoch is 0. `weight` is the member's in the score.
    """

    lam: float
    fold: int
    weight: float
    best_epoch: int
    epochs: tuple[int, ...]
    values: tuple[float, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return asdict(self) | {"epochs": list(self.epochs), "values": list(self.values)}

    @classmethod
    def from_json(cls, record: object) -> "MemberCurve":
        """Inverse of `to_json`; raises `FormatError` for what it cannot have written."""
        names = ("lam", "fold", "weight", "best_epoch", "epochs", "values")
        lam, fold, weight, best_epoch, epochs, values = fields_of(record, "a curve", names)
        require(is_finite_float(lam) and lam >= 0, "the lambda of a curve is no number >= 0.")
        is_share = is_finite_float(weight) and 0 <= weight <= 1
        require(is_share, "the weight of a curve is no share.")
        require(all(map(_is_count, (fold, best_epoch))), "the epoch of a curve is no count.")
        is_lists = isinstance(epochs, list) and isinstance(values, list)
        require(is_lists and len(epochs) == len(values), "a curve has no value for each epoch.")
        is_curve = all(map(_is_count, epochs)) and all(map(is_finite_float, values))
        require(is_curve, "a curve is no list of numbers.")
        return cls(lam, fold, weight, best_epoch, tuple(epochs), tuple(values))


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0


def curves_of(history: Sequence[MemberHistory], first_epoch: int) -> tuple[MemberCurve, ...]:
    """Return the curves of a fit's members, to five digits; one that diverged ends before it."""
    return tuple(_curve(line, first_epoch) for line in history)


def _curve(line: MemberHistory, first_epoch: int) -> MemberCurve:
    values = np.asarray(line.curve)
    finite = np.flatnonzero(np.isfinite(values))
    kept = np.unique(np.linspace(0, len(finite) - 1, MAX_POINTS).round().astype(int))
    index = finite[kept] if len(finite) else finite
    return MemberCurve(
        float(line.lam),
        int(line.fold),
        float(line.weight),
        int(line.best_epoch),
        tuple(int(i) + first_epoch for i in index),
        tuple(float(f"{values[i]:.5g}") for i in index),
    )
