"""A part of the score that fewlier does not have, as somebody would add it."""

from dataclasses import dataclass
from typing import ClassVar, final
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor

from fewlier.modelfile.state import State, require
from fewlier.score.model import PARTS
from fewlier.score.part import AddedPart, exact

SHARE = 0.1


@final
@dataclass(frozen=True, eq=False)
class Medians(AddedPart):
    """z(x) = sum over inputs of (x - median)^2, less its mean, by its spread on normal rows."""

    median: Tensor
    owner: Tensor
    centre: Tensor
    spread: float

    name: ClassVar[str] = "medians"

    @property
    def meaning(self):
        """What its contributions mean."""
        return "how far the value of the column is from the median of normal rows, squared"

    @classmethod
    def share(cls, _):
        """Return a tenth, with labels and without."""
        return SHARE

    @classmethod
    def fit(cls, known, before):
        """Take the medians from normal rows."""
        normals, _ = known.labelled(False)
        owner = torch.from_numpy(known.encoder.input_owner)
        median = normals.inputs.double().median(0).values
        plain = cls(median, owner, torch.zeros(known.encoder.n_columns).double(), 1.0)
        found = plain.contributions(normals, before)[:, :-1]
        return cls(median, owner, found.mean(0), float(found.sum(1).std()))

    def contributions(self, rows, *_):
        """Return what each column adds, and a remainder of zeros."""
        squared = (rows.inputs.double() - self.median).square()
        nothing = torch.zeros_like(rows.targets).double()
        found = (nothing.index_add(1, self.owner, squared) - self.centre) / exact(self.spread)
        return torch.cat([found, nothing[:, :1]], 1)

    def state(self):
        """Return what a model file holds of it."""
        arrays = {"median": self.median.numpy(), "centre": self.centre.numpy()}
        return State({"spread": self.spread}, arrays)

    @classmethod
    def from_state(cls, state, encoder, _):
        """Inverse of `state`, checked."""
        median = state.array("median", np.float64, (encoder.n_inputs,))
        centre = state.array("centre", np.float64, (encoder.n_columns,))
        require(bool((median <= 2).all()), "a median is out of range.")
        arrays = map(torch.from_numpy, (median, encoder.input_owner, centre))
        return cls(*arrays, state.positive("spread"))


def registered():
    """Let the score have the part inside the block: one name in the registry."""
    return patch.dict(PARTS, {Medians.name: Medians})
