"""Counts in files that are there before they are mapped."""

import os
import re
import subprocess
import sys

from fewlier.service.metrics import Counts

COUNT = """
import resource, sys
from pathlib import Path
from fewlier.service.metrics import Counts

if "full" in sys.argv:
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
counts = Counts(Path(sys.argv[1]))
counts.request("/score", 200, 0.1)
counts.rows(5, 2)
counts.model_file("taken up")
sys.stdout.buffer.write(counts.exposition())
"""


def count(folder, *words):
    """Count in a process of its own, and return what it tells."""
    return subprocess.run(
        [sys.executable, "-c", COUNT, folder, *words],
        capture_output=True,
        text=True,
        env=os.environ | {"PROMETHEUS_MULTIPROC_DIR": str(folder)},
        check=True,
    )


def test_counts_of_all_workers_are_told_by_each(tmp_path):
    count(tmp_path)
    told = count(tmp_path).stdout
    assert 'fewlier_rows_total{is_anomaly="true"} 4.0' in told
    assert 'fewlier_rows_total{is_anomaly="false"} 6.0' in told
    assert 'fewlier_requests_total{path="/score",status="200"} 2.0' in told
    assert re.search(r'request_seconds_count\{path="/score"\} 2\.0', told)


def test_files_of_counts_have_their_blocks_before_they_are_mapped(tmp_path):
    Counts(tmp_path)
    files = sorted(tmp_path.iterdir())
    assert [file.name.split("_")[0] for file in files] == ["counter", "histogram"]
    for file in files:  # a file with a hole would end the process once the disk is full
        assert file.stat().st_blocks * 512 >= file.stat().st_size == 2**16


def test_where_counts_cannot_be_kept_none_is_kept_and_the_log_says_so(tmp_path):
    done = count(tmp_path, "full")
    assert done.stdout == ""
    assert "this worker counts nothing" in done.stderr
