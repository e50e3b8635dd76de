"""What the displays share. They draw in the colours of matplotlib's cycle, so any style fits."""

from typing import TYPE_CHECKING

from fewlier.errors import UserError
from fewlier.shown import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_NAME = 28
"""Characters of a column's name that a figure has room for."""


def axes_or_new(ax: "Axes | None", size: tuple[float, float] | None = None) -> "Axes":
    """Return the axes to draw on, or those of a new figure, of a size in inches."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise UserError(
            "Figures must have matplotlib to draw them; it is not installed. "
            "Run: pip install 'fewlier[report]'"
        ) from error
    if ax is not None:
        return ax
    _, new = plt.subplots(layout="constrained", figsize=size)
    return new


def shortened(text: str, most: int = MAX_NAME) -> str:
    """Return text that fits in one line of a figure."""
    return shown(" ".join(text.split()), most)
