"""`Part`: one addend of the score."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, NamedTuple

import torch

from fewlier.density.rows import Rows
from fewlier.modelfile.state import State
from fewlier.table import Encoder
from fewlier.table.arrays import Floats, Ints


class HeldOut(NamedTuple):
    """Says of n rows that they are rows of the fit, to be judged by what has not seen them.

    `ids` says which rows they are (see `Encoded.ids`); copies share an id. `folds` are the folds
    whose members may score them, None for all.
    """

    ids: Ints
    folds: tuple[int, ...] | None = None


class Part(ABC):
    """One addend of the score, in standard units of normal rows, as a sum over the columns.

    Attributes
    ----------
    name : str
        Its name among the parts of a model, and in a model file.
    baseline : float
        What its contributions are counted from.
    meaning : str
        What its contributions mean, as the object of "12 % of the score is ...".
    """

    name: ClassVar[str]

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
        self, rows: Rows, before: Mapping[str, Floats], held_out: HeldOut | None = None
    ) -> Floats:
        """Return what d columns and last a remainder add to the part's score, shape (n, d + 1).

        Parameters
        ----------
        rows : Rows
            n rows.
        before : mapping of str to array (n, d + 1)
            Contributions of the parts evaluated before, by name.
        held_out : HeldOut or None
            Given for rows of the fit: nothing that has seen a row, or a copy of it, judges it.
        """

    def score(
        self, rows: Rows, before: Mapping[str, Floats], held_out: HeldOut | None = None
    ) -> Floats:
        """Return the part's score less its baseline, shape (n,): the sum of its contributions.

        As `contributions`, but `before` has the scores (n,) of the parts evaluated before.
        """
        scores: Floats = self.contributions(rows, before, held_out).sum(1)
        return scores

    @abstractmethod
    def state(self) -> State:
        """Return what a model file holds of it."""

    @classmethod
    @abstractmethod
    def from_state(cls, state: State, encoder: Encoder, device: torch.device) -> "Part":
        """Inverse of `state`, checked."""
