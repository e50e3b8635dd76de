"""`Bagged`: what is learned from the labels, bag by bag."""

from abc import ABC, abstractmethod

import torch
from jaxtyping import Float
from torch import Tensor

from fewlier.modelfile.state import State


class Bagged(ABC):
    """Functions of features, one for each bag of rows, that add up to a score."""

    @abstractmethod
    def gains(
        self, x: Float[Tensor, "n f"], weights: Float[Tensor, "n b"] | None = None
    ) -> Float[Tensor, "n f"]:
        """Split the scores of n rows over the features; bags may weigh differently for each row."""

    def scores(
        self, x: Float[Tensor, "n f"], weights: Float[Tensor, "n b"] | None = None
    ) -> Float[Tensor, " n"]:
        """Return what n rows score."""
        return self.gains(x, weights).sum(1)

    @abstractmethod
    def state(self) -> State:
        """Return what a model file holds of it."""

    @classmethod
    @abstractmethod
    def from_state(cls, state: State, n_features: int, device: torch.device) -> "Bagged":
        """Inverse of `state`, checked."""
