"""What one request may ask for, the refusal of one that asks for more, and what workers know."""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, final

from fewlier.errors import UserError

MAX_REASONS = 50_000
"""Reasons of an answer, over all of its rows."""
MAX_BODIES = 8
"""The requests that a worker holds have at most as many bytes as so many of the longest."""


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


def check_reasons(n_rows: int, n_each: int) -> None:
    """Refuse an answer of more reasons than one may have."""
    if n_rows * n_each > MAX_REASONS:
        asked = f"{n_rows} rows with {n_each} each"
        raise Refusal(413, f"An answer may have at most {MAX_REASONS} reasons; got {asked}.")


class Settings(NamedTuple):
    """What each worker is told. It travels to them in memory, with the token.

    Parameters
    ----------
    path : Path
        The model file.
    counts : Path
        A folder for what workers count.
    limits : Limits
        What a request may ask for.
    hosts : tuple of str
        Names that requests may give in `Host`; "*" is any.
    token : str or None
        What they must bring.
    threads : int
        Threads that a worker computes in.
    """

    path: Path
    counts: Path
    limits: Limits
    hosts: tuple[str, ...]
    token: str | None
    threads: int
