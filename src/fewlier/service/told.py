"""What the workers of a service are told."""

from pathlib import Path
from typing import NamedTuple

from fewlier.service.limits import Limits

COULD_NOT_START = 3
"""Code of a worker that could not start, of uvicorn's too, which then ends the others."""


class Settings(NamedTuple):
    """What each worker is told. It travels to them in memory, with the token.

    Parameters
    ----------
    path : Path
        A model file, or a folder of them.
    counts : Path
        A folder for what workers count.
    limits : Limits
        What a request may ask for.
    hosts : tuple of str, or None
        Names that requests may give in `Host`; None: any.
    token : str or None
        What they must bring.
    threads : int
        Threads that a worker computes in.
    """

    path: Path
    counts: Path
    limits: Limits
    hosts: tuple[str, ...] | None
    token: str | None
    threads: int
