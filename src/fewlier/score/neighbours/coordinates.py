"""Scales on which two values of an input are near or far."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, TypeAlias, final

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float
from scipy.special import ndtri
from torch import Tensor

from fewlier.modelfile.state import State, require
from fewlier.table.arrays import Floats

Singles: TypeAlias = npt.NDArray[np.float32]

# An input that varies less is constant, and its differences count as they are.
_CONSTANT = 1e-9
# Knots between which normal scores are interpolated.
_N_KNOTS = 64
# Normal scores of a billion rows are nearer to 0.
_MAX_SCORE = 7.0


class Coordinates(ABC):
    """Where the values of each input lie on a scale, about 0 and spread by about 1.

    Attributes
    ----------
    name : str
        Its name in a model file.
    limit : float
        How far from 0 a value lies at most.
    """

    name: ClassVar[str]
    limit: ClassVar[float]

    @classmethod
    @abstractmethod
    def fit(cls, inputs: Floats) -> "Coordinates":
        """Take the scales from normal rows (n, i)."""

    @abstractmethod
    def place(self, inputs: Float[Tensor, "n i"]) -> Float[Tensor, "n i"]:
        """Return where values lie."""

    @abstractmethod
    def squared_without(
        self,
        own: Float[Tensor, "k 1 i"],
        others: Float[Tensor, "k g i"],
        n: int,
        copies: Tensor,
    ) -> Float[Tensor, "k g i"]:
        """Return squared differences between rows and others, had the scales been without the rows.

        `own` and `others` are where they lie. The scales are those of n normal rows, and `copies`
        (k, 1, 1) says how many of them each of the k rows is.
        """

    @abstractmethod
    def to(self, device: torch.device) -> "Coordinates":
        """Return the same on a device."""

    @abstractmethod
    def state(self) -> State:
        """Return what a model file holds of it."""

    @classmethod
    @abstractmethod
    def from_state(cls, state: State, n_inputs: int) -> "Coordinates":
        """Inverse of `state`, checked."""


@final
@dataclass(frozen=True, eq=False)
class Standardised(Coordinates):
    """(x - mean) / scale: the further out, the further away, up to eight deviations.

    Parameters
    ----------
    mean, scale : tensor (i,)
        Mean and standard deviation on normal rows.
    """

    mean: Float[Tensor, " i"]
    scale: Float[Tensor, " i"]

    name: ClassVar[str] = "standardised"
    limit: ClassVar[float] = 8.0

    @classmethod
    def fit(cls, inputs: Floats) -> "Standardised":
        """Take means and deviations from normal rows."""
        scale = inputs.std(0)
        scale[scale <= _CONSTANT] = 1.0
        return cls(*(torch.from_numpy(part).float() for part in (inputs.mean(0), scale)))

    def place(self, inputs: Float[Tensor, "n i"]) -> Float[Tensor, "n i"]:
        """Return where values lie."""
        return ((inputs - self.mean) / self.scale).clamp(-self.limit, self.limit)

    def squared_without(
        self,
        own: Float[Tensor, "k 1 i"],
        others: Float[Tensor, "k g i"],
        n: int,
        copies: Tensor,
    ) -> Float[Tensor, "k g i"]:
        r"""Return squared differences on the scale of the other rows.

        Without k copies of a row at z, of n rows, the variance is s^2 n / r (1 - k z^2 / r) with
        r = n - k. Where no other rows differ it is taken for s^2 / n.
        """
        rest = (n - copies).clamp_min(1)
        variance = n / rest * (1 - copies * own.square() / rest)
        return (own - others).square() / variance.clamp_min(1 / n)

    def to(self, device: torch.device) -> "Standardised":
        """Return the same on a device."""
        return Standardised(self.mean.to(device), self.scale.to(device))

    def state(self) -> State:
        """Return what a model file holds of it."""
        arrays = {"mean": self.mean.cpu().numpy(), "scale": self.scale.cpu().numpy()}
        return State({"name": self.name}, arrays)

    @classmethod
    def from_state(cls, state: State, n_inputs: int) -> "Standardised":
        """Inverse of `state`, checked."""
        mean, scale = (state.array(name, np.float32, (n_inputs,)) for name in ("mean", "scale"))
        require(bool((scale > 0).all()), "a scale of its neighbours is not positive.")
        return cls(torch.from_numpy(mean), torch.from_numpy(scale))


@final
@dataclass(frozen=True, eq=False)
class NormalScores(Coordinates):
    r"""\Phi^{-1}(u), with u the share of normal rows below x: what matters is how many lie between.

    A few rows far out, as in columns of money or counts, do not make the others look alike. Values
    that rows share lie in the middle of their ranks. Between knots, scores are interpolated.

    Parameters
    ----------
    knots, scores : tensor (i, q)
        Values of each input in ascending order, and where they lie; the last may repeat.
    """

    knots: Float[Tensor, "i q"]
    scores: Float[Tensor, "i q"]

    name: ClassVar[str] = "normal scores"
    limit: ClassVar[float] = _MAX_SCORE

    @classmethod
    def fit(cls, inputs: Floats) -> "NormalScores":
        """Rank the values of normal rows."""
        found = [_knots(column) for column in inputs.astype(np.float32).T]
        knots, scores = (torch.from_numpy(np.stack(part)) for part in zip(*found, strict=True))
        return cls(knots, scores)

    def place(self, inputs: Float[Tensor, "n i"]) -> Float[Tensor, "n i"]:
        """Return where values lie."""
        x = inputs.T.contiguous()
        place = torch.searchsorted(self._inner, x)
        low, rise = self.knots.gather(1, place), self.slope.gather(1, place)
        found = (x - low).mul_(rise).add_(self.scores.gather(1, place))
        return found.clamp_(self.scores[:, :1], self.scores[:, -1:]).T

    def squared_without(
        self,
        own: Float[Tensor, "k 1 i"],
        others: Float[Tensor, "k g i"],
        n: int,
        copies: Tensor,
    ) -> Float[Tensor, "k g i"]:
        """Return squared differences of normal scores among the other rows.

        Without k copies of a row, rows above it fall by k ranks of n + 1, and its own place by
        k / 2; beyond the outermost of the others it lies where that does.
        """
        rest = (n - copies).clamp_min(1)
        fall = copies / 2 * (1 + (others - own).sign())
        ranks = (
            (n + 1) * torch.special.ndtr(scores) - fewer
            for scores, fewer in ((own, copies / 2), (others, fall))
        )
        found: list[Tensor] = [
            torch.special.ndtri(rank.clamp_min(1).minimum(rest) / (rest + 1)) for rank in ranks
        ]
        return (found[0] - found[1]).square()

    @cached_property
    def _inner(self) -> Float[Tensor, "i _"]:
        """The knots but for the first and the last."""
        return self.knots[:, 1:-1].contiguous()

    @cached_property
    def slope(self) -> Float[Tensor, "i p"]:
        """What scores rise by between knots; 0 where the last knot repeats."""
        width = self.knots.diff(dim=1)
        return torch.where(width > 0, self.scores.diff(dim=1) / width.clamp_min(1e-30), 0)

    def to(self, device: torch.device) -> "NormalScores":
        """Return the same on a device."""
        return NormalScores(self.knots.to(device), self.scores.to(device))

    def state(self) -> State:
        """Return what a model file holds of it."""
        arrays = {"knots": self.knots.cpu().numpy(), "scores": self.scores.cpu().numpy()}
        return State({"name": self.name}, arrays)

    @classmethod
    def from_state(cls, state: State, n_inputs: int) -> "NormalScores":
        """Inverse of `state`, checked."""
        shape = (n_inputs, _N_KNOTS)
        knots, scores = (state.array(name, np.float32, shape) for name in ("knots", "scores"))
        is_ascending = bool((np.diff(knots) >= 0).all() and (np.diff(scores) >= 0).all())
        require(is_ascending, "the knots of its neighbours are not in order.")
        is_near = bool((np.abs(scores) <= _MAX_SCORE).all())
        require(is_near, "a normal score of its neighbours is out of range.")
        return cls(torch.from_numpy(knots), torch.from_numpy(scores))


COORDINATES: dict[str, type[Coordinates]] = {
    scale.name: scale for scale in (Standardised, NormalScores)
}
"""The scales on which a row is compared with others, by name."""


def _knots(values: Singles) -> tuple[Singles, Singles]:
    """Return the knots of one input, evenly spaced in normal scores, and their scores."""
    distinct, counts = np.unique(values, return_counts=True)
    share = (np.cumsum(counts) - (counts - 1) / 2) / (len(values) + 1)
    scores = ndtri(share)
    chosen = np.arange(len(distinct))
    if len(distinct) > _N_KNOTS:
        chosen = np.searchsorted(scores, np.linspace(scores[0], scores[-1], _N_KNOTS))
    last = np.full(_N_KNOTS - len(chosen), len(distinct) - 1)
    chosen = np.concatenate([chosen, last])
    return distinct[chosen], scores[chosen].astype(np.float32)
