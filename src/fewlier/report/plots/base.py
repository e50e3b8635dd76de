"""What all displays share. They use matplotlib's colour cycle, so they fit any style."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self

from fewlier.errors import UserError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
else:  # matplotlib is an extra
    Axes = Figure = Any

__all__ = ["Axes", "Display"]


class Display(ABC):
    """A figure whose data are attributes.

    Attributes
    ----------
    ax_, figure_
        Where `plot` drew it last.
    """

    ax_: Axes
    figure_: Figure

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on the given axes, or on those of a new figure."""
        self.ax_ = self._new_axes() if ax is None else ax
        self.figure_ = self.ax_.get_figure(root=True)  # type: ignore[assignment] # axes have one
        self._draw(self.ax_)
        return self

    @property
    def _size(self) -> tuple[float, float] | None:
        """Width and height of a new figure in inches; None leaves them to matplotlib."""
        return None

    @abstractmethod
    def _draw(self, ax: Axes) -> None:
        """Draw on the axes."""

    def _new_axes(self) -> Axes:
        try:
            import matplotlib.pyplot as plt
        except ImportError as error:
            raise UserError(
                "Figures need matplotlib, which is not installed. "
                "Run: pip install 'fewlier[report]'"
            ) from error
        return plt.subplots(layout="constrained", figsize=self._size)[1]
