"""`Steps`: rules of one threshold each, added up to a step function of every feature."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias, final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from fewlier.modelfile.state import State, require

Rule: TypeAlias = tuple[int, float, float, float]
"""A feature, a threshold, and what a row scores that is not above it, and one that is."""

MAX_STEPS = 1000
"""Thresholds of a feature."""


@final
@dataclass(frozen=True, eq=False)
class Steps:
    r"""s(x) = \sum_b \sum_f v_bf(x_f): every bag b has a step function of each feature f.

    Parameters
    ----------
    thresholds : tensor (f, q)
        Where the steps of each feature are, in ascending order; the largest number where it has
        fewer than others.
    values : tensor (b, f, q + 1)
        What a value before each step scores, and last one after all of them.
    """

    thresholds: Float[Tensor, "f q"]
    values: Float[Tensor, "b f p"]

    @classmethod
    def from_rules(
        cls, bags: Sequence[Sequence[Rule]], n_features: int, device: torch.device
    ) -> "Steps":
        """Add up the rules of each bag."""
        found = [
            sorted({t for bag in bags for f, t, *_ in bag if f == n}) for n in range(n_features)
        ]
        q = max(1, *map(len, found))
        thresholds = np.full((n_features, q), np.finfo(np.float32).max, dtype=np.float32)
        for n, some in enumerate(found):
            thresholds[n, : len(some)] = some
        values = np.zeros((len(bags), n_features, q + 1))
        for b, bag in enumerate(bags):
            for feature, threshold, below, above in bag:
                place = np.searchsorted(thresholds[feature], np.float32(threshold))
                values[b, feature, : place + 1] += below
                values[b, feature, place + 1 :] += above
        return cls(torch.from_numpy(thresholds).to(device), torch.from_numpy(values).to(device))

    def gains(
        self, x: Float[Tensor, "n f"], weights: Float[Tensor, "n b"] | None = None
    ) -> Float[Tensor, "n f"]:
        """Return what rows score by each feature; bags may weigh differently for each row."""
        place = torch.searchsorted(self.thresholds, x.T.contiguous())  # (f, n)
        if weights is None:
            return self.total.gather(1, place).T
        bags = zip(weights.T, self.values, strict=True)
        return torch.stack([w * values.gather(1, place) for w, values in bags]).sum(0).T

    @cached_property
    def total(self) -> Float[Tensor, "f p"]:
        """The sum over the bags."""
        return self.values.sum(0)

    def state(self) -> State:
        """Return what a model file holds of them: the sum over the bags."""
        arrays = {"thresholds": self.thresholds, "values": self.total}
        return State({}, {name: array.cpu().numpy() for name, array in arrays.items()})

    @classmethod
    def from_state(cls, state: State, n_features: int, device: torch.device) -> "Steps":
        """Inverse of `state`, checked."""
        thresholds = state.array("thresholds", np.float32, (n_features, None))
        n_steps = thresholds.shape[1]
        values = state.array("values", np.float64, (n_features, n_steps + 1))
        require(1 <= n_steps <= MAX_STEPS, f"its rules do not have 1 to {MAX_STEPS} thresholds.")
        require(bool((np.diff(thresholds) >= 0).all()), "thresholds of its rules are not in order.")
        return cls(*(torch.from_numpy(part).to(device) for part in (thresholds, values[None])))
