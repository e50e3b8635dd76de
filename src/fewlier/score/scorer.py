"""`Scorer`: the sum of the parts of the score."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, TypeVar, final

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from fewlier.density.joint import CellPlaces, Expected
from fewlier.density.networks import TILE, inference
from fewlier.density.rows import Rows
from fewlier.process.threads import in_threads, one_thread
from fewlier.score.ensemble import Ensemble
from fewlier.score.odd_cells import OddCells, may_be_impossible, raised
from fewlier.score.part import HeldOut, Part, exact
from fewlier.table import Encoded, Encoder
from fewlier.table.arrays import Floats, Ints

# Rows are scored in chunks of at most this many, and of fewer where rows are wide: few enough to
# stay in the cache of a CPU, and enough that threads seldom wait for the interpreter.
CHUNK = {"cpu": 4096, "cuda": 16384}
MAX_INPUTS = 2**20
# A chunk is padded to whole tiles, on a GPU to its full size, so that a row's arithmetic, bit for
# bit, does not depend on its neighbours (`networks.MaskedMLP`).
PADDING = {"cpu": TILE, "cuda": CHUNK["cuda"]}

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
    alone : array (d,)
        What an impossible cell of each column adds to the score of a usual row: a row with one
        scores at least as much.
    """

    encoder: Encoder
    ensemble: Ensemble
    others: tuple[Addend, ...] = ()
    alone: Floats = field(default_factory=lambda: np.empty(0))

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

    @one_thread()
    def score(
        self, encoded: Encoded, held_out: HeldOut | None = None, *, chunk: int | None = None
    ) -> Floats:
        """Return the anomaly score of each row, higher is more anomalous, shape (n,).

        With `held_out`, rows of the fit are scored by what has not seen them.
        With `chunk`, that many rows at a time, which takes less memory and may change last bits.
        """
        total = self._plain(encoded, held_out, chunk, summed=True)
        if len(odd := np.flatnonzero(self._marked(encoded).any(1).cpu().numpy())):
            own = held_out and held_out.take(odd)
            total[odd] = self.contributions(encoded.take(odd), own, chunk=chunk).sum(1)
        return self.baseline + total

    @one_thread()
    def contributions(
        self, encoded: Encoded, held_out: HeldOut | None = None, *, chunk: int | None = None
    ) -> Floats:
        """Return what d columns and last a remainder add to the score, shape (n, d + 1).

        With the baseline, the contributions of a row sum to its score.
        """
        found = self._plain(encoded, held_out, chunk)
        lines, others = self._versions(encoded)
        if not len(lines):
            return found
        alone, held_out = self._alone(encoded.take(lines)), held_out and held_out.take(lines)
        highest = np.where(alone == alone.max(1, keepdims=True), alone, 0)
        for other in others:
            plain = self._plain(other, held_out, chunk)
            is_higher = plain.sum(1) > highest.sum(1)
            highest[is_higher] = plain[is_higher]
        order = np.argsort(-highest.sum(1), kind="stable")
        rows, first = np.unique(lines[order], return_index=True)
        found[rows] = raised(found[rows], highest[order[first]])
        return found

    def sum_of_parts(self, rows: Rows, held_out: HeldOut | None = None) -> Float[Tensor, "n _"]:
        """Return the contributions of rows as they are, odd cells or not: the sum over the parts.

        The ONNX graph is traced from it.
        """
        found: dict[str, Tensor] = {}
        for _, part in self.addends:
            found[part.name] = part.contributions(rows, found, held_out)
        return torch.stack([found[p.name] * exact(share) for share, p in self.addends]).sum(0)

    def with_costs_alone(self, usual: Encoded, ids: Ints) -> "Scorer":
        """Return the score that knows what impossible cells add to usual rows of the fit."""
        (columns,) = np.nonzero(may_be_impossible(self.encoder))
        alone, n = np.zeros(self.encoder.n_columns), len(usual)
        rows = Rows.of(usual.take(np.tile(np.arange(n), len(columns))), self.device)
        cells = torch.zeros_like(rows.observed)
        column = np.repeat(columns, n)
        cells[np.arange(len(column)), column] = True
        odd = _encoded(self.odd_cells.made_impossible(rows, cells))
        parts = self._plain(odd, HeldOut(np.tile(ids, len(columns))))
        alone[columns] = parts[np.arange(len(column)), column].reshape(-1, n).mean(1)
        return replace(self, alone=alone)

    @cached_property
    def odd_cells(self) -> OddCells:
        """What stands in for impossible and far cells."""
        return OddCells(self.encoder).to(self.device)

    def _marked(self, encoded: Encoded) -> Bool[Tensor, "n d"]:
        return self.odd_cells.mark(Rows.of(encoded, self.device))

    def _versions(self, encoded: Encoded) -> tuple[Ints, Iterator[Encoded]]:
        """Return the numbers of rows with odd cells, and what stands in for these rows.

        A row of several odd cells is there several times.
        """
        odd, marks = self.odd_cells, self._marked(encoded)
        places = marks.any(1).nonzero()[:, 0]
        found, cells = odd.groups(marks[places])
        lines = places[found].cpu().numpy()
        if not len(lines):
            return lines, iter(())
        some = encoded.take(lines)

        def stand_ins(rows: Rows, start: int, stop: int) -> Tensor:
            return torch.stack(self.ensemble.stand_ins(rows))[:, : stop - start]

        values = torch.cat(self._in_chunks(stand_ins, some), 1)
        return lines, map(_encoded, odd.versions(Rows.of(some, self.device), cells, *values))

    def _alone(self, encoded: Encoded) -> Floats:
        """Return what impossible cells add at least, else -inf, shape (n, d + 1)."""
        least = np.full((len(encoded), self.encoder.n_columns + 1), -np.inf)
        if len(self.alone):
            least[:, :-1] = np.where(encoded.impossible, self.alone, -np.inf)
        return least

    def _plain(
        self,
        encoded: Encoded,
        held_out: HeldOut | None = None,
        chunk: int | None = None,
        *,
        summed: bool = False,
    ) -> Floats:
        """Return the contributions of rows as they are, odd cells or not, or their sums."""

        def evaluate(rows: Rows, start: int, stop: int) -> Floats:
            places = np.resize(np.arange(start, stop), len(rows.targets))
            found = self.sum_of_parts(rows, held_out and held_out.take(places))
            own = np.ascontiguousarray(found[: stop - start].cpu().numpy())
            return own.sum(1) if summed else own

        found = self._in_chunks(evaluate, encoded, chunk)
        width = () if summed else (self.encoder.n_columns + 1,)
        return np.concatenate([np.empty((0, *width)), *found])  # a table may have no row

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
            with inference():
                return function(Rows.of(encoded.take(index), self.device), start, stop)

        starts = range(0, len(encoded), step)
        return in_threads(call, starts) if self.device.type == "cpu" else [*map(call, starts)]


def _encoded(rows: Rows) -> Encoded:
    arrays = (rows.inputs, rows.targets, rows.observed, rows.impossible)
    return Encoded(*(array.cpu().numpy() for array in arrays))
