"""`FittedModel`: the frozen result of a fit."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np
import torch
from torch import Tensor

from fewlier.decision.calibration import Calibration
from fewlier.decision.drift import Drift, compare
from fewlier.decision.reference import Reference
from fewlier.modelfile.state import State, require
from fewlier.score.ensemble import Ensemble
from fewlier.score.learned.trees import Rules, Trees
from fewlier.score.neighbours.part import Neighbours
from fewlier.score.part import AddedPart, HeldOut, Known, Part
from fewlier.score.ranges import Ranges
from fewlier.score.scorer import Addend, Scorer
from fewlier.table import Encoded, Encoder, Table
from fewlier.table.arrays import Floats, Ints
from fewlier.training.unlabelled import DoubtfulRows

PARTS: dict[str, type[AddedPart]] = {part.name: part for part in (Neighbours, Trees, Rules)}
"""The parts of an average score beside the density, in the order in which they are evaluated."""


@final
@dataclass(frozen=True, eq=False)
class FittedModel:
    """Everything a fit leaves behind.

    Parameters
    ----------
    scorer : Scorer
        The score of a row.
    calibration : Calibration
        What a score means: threshold, p-values, probabilities.
    reference : Reference
        How often the training normals fall into the bins of each column, to notice drift by.
    ranges : Ranges
        In what range a number was expected.
    doubtful_rows : DoubtfulRows or None
        How many unlabelled rows the fit did not trust; a loaded model does not know.
    """

    scorer: Scorer
    calibration: Calibration
    reference: Reference
    ranges: Ranges
    doubtful_rows: DoubtfulRows | None = None

    @property
    def encoder(self) -> Encoder:
        """How rows are read."""
        return self.scorer.encoder

    @property
    def ensemble(self) -> Ensemble:
        """The density's part of the score."""
        return self.scorer.ensemble

    @property
    def parts(self) -> dict[str, Part]:
        """The parts of the score, by name."""
        return {part.name: part for _, part in self.scorer.addends}

    @property
    def n_compared(self) -> int:
        """How many rows a row is compared with."""
        return sum(part.n_compared for part in self.parts.values())

    def encode(self, table: Table) -> Encoded:
        """Match a table with the training columns and encode it."""
        return self.encoder.encode(self.encoder.schema.match(table))

    def score(self, encoded: Encoded) -> Floats:
        """Return the anomaly score of each row, higher is more anomalous, shape (n,)."""
        return self.scorer.score(encoded)

    def state(self) -> State:
        """Return what a model file holds of it."""
        others = {part.name: _with_share(share, part.state()) for share, part in self.scorer.others}
        return State(
            {
                "encoder": self.encoder.state(),
                "ensemble": self.ensemble.state(),
                "alone": State({}, {"score": self.scorer.alone}),
                "parts": State(others),
                "calibration": self.calibration.state(),
                "reference": self.reference.state(),
                "ranges": self.ranges.state(),
            }
        )

    @classmethod
    def from_state(cls, state: State, device: torch.device) -> "FittedModel":
        """Inverse of `state`, checked."""
        encoder = Encoder.from_state(state.part("encoder"))
        ensemble = Ensemble.from_state(state.part("ensemble"), encoder, device)
        found = state.part("parts")
        others = tuple(
            Addend(own.positive("share", below=1), kind.from_state(own, encoder, device))
            for name, kind in PARTS.items()
            if name in found.record and (own := found.part(name))
        )
        names = {addend.part.name for addend in others}
        is_whole = all(names.issuperset(PARTS[name].reads) for name in names)
        require(is_whole, f"its score has no other parts than {sorted(names)}.")
        alone = state.part("alone").array("score", np.float64, (encoder.n_columns,))
        is_alone = ensemble.selection == "best"
        require(not (others and is_alone), "its best member is not the only part of the score.")
        require(sum(share for share, _ in others) < 1, "the shares of its parts are 1 or more.")
        return cls(
            Scorer(encoder, ensemble, others, alone),
            Calibration.from_state(state.part("calibration")),
            Reference.from_state(state.part("reference"), encoder),
            Ranges.from_state(state.part("ranges"), encoder),
        )

    def drift(self, ranks: Ints, cells: Sequence[Ints]) -> Drift:
        """Compare rows, counted by the rank of their scores and by bin, with the normals."""
        normals = self.calibration.counts(self.calibration.normal_scores), self.reference.counts
        columns = self.encoder.schema.columns
        return compare(columns, normals, (ranks, cells), self.reference)

    def with_calibration(self, calibration: Calibration) -> "FittedModel":
        """Return the same model with another threshold."""
        return replace(self, calibration=calibration)


def _with_share(share: float, state: State) -> State:
    return State(state.record | {"share": share}, state.arrays)


def shares(n_anomalies: int) -> dict[str, float]:
    """Return the shares of the parts beside the density, which has the rest, given n labels."""
    found, left = {}, 1.0
    for name, kind in reversed(PARTS.items()):
        found[name] = left * kind.share(n_anomalies)
        left -= found[name]
    return found


def fit_parts(known: Known) -> tuple[Addend, ...]:
    """Fit the parts beside the density to rows, each with its share of the score."""
    own = shares(len(np.unique(known.ids[known.is_anomaly])))
    read = {name for reader, kind in PARTS.items() if own[reader] > 0 for name in kind.reads}
    found: list[Addend] = []
    before: dict[str, Tensor] = {}
    for name, kind in PARTS.items():
        if own[name] > 0:
            part = kind.fit(known, before)
            found.append(Addend(own[name], part))
            if name in read:
                before[name] = part.contributions(known.rows, before, HeldOut(known.ids))
    return tuple(found)
