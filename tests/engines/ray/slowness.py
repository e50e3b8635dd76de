"""What workers are given in place of scoring a file, in a module that they can import."""

import os
import resource
import signal
import time
from pathlib import Path

import torch

from fewlier.engines import ray as engine

score_job, load, Blocks = engine._score_job, engine._load, engine._BlockScorer


def mark(job):
    """Return a file for what a process tells, in the folder that the folder of the job names."""
    return Path((job.source.parent / ".marks").read_text()) / str(os.getpid())


def slowly(path, changed, threshold, job):
    """Score a file a moment later, and leave the process's number where its folder says."""
    mark(job).touch()
    time.sleep(0.5)
    return score_job(path, changed, threshold, job)


def deadly(path, changed, threshold, job):
    """Score a file, or be killed by one so called, as a process is that takes all memory."""
    if job.source.name.startswith("deadly"):
        os.kill(os.getpid(), signal.SIGKILL)
    return score_job(path, changed, threshold, job)


def greedily(path, changed, threshold, job):
    """Want more memory than the process may have."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 2**26, resource.RLIM_INFINITY))
    return [score_job(path, changed, threshold, job), bytearray(2**32)][0]


def telling(path, changed, threshold, job):
    """Score a file, and tell how many threads there are, and how many models were read."""
    found = score_job(path, changed, threshold, job)
    with mark(job).open("a") as file:
        print(torch.get_num_threads(), load.cache_info().misses, file=file)
    return found


class DyingBlocks(Blocks):
    """Is killed by every block."""

    def __call__(self, _):
        """Die."""
        os.kill(os.getpid(), signal.SIGKILL)
