"""Files larger than memory: what scoring holds does not grow with the rows."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fewlier import AnomalyDetector, Made, Training

COLUMNS = [f"x{i}" for i in range(5)]
# The peak so far, in MB, after each file. Not ru_maxrss: a child inherits that of its parent. Small
# batches, so that a file of a few MB has many.
DRIVER = """
import json, pathlib, re, sys
from fewlier.cli.app import app
from fewlier.files import reading, text
text.BLOCK_BYTES, reading._BATCH_ROWS = 2**19, 8192
peaks = []
for name in sys.argv[2:]:
    app(["score", name, "-m", sys.argv[1], "-o", name + ".scored.csv"], standalone_mode=False)
    status = pathlib.Path("/proc/self/status").read_text()
    peaks.append(int(re.search(r"VmHWM:\\s+(\\d+) kB", status)[1]) / 1024)
print(json.dumps(peaks))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux tells the peak there")
def test_memory_does_not_grow_with_the_rows(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(20_000, 5)).round(6), columns=COLUMNS)
    tiny = {
        "density": Made(hidden=(4,), n_orderings=1),
        "training": Training(lambdas=(0,), max_epochs=1),
    }
    tiny |= {"selection": "best", "false_alarm_rate": 0.05, "random_state": 0}
    detector = AnomalyDetector(**tiny)
    detector.fit(table.head(1000)).save(tmp_path / "m.fewlier")
    names = []
    for n_times in (1, 10):
        rows = pd.concat([table] * n_times)
        rows.to_csv(tmp_path / f"{n_times}.csv", index=False)
        rows.to_parquet(tmp_path / f"{n_times}.parquet", index=False)
        names += [f"{n_times}.csv", f"{n_times}.parquet"]
    paths = [tmp_path / name for name in names]
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, tmp_path / "m.fewlier", *paths],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    peaks = dict(zip(names, json.loads(done.stdout), strict=True))
    # Held as a whole, ten times the rows would need 200 MB more.
    assert peaks["10.parquet"] - peaks["1.parquet"] < 60, peaks
    with (tmp_path / "10.csv.scored.csv").open() as file:
        assert sum(1 for _ in file) == 200_001


FIT_DRIVER = """
import json, pathlib, re, sys
from fewlier.cli.app import app
from fewlier.files import reading, sampling, text
text.BLOCK_BYTES, reading._BATCH_ROWS = 2**19, 8192
sampling.MAX_NORMALS = 5000
peaks = []
for name in sys.argv[1:]:
    words = ["--max-epochs", "1", "--selection", "best", "--density-option", "hidden=4"]
    app(["fit", name, "-o", name + ".fewlier", *words], standalone_mode=False)
    status = pathlib.Path("/proc/self/status").read_text()
    peaks.append(int(re.search(r"VmHWM:\\s+(\\d+) kB", status)[1]) / 1024)
print(json.dumps(peaks), file=sys.stderr)
"""


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux tells the peak there")
def test_the_memory_of_a_fit_does_not_grow_with_the_rows(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(30_000, 20)).round(6))
    table.columns = [f"x{i}" for i in range(20)]
    paths = []
    for n_times in (1, 12):
        paths += [tmp_path / f"{n_times}.csv", tmp_path / f"{n_times}.parquet"]
        rows = pd.concat([table] * n_times)
        rows.to_csv(paths[-2], index=False)
        rows.to_parquet(paths[-1], index=False, row_group_size=8192)
    done = subprocess.run(
        [sys.executable, "-c", FIT_DRIVER, *paths], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    peaks = json.loads(done.stderr.splitlines()[-1])
    # Held as a whole, twelve times the rows would need 100 MB more as numbers, 400 as text.
    assert peaks[3] - peaks[1] < 50, peaks
