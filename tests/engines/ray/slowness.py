"""A scorer of files that takes its time, in a module that workers can import."""

import json
import os
import time
from pathlib import Path

from fewlier.engines import ray as engine

Original = engine._FileScorer


class SlowScorer(Original):
    """Leaves its process's number where the folder of the file says."""

    def _found(self, text):
        source = Path(json.loads(text)[0])
        marks = Path((source.parent / ".marks").read_text())
        (marks / str(os.getpid())).touch()
        time.sleep(0.5)
        return super()._found(text)
