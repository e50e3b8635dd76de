"""What a printed table holds: values, each with what it is compared with. `rendering` writes it."""

from dataclasses import dataclass
from math import isnan
from typing import final

AVERAGE = "average"  # the last row, below a rule


@final
@dataclass(frozen=True)
class Value:
    """A number, and what it is compared with; None where there is none."""

    ours: float | None
    reference: float | None = None
    is_bold: bool = False

    @property
    def difference(self) -> float | None:
        """Ours minus the reference."""
        if self.ours is None or self.reference is None:
            return None
        return self.ours - self.reference


@final
@dataclass(frozen=True)
class PrintedColumn:
    """A heading and a value per row, shown with `digits` digits after the point."""

    heading: str
    values: tuple[Value, ...]
    digits: int = 3
    has_difference: bool = True


@final
@dataclass(frozen=True)
class PrintedTable:
    """A table of a page: a name per row, and columns with a value per row.

    Its files are called `name`; `reference` says what its values are compared with.
    """

    name: str
    title: str
    reference: str
    rows: tuple[str, ...]
    columns: tuple[PrintedColumn, ...]
    notes: tuple[str, ...] = ()

    @property
    def compared(self) -> str:
        """What is shown next to each value."""
        is_shown = any(column.has_difference for column in self.columns)
        return f"{self.reference}'s{', and the difference' if is_shown else ''}"


def known(number: float) -> float | None:
    """Return None for NaN, which stands for a missing result."""
    return None if isnan(number) else float(number)
