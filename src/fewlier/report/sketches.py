"""Small pictures beside the reasons: how training normals lie in a column, and where a value is."""

from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from fewlier.decision.drift import Reference
from fewlier.table import Column, Encoder, Kind
from fewlier.table.encode import LOGGED

N_BARS = 24
"""Bars of a picture; the rarer levels of a category share the last one."""
BEYOND = 0.05
"""How far outside the bars a value is drawn that no training normal comes near."""

Floats = npt.NDArray[np.float64]


@final
@dataclass(frozen=True, eq=False)
class Sketch:
    """A histogram of the training normals of one column.

    Parameters
    ----------
    heights : array (b,)
        The share of normals in each bar, relative to the fullest.
    low, high : float
        Where the bars begin and end: on the axis of targets, or of positions of levels.
    unit : float or None
        The axis is that of ``log1p(target / unit)``; None: of the targets themselves.
    bars : tuple of int, or None
        The bar of each code, where codes are levels.
    """

    heights: Floats
    low: float
    high: float
    unit: float | None = None
    bars: tuple[int, ...] | None = None

    def place(self, target: float, is_impossible: bool) -> float:
        """Return where a value lies, from 0, the left end, to 1; at most `BEYOND` outside."""
        if self.unit is not None:
            target = float(np.log1p(max(target, 0) / self.unit))
        elif is_impossible:
            return 1 + BEYOND
        if self.bars is not None:
            target = self.bars[min(int(target), len(self.bars) - 1)]
        place = (target - self.low) / (self.high - self.low)
        return float(np.clip(place, -BEYOND, 1 + BEYOND))

    def path(self, width: int, height: int) -> str:
        """Return the bars as a path of SVG, from the left end to the right, on the bottom line."""
        bar = width / len(self.heights)
        tops = (round(height * (1 - share), 1) for share in self.heights.tolist())
        steps = "".join(f"V{top:g}h{bar:.3g}" for top in tops)
        return f"M0 {height}{steps}V{height}z"


def sketch_columns(encoder: Encoder, reference: Reference) -> list[Sketch]:
    """Draw the columns of a model from what it keeps to notice drift."""
    columns = zip(encoder.schema.columns, encoder.stats, strict=True)
    sketches = []
    for (column, stats), edges, counts in zip(
        columns, reference.edges, reference.counts, strict=True
    ):
        inside = counts[:-2]  # neither impossible nor missing
        if not len(edges):
            sketches.append(_sketch_levels(column, inside))
        elif column.coding in LOGGED:
            axis = np.log1p(edges / stats.unit)
            sketches.append(_sketch_numbers(axis, inside, stats.low, stats.unit))
        else:
            sketches.append(_sketch_numbers(edges.astype(np.float64), inside, 0.0, None))
    return sketches


def _sketch_levels(column: Column, counts: npt.NDArray[np.int64]) -> Sketch:
    """Draw a bar for each level, the most frequent first; numbers in their own order."""
    n = min(len(counts), N_BARS)
    heights = np.append(counts[: n - 1], counts[n - 1 :].sum()).astype(np.float64)
    order = np.arange(n)
    if column.kind is not Kind.CATEGORY and len(column.levels) == n:
        order = np.argsort([float(level) for level in column.levels[:n]])
    bars = tuple(np.argsort(order).tolist())
    # The place of a level is the middle of its bar.
    return Sketch(_relative(heights[order]), -0.5, n - 0.5, bars=bars)


def _sketch_numbers(
    edges: Floats, counts: npt.NDArray[np.int64], low: float, unit: float | None
) -> Sketch:
    """Spread the normals between two edges evenly over the bars between them."""
    low = min(low, float(edges[0]))
    high = max(float(edges[-1]), low + 1e-9)
    share = np.cumsum(counts[: len(edges)]) / max(counts.sum(), 1)
    ends = np.interp(np.linspace(low, high, N_BARS + 1), [low, *edges], [0.0, *share])
    ends[0] = 0.0  # what lies on the left end belongs to the first bar
    return Sketch(_relative(np.diff(ends)), low, high, unit)


def _relative(heights: Floats) -> Floats:
    return heights / max(float(heights.max()), 1e-12)
