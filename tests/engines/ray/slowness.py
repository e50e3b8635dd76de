"""Scorers that take their time, die or tell of themselves, in a module that workers can import."""

import errno
import os
import resource
import signal
import time
from pathlib import Path

import torch

from fewlier.detector import AnomalyDetector
from fewlier.engines import ray as engine

Files, Blocks = engine._FileScorer, engine._BlockScorer


def mark(job):
    """Return a file for what a process tells, in the folder that the folder of the job names."""
    return Path((job.source.parent / ".marks").read_text()) / str(os.getpid())


class SlowScorer(Files):
    """Leaves its process's number where the folder of the file says."""

    def score(self, job):
        """Score a file a moment later."""
        mark(job).touch()
        time.sleep(0.5)
        return super().score(job)


class DyingScorer(Files):
    """Is killed by each file whose name begins with "deadly", as one is that takes all memory."""

    def score(self, job):
        """Score a file, or die of it."""
        if job.source.name.startswith("deadly"):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().score(job)


class GreedyScorer(Files):
    """Needs more memory than its process may have."""

    def score(self, job):
        """Want too much memory."""
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + 2**26, resource.RLIM_INFINITY))
        return [super().score(job), bytearray(2**32)][0]


class StillbornScorer(Files):
    """Is killed before it has begun."""

    def __init__(self, _):
        os.kill(os.getpid(), signal.SIGKILL)


class TellingScorer(Files):
    """Tells how many threads it has, and how often it has read a model."""

    def __init__(self, model):
        super().__init__(model)
        self._n_loads, load = 0, AnomalyDetector.load

        def counted(path):
            self._n_loads += 1
            return load(path)

        AnomalyDetector.load = counted

    def score(self, job):
        """Score a file, and tell."""
        found = super().score(job)
        with mark(job).open("a") as file:
            print(torch.get_num_threads(), self._n_loads, file=file)
        return found


class DyingBlocks(Blocks):
    """Is killed by every block."""

    def __call__(self, _):
        """Die."""
        os.kill(os.getpid(), signal.SIGKILL)


class BucketScorer(Files):
    """Sees its files in storage that cannot rename."""

    def __init__(self, model):
        super().__init__(model)
        Path.replace = no_rename


def no_rename(*_):
    """Refuse, as mounted object storage does."""
    raise OSError(errno.ENOSYS, "Function not implemented")
