"""Rows as points, between which to measure distances and to place thresholds."""

from dataclasses import dataclass, replace
from typing import final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from fewlier.density.rows import Rows
from fewlier.modelfile.state import State, require
from fewlier.score.neighbours.coordinates import COORDINATES, Coordinates
from fewlier.table import Encoder
from fewlier.table.columns import Column, Kind

# Numbers beyond are read as this, so that what is computed from them stays finite in float32.
_MAX = 1e30


@final
@dataclass(frozen=True, eq=False)
class NumericColumns:
    """The m columns of numbers that networks read as codes, as logarithms, or as one of two.

    Any two codes are equally far apart, but of counts 3 is nearer to 4 than to 9. And a number
    that is impossible in its column still lies somewhere: where counts run from 0 to 9, 1000 is
    further away than 11.

    Parameters
    ----------
    column, start : tensor (m,)
        Which columns, and the first input of each.
    left_over : tensor (s,)
        The inputs of their codes, except for the first, which takes the number; these become 0.
    levels : tensor (m, c)
        What their codes stand for; NaN where there is none.
    unit : tensor (m,)
        The mean of a column that is read as logarithms, so that numbers are of order 1 in any unit
        of the user's; else 1.
    fill : tensor (m,)
        Where a missing cell lies.
    """

    column: Int[Tensor, " m"]
    start: Int[Tensor, " m"]
    left_over: Int[Tensor, " s"]
    levels: Float[Tensor, "m c"]
    unit: Float[Tensor, " m"]
    fill: Float[Tensor, " m"]

    @classmethod
    def from_encoder(cls, encoder: Encoder, device: torch.device | str) -> "NumericColumns":
        """Find the columns of numbers that networks do not read as they are."""
        schema = encoder.schema.columns
        found = [d for d, column in enumerate(schema) if _is_coded_number(column)]
        _, first = np.unique(encoder.input_owner, return_index=True)  # of every column
        start = first[found]
        levels = np.full((len(found), max(1, encoder.n_levels.max())), np.nan)
        left_over: list[int] = []
        unit, fill = [], []
        for m, d in enumerate(found):
            n_codes, stats = encoder.n_levels[d], encoder.stats[d]
            # The rarer levels share the last code, which stands for the first of them.
            coded = (0, 1) if schema[d].kind is Kind.BINARY else schema[d].levels
            levels[m, :n_codes] = [float(level) for level in coded[:n_codes]]
            left_over += range(start[m] + 1, start[m] + n_codes)
            unit.append(stats.unit)
            # Between 0 and 1 in any table; a damaged file may have another.
            mean = np.clip(stats.mean_target / stats.unit, 0, 1)
            # Not the mean of levels: some may occur in labelled anomalies alone.
            fill.append(np.median(levels[m, :n_codes]) if n_codes else mean)
        indices = (torch.tensor(part, dtype=torch.int64) for part in (found, start, left_over))
        values = (torch.tensor(part, dtype=torch.float32) for part in (levels, unit, fill))
        return cls(*(part.to(device) for part in (*indices, *values)))

    def points(self, rows: Rows) -> Float[Tensor, "n i"]:
        """Return what networks read, but in place of codes or logarithms the number, then zeros."""
        if not len(self.column):
            return rows.inputs
        points = rows.inputs.clone()
        points[:, self.left_over] = 0
        points[:, self.start] = self._read(rows)
        return points

    def _read(self, rows: Rows) -> Float[Tensor, "n m"]:
        """Return the numbers of rows, also those outside their column's domain."""
        targets = rows.targets[:, self.column]
        is_inside = ~rows.impossible[:, self.column]
        codes = torch.where(is_inside, targets, 0).long().clamp(0, self.levels.shape[1] - 1)
        levels = self.levels[torch.arange(len(self.column), device=codes.device), codes]
        is_code = is_inside & ~self.levels[:, 0].isnan()
        numbers = torch.where(is_code, levels, targets / self.unit).clamp(-_MAX, _MAX)
        return torch.where(rows.observed[:, self.column], numbers, self.fill)


@final
@dataclass(frozen=True, eq=False)
class Space:
    """Where rows lie: each input on its scale, times the root of its column's weight.

    Parameters
    ----------
    coordinates : Coordinates
        The scales of the inputs.
    weight : tensor (d,)
        What a squared difference in each column counts, 1 on average.
    owner : tensor (i,)
        The column each input belongs to.
    missable : tensor (d,)
        The columns that miss cells on normal rows.
    numbers : NumericColumns
        The columns whose numbers networks do not read as they are.
    """

    coordinates: Coordinates
    weight: Float[Tensor, " d"]
    owner: Int[Tensor, " i"]
    missable: Bool[Tensor, " d"]
    numbers: NumericColumns

    @classmethod
    def fit(cls, encoder: Encoder, normals: Rows, scales: type[Coordinates]) -> "Space":
        """Take the scales from normal rows; columns weigh alike."""
        device = normals.inputs.device
        numbers = NumericColumns.from_encoder(encoder, device)
        inputs = numbers.points(normals.inside).double().cpu().numpy()
        weight = torch.ones(encoder.n_columns, device=device)
        coordinates = scales.fit(inputs).to(device)
        return cls(coordinates, weight, *_of_columns(encoder, device), numbers)

    def with_weight(self, weight: Float[Tensor, " d"]) -> "Space":
        """Return the space with other weights of the columns."""
        return replace(self, weight=weight)

    @property
    def limit(self) -> Float[Tensor, " i"]:
        """How far from 0 a row lies at most in each input."""
        return self.coordinates.limit * self.stretch

    @property
    def n_axes(self) -> Float[Tensor, " d"]:
        """How many inputs of each column differ between rows."""
        n_inputs, n_left_over = (
            owner.bincount(minlength=len(self.weight))
            for owner in (self.owner, self.owner[self.numbers.left_over])
        )
        return (n_inputs - n_left_over).double()

    def is_impossible_number(self, rows: Rows) -> Bool[Tensor, "n d"]:
        """Mark impossible values that are numbers: they lie somewhere nevertheless."""
        is_number = torch.zeros_like(self.missable)
        is_number[self.numbers.column] = True
        return rows.impossible & is_number

    def place(self, rows: Rows) -> Float[Tensor, "n i"]:
        """Return where rows lie."""
        return self.coordinates.place(self.numbers.points(rows)) * self.stretch

    def place_known(self, rows: Rows) -> Float[Tensor, "n i"]:
        """Return where rows lie, the cells that lie nowhere at 0: to find neighbours."""
        lies = rows.has_value | self.is_impossible_number(rows)
        return self.place(rows) * lies[:, self.owner]

    @property
    def stretch(self) -> Float[Tensor, " i"]:
        """What each input is multiplied by, so that squared differences have their weight."""
        return self.weight.sqrt()[self.owner]

    def state(self) -> State:
        """Return what a model file holds of it."""
        weight = self.weight.cpu().numpy()
        return State({"coordinates": self.coordinates.state()}, {"weight": weight})

    @classmethod
    def from_state(cls, state: State, encoder: Encoder, device: torch.device) -> "Space":
        """Inverse of `state`, checked."""
        part = state.part("coordinates")
        scales = COORDINATES[part.text("name", tuple(COORDINATES))]
        coordinates = scales.from_state(part, encoder.n_inputs).to(device)
        weight = torch.from_numpy(state.array("weight", np.float32, (encoder.n_columns,)))
        weight = weight.to(device)
        is_weight = bool((weight > 0).all() and (weight <= len(weight)).all())  # 1 on average
        require(is_weight, "a column weight of its neighbours is out of range.")
        numbers = NumericColumns.from_encoder(encoder, device)
        return cls(coordinates, weight, *_of_columns(encoder, device), numbers)


def _of_columns(encoder: Encoder, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return the column of each input, and which columns miss cells on normal rows."""
    owner, missable = encoder.input_owner, encoder.missable
    return torch.from_numpy(owner).to(device), torch.from_numpy(missable).to(device)


def _is_coded_number(column: Column) -> bool:
    """Whether a column has numbers with a unit that networks read in another form."""
    is_number = column.kind is not Kind.CATEGORY and not column.hardly_varies
    return is_number and column.coding is not Kind.REAL
