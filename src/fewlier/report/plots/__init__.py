"""Figures in scikit-learn's Display style: data as attributes, drawn by `plot`.

Read in this order: base, rates, pvalues, reasons, scores.
"""

from fewlier.report.plots.pvalues import PValueDisplay
from fewlier.report.plots.rates import CurveDisplay
from fewlier.report.plots.reasons import ReasonDisplay
from fewlier.report.plots.scores import ScoreDisplay

__all__ = ["CurveDisplay", "PValueDisplay", "ReasonDisplay", "ScoreDisplay"]
