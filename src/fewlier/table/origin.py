"""`Origin`: the DataFrame library that rows came from, and their labels there."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from fewlier.table.arrays import Ints

if TYPE_CHECKING:
    import pyarrow as pa

_ARROW = "pyarrow"


@final
@dataclass(frozen=True, eq=False)
class Origin:
    """Where rows came from, so that what is found of them can go back there.

    Parameters
    ----------
    library : str
        The DataFrame library as narwhals calls it; "pyarrow" for arrays and streams, too.
    index : pandas.Index or None
        Labels of the rows, if they came in a pandas DataFrame.
    """

    library: str = _ARROW
    index: Any | None = None

    @classmethod
    def of(cls, data: object) -> "Origin":
        """Return the origin of rows that `Table.of` reads; a lazy frame is not computed."""
        if isinstance(data, np.ndarray | list | tuple):
            return cls()
        import narwhals as nw  # here, because arrays need no DataFrame package

        frame = nw.from_native(data, pass_through=True)
        if isinstance(frame, nw.DataFrame):
            return cls(frame.implementation.value, nw.maybe_get_index(frame))
        if isinstance(frame, nw.LazyFrame) and frame.implementation.is_polars():
            return cls(frame.implementation.value)
        return cls()

    def take(self, rows: Ints) -> "Origin":
        """Return the origin of some rows, given by their positions."""
        return Origin(self.library, None if self.index is None else self.index.take(rows))

    def frame(self, lines: "pa.Table") -> Any:  # noqa: ANN401 - of any library
        """Return a table of the library, one line for each row, with the labels of the rows."""
        import narwhals as nw

        backend: Any = self.library
        frame = nw.from_arrow(lines, backend=backend).to_native()
        return frame if self.index is None else frame.set_axis(self.index)
