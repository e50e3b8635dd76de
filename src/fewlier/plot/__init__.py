"""Figures in scikit-learn's Display style: data as attributes, drawn by `plot`.

Read in this order: base, rates, lambdas, pvalues, reasons, scores.
"""

from fewlier.plot.lambdas import LambdaDisplay
from fewlier.plot.pvalues import PValueDisplay
from fewlier.plot.rates import CurveDisplay
from fewlier.plot.reasons import ReasonDisplay
from fewlier.plot.scores import ScoreDisplay

__all__ = ["CurveDisplay", "LambdaDisplay", "PValueDisplay", "ReasonDisplay", "ScoreDisplay"]
