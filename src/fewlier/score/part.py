"""`Part`: one addend of the score."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from fewlier.density.rows import Rows
from fewlier.modelfile.state import State
from fewlier.table import Encoded, Encoder
from fewlier.table.arrays import Bools, Ints


class HeldOut(NamedTuple):
    """Says of n rows that they are rows of the fit, to be judged by what has not seen them.

    `ids` says which rows they are (see `Encoded.ids`); copies share an id. `folds` are the folds
    whose members may score them, None for all.
    """

    ids: Ints
    folds: tuple[int, ...] | None = None

    def take(self, rows: Ints) -> "HeldOut":
        """Return what it says of some of the rows."""
        return self._replace(ids=self.ids[rows])


class Known(NamedTuple):
    """Rows of a fit that parts learn from: normals and labelled anomalies, with their ids."""

    encoder: Encoder
    rows: Rows
    ids: Ints
    is_anomaly: Bools
    seed: int

    @classmethod
    def of(
        cls,
        encoder: Encoder,
        encoded: Encoded,
        labelled: tuple[Ints, Bools],
        seed: int,
        device: torch.device | str = "cpu",
    ) -> "Known":
        """Move encoded rows onto a device; `labelled` are their ids, and which are anomalies."""
        return cls(encoder, Rows.of(encoded, device), *labelled, seed)

    def labelled(self, is_anomaly: bool) -> tuple[Rows, Ints]:
        """Return the normals or the anomalies, with their ids."""
        places = np.flatnonzero(self.is_anomaly == is_anomaly)
        return self.rows.take(torch.from_numpy(places).to(self.rows.inputs.device)), self.ids[
            places
        ]


class Part(ABC):
    """One addend of the score, in standard units of normal rows, as a sum over the columns.

    `contributions` is its whole formula: the score sums them, an explanation shows them, and the
    ONNX graph is traced from them. So it branches on no value of the rows, and numbers next to
    tensors of float64 are `exact`.

    Attributes
    ----------
    name : str
        Its name among the parts of a model, and in a model file.
    baseline : float
        What its contributions are counted from.
    meaning : str
        What its contributions mean, as the object of "12 % of the score is ...".
    n_compared : int
        How many rows a row is compared with.
    """

    name: ClassVar[str]

    @property
    def n_compared(self) -> int:
        """None."""
        return 0

    @property
    def baseline(self) -> float:
        """0: contributions are counted from what normal rows score on average."""
        return 0.0

    @property
    @abstractmethod
    def meaning(self) -> str:
        """What its contributions mean, as the object of "12 % of the score is ..."."""

    @abstractmethod
    def contributions(
        self, rows: Rows, before: Mapping[str, Tensor], held_out: HeldOut | None = None
    ) -> Float[Tensor, "n _"]:
        """Return what d columns and last a remainder add to the part's score, shape (n, d + 1).

        Parameters
        ----------
        rows : Rows
            n rows.
        before : mapping of str to tensor (n, d + 1)
            Contributions of the parts evaluated before, by name.
        held_out : HeldOut or None
            Given for rows of the fit: nothing that has seen a row, or a copy of it, judges it.
        """

    @abstractmethod
    def state(self) -> State:
        """Return what a model file holds of it."""

    @classmethod
    @abstractmethod
    def from_state(cls, state: State, encoder: Encoder, device: torch.device) -> "Part":
        """Inverse of `state`, checked."""


class AddedPart(Part):
    """A part beside the density. To add one: a final class, and its name in `PARTS` of `model.py`.

    Attributes
    ----------
    reads : tuple of str
        The parts whose contributions it reads.
    """

    reads: ClassVar[tuple[str, ...]] = ()

    @classmethod
    @abstractmethod
    def share(cls, n_anomalies: int) -> float:
        """Return the share it takes of what later parts leave of the score, given n labels.

        With 0 there is no such part. The density has what all others leave.
        """

    @classmethod
    @abstractmethod
    def fit(cls, known: Known, before: Mapping[str, Tensor]) -> "AddedPart":
        """Learn from rows, given what the parts that it reads contribute to them, held out."""


def exact(value: float) -> Tensor:
    """Return a number that stays in an ONNX graph as it is, as a tensor of float64.

    torch.onnx rounds the plain numbers of a formula to float32, also beside tensors of float64: a
    date would be off by a minute. Whole numbers up to 2**24 may stay plain.
    """
    return torch.tensor(value, dtype=torch.float64)
