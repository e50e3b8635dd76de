"""How the members of the density train: what a user sets, and what that means for a selection."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite
from numbers import Real
from typing import Literal, TypeAlias, final

from sklearn.base import BaseEstimator

from fewlier.density.base import POSITIVE_INTEGER, is_positive_integer
from fewlier.errors import UserError, check_parameter
from fewlier.training.objective import Criterion

Selection = Literal["average", "best"]
Number: TypeAlias = float | int
"""What `float` means to a type checker; the run-time checks of the tests tell them apart."""

MAX_STEPS: dict[Selection, int] = {"average": 30, "best": 100}
"""Steps of an epoch: in an average the density is one part of several, and trains quickly."""


@final
@dataclass(frozen=True)
class Settings:
    """How to train; the paper's are Adam at 1e-3 and the best of 100 epochs.

    An epoch takes at most `max_steps` steps: on a large table it visits a fresh sample of the
    normals, and a fit of a million rows trains no longer than one of ten thousand. With
    `keep_last` the last epoch is kept in place of the best.
    """

    max_epochs: int = 100
    patience: int | None = None
    batch_size: int = 100
    learning_rate: float = 1e-3
    max_steps: int = 100
    criterion: Criterion = "smooth_auc"
    keep_last: bool = False


@final
class Training(BaseEstimator):
    """How the density is trained.

    Parameters
    ----------
    lambdas : sequence of float
        Weights of the ranking term, and so of the labelled anomalies; one density for each.
    max_epochs, patience : int, int or None
        A member stops training if its validation criterion has not improved for `patience`
        epochs; with None it always takes `max_epochs`. The best epoch is kept. An epoch has at
        most 30 batches (100 with "best"); on larger tables each epoch is a fresh sample.
    batch_size : int
        Normal rows in a step; up to as many labelled anomalies join each step.
    learning_rate : float
        Step size of Adam.

    Examples
    --------
    >>> from fewlier import AnomalyDetector, Training
    >>> detector = AnomalyDetector(training=Training(max_epochs=50))
    >>> detector.set_params(training__patience=None).training
    Training(max_epochs=50, patience=None)
    """

    def __init__(
        self,
        *,
        lambdas: Sequence[Number] = (0.1, 1000),
        max_epochs: int = 20,
        patience: int | None = 10,
        batch_size: int = 64,
        learning_rate: Number = 5e-3,
    ) -> None:
        self.lambdas = lambdas
        self.max_epochs = max_epochs
        self.patience = patience
        self.batch_size = batch_size
        self.learning_rate = learning_rate

    def checked(self) -> "Training":
        """Return the same settings in plain numbers; a wrong one raises a `UserError`."""
        lambdas, patience, rate = self.lambdas, self.patience, self.learning_rate
        is_sequence = isinstance(lambdas, Iterable) and not isinstance(lambdas, str)
        check_parameter(
            "lambdas", lambdas, is_sequence, "a sequence of numbers, such as (0.1, 1000)"
        )
        lambdas = tuple(lambdas)
        are_weights = len(lambdas) > 0 and all(_is_number(lam) and lam >= 0 for lam in lambdas)
        check_parameter("lambdas", lambdas, are_weights, "finite numbers >= 0, at least one")
        for name in ("max_epochs", "batch_size"):
            value = getattr(self, name)
            check_parameter(name, value, is_positive_integer(value), POSITIVE_INTEGER)
        is_patience = patience is None or is_positive_integer(patience)
        check_parameter("patience", patience, is_patience, f"{POSITIVE_INTEGER}, or None")
        check_parameter("learning_rate", rate, _is_number(rate) and rate > 0, "a positive number")
        return Training(
            lambdas=tuple(map(float, lambdas)),
            max_epochs=int(self.max_epochs),
            patience=patience and int(patience),
            batch_size=int(self.batch_size),
            learning_rate=float(rate),
        )

    def settings(self, selection: Selection) -> Settings:
        """Return what the steps of training take, where members are selected in this way."""
        return Settings(
            self.max_epochs,
            self.patience,
            self.batch_size,
            self.learning_rate,
            MAX_STEPS[selection],
            "auc" if selection == "best" else "smooth_auc",
        )


def read_training(training: object) -> Training:
    """Return the settings that a detector's parameter `training` asks for, checked."""
    training = Training() if training is None else training
    if isinstance(training, Training):
        return training.checked()
    expected = "an object such as Training(max_epochs=50), or None"
    raise UserError(parameter="training", expected=expected, got=training)


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and isfinite(value)
