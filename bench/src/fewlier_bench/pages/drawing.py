"""The style of figures.

They are drawn without pyplot, and saved without dates, so that the same results on the same version
of matplotlib give the same files.
"""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec

from matplotlib import rc_context
from matplotlib.figure import Figure

OURS, PAPER, ACCENT = "#0072B2", "#D55E00", "#009E73"  # distinct for the colour-blind too
GREY = "#666666"
WIDTH = 7.0  # inches, the width of a page of text
_STYLE: dict[Any, Any] = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
    "svg.hashsalt": "fewlier",  # else the names inside an SVG file are drawn at random
}
Drawing = ParamSpec("Drawing")


def styled(draw: Callable[Drawing, Figure]) -> Callable[Drawing, Figure]:
    """Let a function draw in the style of these figures."""

    @wraps(draw)
    def drawn(*args: Drawing.args, **settings: Drawing.kwargs) -> Figure:
        with rc_context(_STYLE):
            return draw(*args, **settings)

    return drawn


def save(figure: Figure, folder: Path, name: str) -> None:
    """Write a figure as NAME.svg."""
    folder.mkdir(parents=True, exist_ok=True)
    with rc_context(_STYLE):
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
