"""`MemberHistory`: how a member fared in training, small enough for a model file. No torch."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast, final, get_args

import numpy as np

from fewlier.modelfile.state import State, require

MAX_POINTS = 100
"""Epochs of a member that are kept; more would draw the same line."""

CriterionName = Literal["auc", "smooth_auc", "likelihood", "reconstruction"]
Status = Literal["kept", "left out", "diverged"]


@final
@dataclass(frozen=True)
class MemberHistory:
    """How one member fared.

    Parameters
    ----------
    lam, fold, seed : float, int, int
        Which member it is.
    n_anomalies : int
        Labelled anomalies that it trained on.
    status : {"kept", "left out", "diverged"}
        What became of it.
    weight : float
        Its weight in the ensemble.
    criterion_name : str
        What it was judged by: `auc` or `smooth_auc`, or where no anomaly was held out the mean of
        validation normals: log p, `likelihood`, or minus their error, `reconstruction`.
    criterion : float or None
        Its criterion at the best epoch, with the passes that it scores with; None if it diverged.
    best_epoch : int
        The epoch that was kept.
    epochs, values : tuple of int, tuple of float
        Its criterion after some of the epochs, with a few passes, to five digits.
    """

    lam: float
    fold: int
    seed: int
    n_anomalies: int
    status: Status
    weight: float
    criterion_name: CriterionName
    criterion: float | None
    best_epoch: int
    epochs: tuple[int, ...]
    values: tuple[float, ...]

    def state(self) -> State:
        """Return what a model file holds of it."""
        return State(vars(self) | {"epochs": list(self.epochs), "values": list(self.values)})

    @classmethod
    def from_state(cls, state: State) -> "MemberHistory":
        """Inverse of `state`, checked."""
        epochs, values = state.counts("epochs"), state.numbers("values")
        require(len(epochs) == len(values), f"{state.name!r} needs a value for each epoch.")
        return cls(
            state.number("lam", least=0),
            state.count("fold"),
            state.count("seed"),
            state.count("n_anomalies"),
            cast(Status, state.text("status", get_args(Status))),
            state.number("weight", least=0, most=1),
            cast(CriterionName, state.text("criterion_name", get_args(CriterionName))),
            state.number("criterion") if state.has("criterion") else None,
            state.count("best_epoch"),
            tuple(epochs),
            tuple(values),
        )


def thin_curve(curve: Sequence[float]) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Choose the epochs of a curve to keep, with their values; one that diverged ends before it."""
    finite = np.flatnonzero(np.isfinite(curve))
    places = np.unique(np.linspace(0, len(finite) - 1, MAX_POINTS).round().astype(int))
    kept = (finite[places] if len(finite) else finite).tolist()
    epochs = tuple(i + 1 for i in kept)
    return epochs, tuple(float(f"{curve[i]:.5g}") for i in kept)
