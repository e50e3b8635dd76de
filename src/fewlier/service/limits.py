"""What one request may ask for, and the refusal of one that asks for more."""

from dataclasses import dataclass
from typing import final

from fewlier.errors import UserError

MAX_REASONS = 50_000
"""Reasons of an answer, over all of its rows."""
MAX_BODIES = 8
"""Requests of the greatest length whose bytes a worker may hold at a time."""


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
    rows : int
        Rows of a request.
    seconds : float
        Time for a request to arrive, and again for its answer.
    waiting : int
        Requests that have arrived and wait in a worker.
    """

    body: int = 32 * 2**20
    rows: int = 10_000
    seconds: float = 30.0
    waiting: int = 64

    def check_rows(self, n_rows: int) -> None:
        """Refuse more rows than a request may have."""
        if n_rows > self.rows:
            raise Refusal(413, f"A request may have at most {self.rows} rows; got {n_rows}.")
