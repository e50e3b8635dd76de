"""Encoded rows as tensors: what networks read and conditionals score."""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from fewlier.table.encode import Encoded


class Rows(NamedTuple):
    """n encoded rows as tensors: what networks read and conditionals score.

    In training, rows may come with `noise`: standard normals for densities that draw samples.
    """

    inputs: Float[Tensor, "*n i"]
    targets: Float[Tensor, "*n d"]
    observed: Bool[Tensor, "*n d"]
    impossible: Bool[Tensor, "*n d"]
    noise: Float[Tensor, "*n z"] | None = None

    @classmethod
    def of(cls, encoded: Encoded, device: torch.device | str = "cpu") -> "Rows":
        """Move an encoded table onto a device."""
        arrays = (encoded.inputs, encoded.targets, encoded.observed, encoded.impossible)
        return cls(*(torch.from_numpy(np.ascontiguousarray(a)).to(device) for a in arrays))

    @property
    def has_value(self) -> Bool[Tensor, "*n d"]:
        """Which cells are neither missing nor outside their column's domain."""
        return self.observed & ~self.impossible

    @property
    def inside(self) -> "Rows":
        """The same rows, cells outside their column's domain missing: for what learns from them."""
        return self._replace(observed=self.has_value)

    @property
    def by_column(self) -> "Rows":
        """The same rows with the cells of a column side by side in memory.

        So lie the parameters of its conditional, and arithmetic on both is faster by half.
        """
        cells = (self.targets, self.observed, self.impossible)
        targets, observed, impossible = (part.mT.contiguous().mT for part in cells)
        return self._replace(targets=targets, observed=observed, impossible=impossible)

    def take(self, index: Int[Tensor, "*m"] | slice) -> "Rows":
        """Return the rows at `index`."""
        noise = None if self.noise is None else self.noise[index]
        inputs, targets, observed, impossible, _ = self
        return Rows(inputs[index], targets[index], observed[index], impossible[index], noise)
