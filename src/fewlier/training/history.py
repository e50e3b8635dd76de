"""How members fared in training, small enough for a model file."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal, final

import numpy as np

from fewlier.state import State, require

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

    def state(self) -> State:
        """Return what a model file holds of it."""
        return State(asdict(self) | {"epochs": list(self.epochs), "values": list(self.values)})

    @classmethod
    def from_state(cls, state: State) -> "MemberCurve":
        """Inverse of `state`, checked."""
        epochs, values = state.counts("epochs"), state.numbers("values")
        require(len(epochs) == len(values), f"{state.name!r} has no value for each epoch.")
        return cls(
            state.number("lam", least=0),
            state.count("fold"),
            state.number("weight", least=0, most=1),
            state.count("best_epoch"),
            tuple(epochs),
            tuple(values),
        )


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
