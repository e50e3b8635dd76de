"""`FittedModel`: the frozen result of a fit. `Scorer`: its sum of parts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeVar, final

import numpy as np
import torch

from fewlier.arrays import Floats, Ints
from fewlier.decision.calibration import Calibration
from fewlier.decision.drift import Drift, Reference, compare
from fewlier.density.joint import CellPlaces, Expected
from fewlier.density.networks import TILE
from fewlier.density.rows import Rows
from fewlier.score.ensemble import Ensemble
from fewlier.score.neighbours import Neighbours
from fewlier.score.part import HeldOut, Part
from fewlier.score.ranges import Ranges
from fewlier.score.trees import Rules, Trees
from fewlier.state import State, require
from fewlier.table import Encoded, Encoder, Table
from fewlier.threads import in_threads, one_thread
from fewlier.training.unlabelled import DoubtfulRows

# Rows are scored in chunks of at most this many, and of fewer where rows are wide: few enough to
# stay in the cache of a CPU, and enough that threads seldom wait for the interpreter.
CHUNK = {"cpu": 4096, "cuda": 16384}
MAX_INPUTS = 2**20
# A chunk is padded to whole tiles, on a GPU to its full size, so that a row's arithmetic, bit for
# bit, does not depend on its neighbours (`networks.in_tiles`).
PADDING = {"cpu": TILE, "cuda": CHUNK["cuda"]}

PARTS: dict[str, type[Part]] = {part.name: part for part in (Neighbours, Trees, Rules)}
"""The parts of an average score besides the ensemble, in the order in which they are evaluated."""


Result = TypeVar("Result")


class Addend(NamedTuple):
    """A part of the score, and its share in it."""

    share: float
    part: Part


@final
@dataclass(frozen=True, eq=False)
class Scorer:
    r"""s(x) = \sum_p share_p part_p(x), each part a sum over the columns.

    Parameters
    ----------
    encoder : Encoder
        How rows are read.
    ensemble : Ensemble
        The density's part, which has the share that the others leave.
    others : tuple of Addend
        The other parts, in the order in which they are evaluated.
    """

    encoder: Encoder
    ensemble: Ensemble
    others: tuple[Addend, ...] = ()

    @property
    def addends(self) -> tuple[Addend, ...]:
        """All parts, in the order in which they are evaluated."""
        share = 1.0 - sum(addend.share for addend in self.others)
        return (Addend(share, self.ensemble), *self.others)

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        return next(self.ensemble.density.parameters()).device

    @property
    def baseline(self) -> float:
        """The score that the contributions of a row start from."""
        return sum(share * part.baseline for share, part in self.addends)

    @property
    def meaning(self) -> str:
        """What the contribution of a column means."""
        if not self.others:
            return self.ensemble.meaning
        shares = [f"{share:.0%} of the score is {part.meaning}" for share, part in self.others]
        return f"{self.ensemble.meaning} {'; '.join(shares)}."

    def score(
        self, encoded: Encoded, held_out: HeldOut | None = None, *, chunk: int | None = None
    ) -> Floats:
        """Return the anomaly score of each row, higher is more anomalous, shape (n,).

        With `held_out`, rows of the fit are scored by what has not seen them.
        With `chunk`, that many rows at a time, which takes less memory and may change last bits.
        """

        def score(rows: Rows, start: int, stop: int) -> Floats:
            return self._evaluate("score", rows, start, stop, held_out)

        found = self._in_chunks(score, encoded, chunk)
        return self.baseline + np.concatenate([np.empty(0), *found])  # a table may have no row

    def contributions(self, encoded: Encoded, held_out: HeldOut | None = None) -> Floats:
        """Return what d columns and last a remainder add to the score, shape (n, d + 1).

        With the baseline, the contributions of a row sum to its score.
        """

        def contributions(rows: Rows, start: int, stop: int) -> Floats:
            return self._evaluate("contributions", rows, start, stop, held_out)

        found = self._in_chunks(contributions, encoded)
        return np.concatenate([np.empty((0, self.encoder.n_columns + 1)), *found])

    @one_thread()
    def expect(self, encoded: Encoded, rows: Ints, columns: Ints) -> Expected:
        """Return what was expected of m cells, given by the numbers of their rows and columns."""
        total = self.ensemble.density.joint.nothing_expected(len(rows))

        def expect(chunk: Rows, start: int, stop: int) -> None:
            lines = np.flatnonzero((rows >= start) & (rows < stop))
            if not len(lines):
                return
            cells = CellPlaces(
                torch.from_numpy(rows[lines] - start), torch.from_numpy(columns[lines])
            )
            for whole, found in zip(total, self.ensemble.expect(chunk, cells), strict=True):
                whole[torch.from_numpy(lines)] = found

        self._in_chunks(expect, encoded)
        return total

    def log_density(self, encoded: Encoded) -> Floats:
        """Return log p(x) of the mixture of members, shape (n,)."""

        def log_density(rows: Rows, start: int, stop: int) -> Floats:
            return self.ensemble.log_density(rows)[: stop - start]

        return np.concatenate([np.empty(0), *self._in_chunks(log_density, encoded)])

    def _evaluate(
        self,
        what: Literal["score", "contributions"],
        rows: Rows,
        start: int,
        stop: int,
        held_out: HeldOut | None,
    ) -> Floats:
        """Return the score or the contributions of a chunk of rows: the one loop over the parts."""
        if held_out is not None:
            ids = np.resize(held_out.ids[start:stop], len(rows.targets))
            held_out = held_out._replace(ids=ids)
        found: dict[str, Floats] = {}
        for part in (addend.part for addend in self.addends):
            evaluate = part.score if what == "score" else part.contributions
            found[part.name] = evaluate(rows, found, held_out)
        total = sum(share * found[part.name] for share, part in self.addends)
        return np.asarray(total)[: stop - start]

    def _in_chunks(
        self,
        function: Callable[[Rows, int, int], Result],
        encoded: Encoded,
        size: int | None = None,
    ) -> list[Result]:
        """Call a function on rows, some at a time, with the numbers of the first and last.

        A chunk is padded with its first row. On a CPU, threads share the chunks.
        """
        padding = size or PADDING[self.device.type]
        most = MAX_INPUTS // self.encoder.n_inputs // padding * padding
        step = size or min(CHUNK[self.device.type], max(most, padding))

        def call(start: int) -> Result:
            stop = min(start + step, len(encoded))
            index = np.full(-(-(stop - start) // padding) * padding, start)
            index[: stop - start] = np.arange(start, stop)
            return function(Rows.of(encoded.take(index), self.device), start, stop)

        starts = range(0, len(encoded), step)
        return in_threads(call, starts) if self.device.type == "cpu" else [*map(call, starts)]


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
        return sum(p.n_rows for p in self.parts.values() if isinstance(p, Neighbours))

    def encode(self, table: Table) -> Encoded:
        """Match a table with the training columns and encode it."""
        return self.encoder.encode(self.encoder.schema.match(table))

    def score(self, encoded: Encoded) -> Floats:
        """Return the anomaly score of each row, higher is more anomalous, shape (n,)."""
        return self.scorer.score(encoded)

    def state(self) -> State:
        """Return what a model file holds of it."""
        others = {part.name: (share, part.state()) for share, part in self.scorer.others}
        return State(
            {
                "encoder": self.encoder.state(),
                "ensemble": self.ensemble.state(),
                **{name: _with_share(*others[name]) if name in others else None for name in PARTS},
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
        others = tuple(
            Addend(other.positive("share", below=1), part.from_state(other, encoder, device))
            for name, part in PARTS.items()
            if (other := state.optional(name)) is not None
        )
        names = [addend.part.name for addend in others]
        require(names == list(PARTS)[: len(names)], f"its score has no other parts than {names}.")
        is_alone = ensemble.selection == "best"
        require(not (others and is_alone), "its best member is not the only part of the score.")
        require(sum(share for share, _ in others) < 1, "the shares of its parts are 1 or more.")
        return cls(
            Scorer(encoder, ensemble, others),
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
