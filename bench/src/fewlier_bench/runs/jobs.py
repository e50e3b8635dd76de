"""Jobs: what is computed in one go, and what it measures."""

import os
import platform
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias, final

from fewlier_bench.runs.results import Cell


@final
@dataclass(frozen=True)
class Measurement:
    """What was measured in a cell; see `Result`."""

    parameter: str = ""
    value: str = ""
    validation_auc: float | None = None
    auc: float | None = None
    average_precision: float | None = None
    seconds: float | None = None
    machine: str = ""
    reason: str = ""


Compute: TypeAlias = Callable[[Sequence[Cell]], list[tuple[Cell, Measurement]]]
"""Fills cells; it travels to another process, so it is a partial of a module's function."""


@final
@dataclass(frozen=True, eq=False)
class Job:
    """Cells of one table that are computed together.

    Parameters
    ----------
    seeds : mapping of Cell to int
        The cells, each with the seed of its random numbers.
    sha256 : str
        Hash of the table.
    compute : callable
        Takes some of the cells and returns what was measured in each of them.
    cost : float
        How long it takes, roughly, compared with others: the longest start first.
    packages : tuple of str
        Optional packages that compute, whose versions its rows name too.
    """

    seeds: Mapping[Cell, int]
    sha256: str
    compute: Compute
    cost: float
    packages: tuple[str, ...] = ()

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The cells that it fills."""
        return tuple(self.seeds)

    def without(self, done: Collection[Cell]) -> "Job":
        """Return the job for the cells that are not done."""
        return replace(self, seeds={c: seed for c, seed in self.seeds.items() if c not in done})


def n_cores() -> int:
    """Count the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def describe_machine(gpu: str | None = None) -> str:
    """Name the processor, its cores, and the GPU if one computed."""
    processor = f"{_processor()}, {n_cores()} cores"
    return f"{gpu}, {processor}" if gpu else processor


def _processor() -> str:
    """Return the model of the processor; on Linux only a file has it."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text("utf-8", "replace").splitlines() if path.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()
