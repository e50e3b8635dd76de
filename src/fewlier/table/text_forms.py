"""How the text of a column becomes numbers or dates: in one `Form`, recognised or declared."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Generic, NamedTuple, TypeVar, final

import numpy as np

from fewlier.errors import UserError
from fewlier.table.arrays import Bools
from fewlier.table.cells import Cells, missing

MIN_READ_SHARE = 0.9
"""Smallest share of a column that must be in one form; the other cells count as slips."""
# After training, columns with fewer unread cells are never refused.
_MIN_TO_JUDGE = 20

Values = TypeVar("Values")
FormT = TypeVar("FormT")


class Unread(NamedTuple):
    """Cells of one column that are not in its form: how many, the first row, and its text."""

    n: int
    row: int
    text: str


class Form(ABC, Generic[Values]):
    """How the cells of one column are written."""

    written: ClassVar[str]
    """What a column in such a form holds: ``numbers written like``, then the form."""

    @abstractmethod
    def parse(self, cells: Cells) -> tuple[Values, Bools]:
        """Read text, None where missing, and mark the cells that are not in this form."""

    def read(
        self, column: str, texts: Cells, *, is_training: bool = False
    ) -> tuple[Values, Unread | None]:
        """Read the text of a column; cells in another form are missing, and returned too.

        Raises
        ------
        UserError
            In training, if more than a tenth of the texts are in another form; later, if most of
            many are: it must be another column.
        """
        values, is_unread = self.parse(texts)
        rows = np.flatnonzero(is_unread)
        if not len(rows):
            return values, None
        unread = Unread(len(rows), int(rows[0]), texts[rows[0]])
        n_texts = int(np.count_nonzero(~missing(texts)))
        most = (
            (1 - MIN_READ_SHARE) * n_texts
            if is_training
            else max(n_texts - unread.n, _MIN_TO_JUDGE)
        )
        if unread.n > most:
            another = "Declare another form, or 'category', or correct them."
            raise UserError(
                f"Column {column!r} must hold {self.written} {self}; got {unread.n} texts of "
                f"{n_texts} that are not, such as {unread.text!r}",
                column=column,
                row=unread.row,
                remedy=another if is_training else "Write them as in the training table.",
            )
        return values, unread


@final
@dataclass(frozen=True)
class Recognised(Generic[FormT]):
    """The form of a column.

    Parameters
    ----------
    form : Form
        The form.
    other : Form or None
        Another form that reads the column as well, as other values.
    example : str
        The first cell that the two read differently.
    decimal : str
        The decimal mark that a column of numbers shows beyond doubt; empty if it shows none.
    """

    form: FormT
    other: FormT | None = None
    example: str = ""
    decimal: str = ""
