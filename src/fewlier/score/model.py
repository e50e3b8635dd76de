"""`FittedModel`: the frozen result of a fit; it scores."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float, Int
from torch import Tensor

from fewlier.decision.calibration import Calibration
from fewlier.decision.drift import Drift, Reference, compare
from fewlier.density.base import Density, mean_over_passes
from fewlier.density.joint import Anchors, Cells, Outlook, Rows, anchors, row_terms
from fewlier.density.networks import TILE, denormals_as_zero
from fewlier.errors import UserError
from fewlier.score.neighbours import Neighbours
from fewlier.score.space import Numbers
from fewlier.score.trees import Forest
from fewlier.table import Encoded, Encoder, Table
from fewlier.training.roles import Selection
from fewlier.training.unlabelled import Distrust

# Rows are scored in chunks of at most so many, and of fewer where rows are wide: on a CPU the
# intermediate results of a chunk stay in the cache.
CHUNK = {"cpu": 1024, "cuda": 8192}
MAX_INPUTS = 2**20
# A chunk is padded to whole tiles, on a GPU to its full size, so that a row's arithmetic, bit for
# bit, does not depend on its neighbours (`nn.in_tiles`).
PADDING = {"cpu": TILE, "cuda": CHUNK["cuda"]}

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@final
@dataclass(frozen=True)
class FittedMember:
    """One trained density and its part in the score.

    Parameters
    ----------
    weight : float
        Its share in the ensemble; shares sum to one.
    lam : float
        Weight of the ranking term it was trained with.
    fold : int
        The fold it was trained on.
    density : Density
        The density, with parameters of its own.
    passes : tuple of o ints
        The density's passes that it scores with.
    anchors : Anchors
        Terms of cells without a value, shape (o, d): per pass and column.
    centre : array (d + 1,)
        What each column, and last the rest of a row, costs on average on normal rows.
    scale : float
        Standard deviation over normal rows of the member's cost.
    """

    weight: float
    lam: float
    fold: int
    density: Density
    passes: tuple[int, ...]
    anchors: Anchors
    centre: Floats
    scale: float


def feature_owner(encoder: Encoder, device: torch.device) -> Int[Tensor, " f"]:
    """Return the column of each feature of a forest: of every input, and then each column."""
    columns = torch.from_numpy(np.append(encoder.input_owner, np.arange(encoder.n_columns)))
    return columns.to(device)


def total_cost(terms: Float[Tensor, "o n _"], selection: Selection) -> Floats:
    r"""Combine the passes of one member into what each row costs it, shape (n,).

    `best`: -log p(x) with p the mean of the passes' densities. `average`: the mean of the passes'
    -log p_o(x), which is no density, but ranks better (docs/METHOD.md).
    """
    log_p = terms.double().sum(-1)  # (o, n)
    total = log_p.mean(0) if selection == "average" else mean_over_passes(log_p.T)
    cost: Floats = -total.cpu().numpy()
    return cost


def part_costs(terms: Float[Tensor, "o n _"], selection: Selection) -> Floats:
    r"""Split the total cost of rows into d columns and last a remainder, shape (n, d + 1).

    `best`: the parts are the passes' terms weighted by their responsibilities r_o = p_o / sum p;
    what averaging the passes leaves, log O - H(r), lies between 0 and log O and joins the
    remainder. `average`: the parts are the passes' mean terms.
    """
    terms = terms.double()
    if selection == "average":
        parts = -terms.mean(0)
    else:
        share = torch.softmax(terms.sum(-1), 0)  # (o, n)
        parts = -(share.unsqueeze(-1) * terms).sum(0)
        parts[:, -1] += np.log(len(terms)) + torch.special.xlogy(share, share).sum(0)
    costs: Floats = parts.cpu().numpy()
    return costs


def pass_anchors(density: Density, rows: Rows, passes: Sequence[int]) -> Anchors:
    """Take the anchors of some passes from normal rows, shape (o, d)."""
    with torch.no_grad(), denormals_as_zero():
        found = [anchors(density.terms(rows, index), rows.has_value) for index in passes]
    return Anchors(*(torch.stack(part) for part in zip(*found, strict=True)))


def member_terms(
    density: Density, anchors: Anchors, rows: Rows, passes: Sequence[int]
) -> Float[Tensor, "o n _"]:
    """Return log p of every cell and, last, the rest of every row, in some passes of one member.

    The anchors are those of the same passes.
    """
    with torch.no_grad(), denormals_as_zero():
        return torch.stack(
            [
                row_terms(density.terms(rows, index), rows, Anchors(*own))
                for index, *own in zip(passes, *anchors, strict=True)
            ]
        )


@final
@dataclass(frozen=True)
class FittedModel:
    r"""Everything a fit leaves behind.

    The score is s(x) = baseline + sum_m weight_m / scale_m (cost_m(x) - centre_m). With `best`
    there is one member, whose scale is 1 and whose centre is the baseline, so that s(x) is
    exactly the member's cost, -log p(x) where it is a density; with `average` the baseline is 0
    and the unit is the standard deviation of normal rows. Where the density has companions,
    `neighbours` and a `forest`, they have their shares of the score, in the same unit, and the
    density the rest of it. `distrust` says how many unlabelled rows the fit did not trust; a
    loaded model does not know.
    """

    encoder: Encoder
    members: tuple[FittedMember, ...]
    selection: Selection
    calibration: Calibration
    reference: Reference
    neighbours: Neighbours | None = None
    forest: Forest | None = None
    distrust: Distrust | None = None

    @property
    def density(self) -> Density:
        """Any member's: the structure is the same in all of them."""
        return self.members[0].density

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        return next(self.density.parameters()).device

    @property
    def passes_per_row(self) -> int:
        """Network evaluations that scoring one row takes."""
        return sum(len(member.passes) for member in self.members)

    @property
    def likeliest(self) -> FittedMember:
        """The member that costs normal rows least.

        Those of a large lambda rank rows at the expense of likelihood, and expect anything.
        """
        return min(self.members, key=lambda member: float(member.centre.sum()))

    @property
    def baseline(self) -> float:
        """The score that the contributions of a row start from."""
        return float(self.members[0].centre.sum()) if self.selection == "best" else 0.0

    def encode(self, table: Table) -> Encoded:
        """Match a table with the training columns and encode it."""
        return self.encoder.encode(self.encoder.schema.match(table))

    def score(
        self,
        encoded: Encoded,
        folds: Sequence[int] | None = None,
        *,
        ids: Ints | None = None,
        chunk: int | None = None,
    ) -> Floats:
        """Return the anomaly score of each row, higher is more anomalous, shape (n,).

        With `folds`, by the members of these folds alone, their weights rescaled to sum to one.
        With their `ids` (see `Encoded.ids`), neither a row nor its copies are its neighbours, and
        no tree counts that has seen one of them.
        With `chunk`, that many rows at a time, which takes less memory and may change last bits.
        """
        factors = self._factors(folds)
        parts = [np.empty(0)]  # a table may have no row
        for rows, start, stop in self._chunks(encoded, chunk):
            own = None
            if ids is not None:
                own = np.resize(ids[start:stop], len(rows.targets))
            if self.forest is not None:
                density = self._density_parts(rows, factors)
                score = self._density_share * density.sum(1)
                score += self.forest.share * self.forest.score(self.features(rows, density), own)
            else:
                score = np.full(len(rows.targets), self.baseline)
                for member, factor in factors:
                    cost = total_cost(self._terms(member, rows), self.selection)
                    score += self._density_share * factor * (cost - member.centre.sum())
            if self.neighbours is not None:
                score += self.neighbours.share * self.neighbours.score(rows, own)
            parts.append(score[: stop - start])
        return np.concatenate(parts)

    def contributions(self, encoded: Encoded) -> tuple[Floats, Floats]:
        """Return what each column adds to the score, shape (n, d), and the remainder (n,)."""
        found = [np.empty((0, self.encoder.n_columns + 1))]
        for rows, start, stop in self._chunks(encoded):
            density = self._density_parts(rows, self._factors(None))
            parts = self._density_share * density
            if self.neighbours is not None:
                parts[:, :-1] += self.neighbours.share * self.neighbours.contributions(rows)
            if self.forest is not None:
                trees = self.forest.contributions(self.features(rows, density))
                parts[:, :-1] += self.forest.share * trees
            found.append(parts[: stop - start])
        parts = np.concatenate(found)
        return parts[:, :-1], parts[:, -1]

    def density_parts(self, encoded: Encoded, folds: Sequence[int] | None = None) -> Floats:
        """Return what each column adds to the density's own score, shape (n, d)."""
        found = [np.empty((0, self.encoder.n_columns))]
        for rows, start, stop in self._chunks(encoded):
            parts = self._density_parts(rows, self._factors(folds))
            found.append(parts[: stop - start, :-1])
        return np.concatenate(found)

    def features(self, rows: Rows, density: Floats) -> Float[Tensor, "n f"]:
        """Return what a forest reads: rows as points, and what the density says of each column."""
        said = torch.from_numpy(density[:, : self.encoder.n_columns]).to(rows.inputs)
        return torch.cat([self._numbers.points(rows), said], 1)

    @cached_property
    def _numbers(self) -> Numbers:
        return Numbers.of(self.encoder, self.device)

    def outlook(self, encoded: Encoded, rows: Ints, columns: Ints) -> Outlook:
        """Return what was expected of m cells, given by the numbers of their rows and columns.

        By the likeliest member alone, in all passes of the density: the mean over those that know
        most of a column.
        """
        member = self.likeliest
        cells = Cells(torch.from_numpy(rows), torch.from_numpy(columns))
        informed = self.density.informed
        total = self.density.joint.no_outlook(len(rows))
        for chunk, start, stop in self._chunks(encoded):
            is_here = (cells.rows >= start) & (cells.rows < stop)
            for index in range(self.density.n_passes):
                lines = (is_here & informed[index, cells.columns]).nonzero().squeeze(-1)
                if not len(lines):
                    continue
                some = Cells(cells.rows[lines] - start, cells.columns[lines])
                with torch.no_grad(), denormals_as_zero():
                    part = member.density.outlook(chunk, index, some)
                share = 1 / informed.sum(0).double()[some.columns]
                for sums, values in zip(total, part, strict=True):
                    sums[lines] += share.reshape(-1, *[1] * (values.ndim - 1)) * values
        return total

    def log_density(self, encoded: Encoded) -> Floats:
        """Return log sum_m weight_m p_m(x), each p_m the mean of its passes' densities."""
        if not self.density.is_probabilistic:
            raise UserError(
                f"score_samples must have a density; got a {self.density.unit}, which is none: its "
                "exponential does not integrate to one. Use anomaly_score, or another 'density'."
            )
        log_weight = torch.tensor([m.weight for m in self.members], dtype=torch.float64).log()
        parts = [np.empty(0)]
        for rows, start, stop in self._chunks(encoded):
            log_p = torch.stack(
                [
                    mean_over_passes(self._terms(member, rows).double().sum(-1).T).cpu()
                    for member in self.members
                ],
                -1,
            )
            parts.append(torch.logsumexp(log_p + log_weight, -1)[: stop - start].numpy())
        return np.concatenate(parts)

    def drift(self, ranks: Ints, cells: Sequence[Ints]) -> Drift:
        """Compare rows, counted by the rank of their scores and by bin, with the normals."""
        normals = self.calibration.counts(self.calibration.normal_scores), self.reference.counts
        names = self.encoder.schema.names
        return compare(names, normals, (ranks, cells), self.reference)

    def with_calibration(self, calibration: Calibration) -> "FittedModel":
        """Return the same model with another threshold."""
        return replace(self, calibration=calibration)

    @property
    def _density_share(self) -> float:
        beside = (part.share for part in (self.neighbours, self.forest) if part is not None)
        return 1.0 - sum(beside)

    def _factors(self, folds: Sequence[int] | None) -> list[tuple[FittedMember, float]]:
        """Return the members of some folds, or all, with what a nat of each adds to their score."""
        members = [m for m in self.members if folds is None or m.fold in folds]
        total = sum(member.weight for member in members)
        return [(member, member.weight / member.scale / total) for member in members]

    def _density_parts(self, rows: Rows, factors: Sequence[tuple[FittedMember, float]]) -> Floats:
        """Return what columns and remainder add to the density's own score, shape (n, d + 1)."""
        parts = np.zeros((len(rows.targets), self.encoder.n_columns + 1))
        for member, factor in factors:
            cost = part_costs(self._terms(member, rows), self.selection)
            parts += factor * (cost - member.centre)
        return parts

    def _terms(self, member: FittedMember, rows: Rows) -> Float[Tensor, "o n _"]:
        return member_terms(member.density, member.anchors, rows, member.passes)

    def _chunks(self, encoded: Encoded, size: int | None = None) -> Iterator[tuple[Rows, int, int]]:
        """Yield rows in chunks, each with the numbers of the rows it stands for."""
        padding = size or PADDING[self.device.type]
        most = MAX_INPUTS // self.encoder.n_inputs // padding * padding
        size = size or min(CHUNK[self.device.type], max(most, padding))
        for start in range(0, len(encoded), size):
            stop = min(start + size, len(encoded))
            n_rows = -(-(stop - start) // padding) * padding
            # Padding repeats the chunk's first row.
            index = np.arange(start, start + n_rows)
            index[stop - start :] = start
            yield Rows.of(encoded.take(index), self.device), start, stop
