"""What one request may ask for, and the refusal of one that asks for more."""

from dataclasses import dataclass
from typing import final

from fewlier.errors import UserError

MAX_REASONS = 99_999
"""Columns that a request may ask to be named for a row; those that there are will be."""


@final
class Refusal(UserError):
    """A request that is not answered, with the status of HTTP that says why."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@final
@dataclass(frozen=True)
class Limits:
    """What one request may ask for. Whoever runs the service may move each of them.

    Parameters
    ----------
    body : int
        Bytes of a request.
    rows, columns : int
        Rows and columns of a request.
    cell : int
        Characters of a cell.
    seconds : float
        Time for a request to arrive, and again for its answer.
    waiting : int
        Requests that a worker has taken and not answered yet.
    reasons : int
        Reasons of an answer, over all of its rows.
    """

    body: int = 32 * 2**20
    rows: int = 10_000
    columns: int = 5_000
    cell: int = 10_000
    seconds: float = 30.0
    waiting: int = 64
    reasons: int = 50_000

    def check_shape(self, n_rows: int, n_columns: int) -> None:
        """Refuse a table of more rows or columns than a request may have."""
        for what, found, most in (
            ("rows", n_rows, self.rows),
            ("columns", n_columns, self.columns),
        ):
            if found > most:
                raise Refusal(
                    413,
                    f"A request may have at most {most} {what}; got {found}. Send fewer at a time.",
                )

    def check_reasons(self, n_rows: int, n_each: int) -> None:
        """Refuse an answer of more reasons than one may have."""
        if n_rows * n_each > self.reasons:
            raise Refusal(
                413,
                f"An answer may have at most {self.reasons} reasons; {n_rows} rows with {n_each} "
                f"each would have {n_rows * n_each}. Send fewer rows, or ask for fewer reasons.",
            )

    def check_cell(self, column: str, row: int, length: int) -> None:
        """Refuse a cell of more characters than one may have."""
        if length > self.cell:
            raise Refusal(
                413,
                f"A cell may have at most {self.cell} characters; got {length} in row {row}, "
                f"column {column!r}.",
            )
