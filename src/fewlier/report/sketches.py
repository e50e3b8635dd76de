"""Small histograms beside the reasons: training normals in a column, and where a value lies."""

from dataclasses import dataclass
from typing import final

import numpy as np

from fewlier.decision.reference import Reference
from fewlier.table import Column, Encoder, Kind
from fewlier.table.arrays import Floats, Ints
from fewlier.table.scaling import LOGGED

N_BARS = 24  # the rarer levels of a category share the last one
BEYOND = 0.05  # how far outside the bars a value is drawn that lies beyond all training normals


@final
@dataclass(frozen=True, eq=False)
class Sketch:
    """A histogram of the training normals of one column.

    Parameters
    ----------
    heights : array (b,)
        Rows in each bar, relative to the fullest bar.
    low, high : float
        Where the bars begin and end: on the axis of targets, or of positions of levels.
    unit : float or None
        The axis is ``log1p(target / unit)``; None: the targets themselves.
    bars : tuple of int, or None
        The bar of each code, where codes are levels.
    """

    heights: Floats
    low: float
    high: float
    unit: float | None = None
    bars: tuple[int, ...] | None = None

    @classmethod
    def from_reference(cls, encoder: Encoder, reference: Reference, d: int) -> "Sketch":
        """Draw column `d` from the counts that a model keeps to notice drift."""
        column, stats, edges = encoder.schema.columns[d], encoder.stats[d], reference.edges[d]
        counts = reference.counts[d][:-2]  # without impossible and missing cells
        if not len(edges):
            return cls._of_levels(column, counts)
        if column.coding in LOGGED:
            return cls._of_numbers(np.log1p(edges / stats.unit), counts, stats.low, stats.unit)
        return cls._of_numbers(edges.astype(np.float64), counts, 0.0, None)

    @classmethod
    def _of_levels(cls, column: Column, counts: Ints) -> "Sketch":
        """Draw one bar per level, the most frequent first, or in order if levels are numbers."""
        n = min(len(counts), N_BARS)
        heights = np.append(counts[: n - 1], counts[n - 1 :].sum()).astype(np.float64)
        order = np.arange(n)
        if column.kind is not Kind.CATEGORY and len(column.levels) == n:
            order = np.argsort([float(level) for level in column.levels[:n]])
        bars = tuple(np.argsort(order).tolist())
        # A level lies in the middle of its bar.
        return cls(_relative(heights[order]), -0.5, n - 0.5, bars=bars)

    @classmethod
    def _of_numbers(cls, edges: Floats, counts: Ints, low: float, unit: float | None) -> "Sketch":
        """Spread the normals between two edges evenly over the bars between them."""
        low = min(low, float(edges[0]))
        high = max(float(edges[-1]), low + 1e-9)
        share = np.cumsum(counts[: len(edges)]) / max(counts.sum(), 1)
        ends = np.interp(np.linspace(low, high, N_BARS + 1), [low, *edges], [0.0, *share])
        ends[0] = 0.0  # values at the left end belong to the first bar
        return cls(_relative(np.diff(ends)), low, high, unit)

    def place(self, target: float, is_impossible: bool) -> float:
        """Return where a value lies: 0 is the left end, 1 the right; at most `BEYOND` outside."""
        if self.unit is not None:
            target = float(np.log1p(max(target, 0) / self.unit))
        elif is_impossible:
            return 1 + BEYOND
        if self.bars is not None:
            target = self.bars[min(int(target), len(self.bars) - 1)]
        place = (target - self.low) / (self.high - self.low)
        return float(np.clip(place, -BEYOND, 1 + BEYOND))

    def path(self, width: int, height: int) -> str:
        """Return the bars as an SVG path that stands on the bottom line."""
        bar = width / len(self.heights)
        tops = (round(height * (1 - share), 1) for share in self.heights.tolist())
        steps = "".join(f"V{top:g}h{bar:.3g}" for top in tops)
        return f"M0 {height}{steps}V{height}z"


def _relative(heights: Floats) -> Floats:
    return heights / max(float(heights.max()), 1e-12)
