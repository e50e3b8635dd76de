"""Figures in scikit-learn's Display style: data as attributes, drawn by `plot`.

Read in this order: base, curves, lambdas, pvalues, reasons, scores.
"""

from fewlier.plot.curves import CurveDisplay
from fewlier.plot.lambdas import LambdaDisplay
from fewlier.plot.pvalues import PValueDisplay
from fewlier.plot.reasons import ReasonDisplay
from fewlier.plot.scores import ScoreDisplay

__all__ = ["CurveDisplay", "LambdaDisplay", "PValueDisplay", "ReasonDisplay", "ScoreDisplay"]
