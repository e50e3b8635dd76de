"""Files larger than memory: peak memory and speed of `fewlier score` as a table grows.

    fewlier-bench large-files --rows 1000000 10000000 \
        --formats parquet csv --device cpu

Makes tables of ten columns, fits one model on 5,000 rows of the same kind (`selection="best"`: ten
passes per row), scores each table with the real command, and watches the memory of that process.
"""

import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from pathlib import Path

import numpy as np
import pyarrow as pa

from fewlier import AnomalyDetector
from fewlier.files.writing import create_table
from fewlier_bench.studies.study import Study, option

N_COLUMNS = 10
BATCH = 500_000


def batch(n_rows: int, seed: int) -> pa.Table:
    """Make rows of eight numbers, a count and a category."""
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(n_rows, N_COLUMNS - 2)).cumsum(1)
    columns = {f"x{j}": numbers[:, j].round(4) for j in range(numbers.shape[1])}
    columns["visits"] = rng.poisson(30, n_rows)
    columns["country"] = rng.choice(["de", "fr", "it"], n_rows)
    return pa.table(columns)


def make_file(path: Path, n_rows: int) -> None:
    """Write a table of `n_rows` rows."""
    with create_table(path) as write:
        for start in range(0, n_rows, BATCH):
            write(batch(min(BATCH, n_rows - start), start))


def resident_mb(pid: int) -> float:
    """Return the memory of a process, 0 when it has ended."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (FileNotFoundError, ProcessLookupError, IndexError):
        return 0.0
    return pages * 4096 / 1e6


def score(table: Path, model: Path) -> tuple[list[float], float]:
    """Score a table by the command; return its memory over time, and the seconds it took."""
    output = table.with_name(f"scored{table.suffix}")
    code = "from fewlier.cli import main; main()"
    command = [sys.executable, "-c", code, "score", str(table), "-m", str(model), "-o", str(output)]
    started = time.perf_counter()
    with subprocess.Popen(command) as process:
        memory = []
        while process.poll() is None:
            memory.append(resident_mb(process.pid))
            time.sleep(0.5)
    if process.returncode:
        raise SystemExit(process.returncode)
    output.unlink()
    return memory, time.perf_counter() - started


def run(options: Namespace) -> None:
    """Run and print one line per table."""
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder, "model.fewlier")
        detector = AnomalyDetector(selection="best", random_state=0, device=options.device)
        detector.fit(batch(5000, seed=1)).save(model)
        passes = detector.model_.ensemble.passes_per_row
        print(f"{passes} passes per row; memory in MB at tenths of the run, then its peak")
        for kind in options.formats:
            for n_rows in options.rows:
                table = Path(folder, f"table.{kind}")
                make_file(table, n_rows)
                size = table.stat().st_size / 1e6
                memory, seconds = score(table, model)
                tenths = [memory[int(len(memory) * share / 10)] for share in range(1, 10)]
                curve = " ".join(f"{mb:.0f}" for mb in tenths)
                print(
                    f"{kind:>7} {n_rows:>10,} rows {size:>6.0f} MB: {curve}; {max(memory):.0f}; "
                    f"{n_rows / seconds:,.0f} rows/s",
                    flush=True,
                )
                table.unlink()


STUDY = Study.of(
    run,
    option("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000]),
    option("--formats", nargs="+", default=["parquet", "csv"]),
    option("--device", default="auto"),
)
