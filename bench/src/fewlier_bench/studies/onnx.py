"""Graphs in onnxruntime beside the library: whether they say the same, and their speed and memory.

    fewlier-bench onnx run --data DIR --out results/onnx.csv
    fewlier-bench onnx show results/onnx.csv

DIR holds `.npz` files with X (n, d) and y (n,), 1 for an anomaly. Tables are cut to 12,000 rows. By
the seed, 5 % of the cells become gaps, and one column becomes text: which eighth of its values each
cell is in. A default detector is fitted to 90 % of the normals and six labelled anomalies, and
exported; then both score all rows, also those of the fit. `score` is the largest difference, in
standard units (above 1, as a share). `decisions` and `p_values` count the rows where these
differ although the score is not within the tolerance of the threshold, or of a stored score.

Rows a second are those of the fastest of several runs: in one thread by processor time, so that
other work does not matter, and in all threads by the clock; `load` is how many ran before.
Both give p-values. The library reads a DataFrame; onnxruntime reads arrays, in which categories are
codes already. Memory is what the peak of a new process grows by when it scores a batch. Rows that
the file has are not computed again.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from argparse import Namespace
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from fewlier import AnomalyDetector
from fewlier.export.onnx.check import TOLERANCE, Columns, compare, feed
from fewlier.export.onnx.export import export
from fewlier.table import Table
from fewlier_bench.data.few_labels import draw_clean
from fewlier_bench.runs.jobs import describe_machine, n_cores
from fewlier_bench.studies.grid import append, load, read, table_paths
from fewlier_bench.studies.study import FILE, OUT, TABLES, Study, option

N_LABELS, GAPS, N_LEVELS = 6, 0.05, 8
BATCH, LARGE_BATCH = 1000, 10_000
MAX_LOAD = 1.7  # of the two cores; above it, times by the clock say nothing
REPEATS = {1: 50, BATCH: 10}  # by the rows of a run
KEY = ["collection", "table", "seed"]
RATES = [f"{who}_{n}_{t}" for n in REPEATS for t in ("one", "all") for who in ("library", "graph")]
AGREEMENT = ["score", "decisions", "p_values"]
SIZES = ["export_seconds", "megabytes", f"memory_{BATCH}", f"memory_{LARGE_BATCH}"]
FIELDS = [*KEY, "rows", "columns", *AGREEMENT, *SIZES, *RATES, "load", "machine", "reason"]


def planted(X: np.ndarray, seed: int) -> pd.DataFrame:
    """Make one column text, and 5 % of the cells gaps."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(X).add_prefix("x")
    column = table.columns[rng.integers(len(table.columns))]
    eighths = np.ceil(N_LEVELS * table[column].rank(pct=True))
    table[column] = [f"eighth {place:.0f}" for place in eighths]
    return table.mask(rng.random(table.shape) < GAPS, None)


def session_of(path: Path, n_threads: int) -> Any:  # noqa: ANN401 - onnxruntime has no types
    """Return a graph, ready to run in so many threads."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = n_threads
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def in_batches(path: Path, columns: Columns, n_rows: int) -> Columns:
    """Return what a graph says of all rows, a batch at a time."""
    session = session_of(path, n_cores())
    names = [output.name for output in session.get_outputs()]
    found = [
        session.run(names, {name: cells[start : start + BATCH] for name, cells in columns.items()})
        for start in range(0, n_rows, BATCH)
    ]
    return {name: np.concatenate(parts) for name, *parts in zip(names, *found, strict=True)}


def rates(detector: AnomalyDetector, path: Path, table: pd.DataFrame, columns: Columns) -> Columns:
    """Return the rows a second of the library and of onnxruntime, by the names of `RATES`."""
    found: dict[str, Any] = {}
    before = torch.get_num_threads()
    for n_threads, threads in ((1, "one"), (n_cores(), "all")):
        clock = time.process_time if n_threads == 1 else time.perf_counter
        session = session_of(path, n_threads)
        torch.set_num_threads(n_threads)
        for n in REPEATS:
            some = table.iloc[np.resize(np.arange(len(table)), n)]
            fed = {name: np.resize(cells, n) for name, cells in columns.items()}
            runs = {
                "library": partial(detector.p_value, some),
                "graph": partial(session.run, None, fed),
            }
            for who, run_once in runs.items():
                seconds = fastest(run_once, REPEATS[n], clock)
                found[f"{who}_{n}_{threads}"] = f"{n / seconds:.0f}"
    torch.set_num_threads(before)
    return found


def fastest(run_once: Callable[[], object], repeats: int, clock: Callable[[], float]) -> float:
    """Return the seconds of the fastest run but the first."""
    times = []
    for _ in range(repeats + 1):
        started = clock()
        run_once()
        times.append(clock() - started)
    return min(times[1:])


def memory(path: Path, columns: Columns, n: int) -> str:
    """Return the megabytes that the peak of a new process grows by when it scores n rows."""
    rows = path.with_suffix(".npz")
    many: Any = {name: np.resize(cells, n) for name, cells in columns.items()}
    np.savez(rows, **many)
    code = f"from {__name__} import print_growth; print_growth({str(path)!r}, {str(rows)!r})"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return f"{float(done.stdout):.0f}"


def print_growth(path: str, rows: str) -> None:
    """Print the megabytes that the peak of this process grows by when it scores rows at once."""
    session = session_of(Path(path), n_cores())
    with np.load(rows) as archive:
        columns = dict(archive)
    session.run(None, {name: cells[:1] for name, cells in columns.items()})
    before = _peak()
    session.run(None, columns)
    print(_peak() - before)


def _peak() -> float:
    """Return the peak of this process's memory in megabytes.

    Linux counts for a new process what its parent held, but in the line VmHWM.
    """
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    lines = dict(line.split(":", 1) for line in status.read_text("ascii").splitlines())
    return float(lines["VmHWM"].split()[0]) * 1.024e-3


def measured(X: np.ndarray, y: np.ndarray, seed: int, folder: Path) -> dict[str, Any]:
    """Fit a table with gaps and categories, export the model, and compare and time both."""
    table, split = planted(X, seed), draw_clean(y, N_LABELS, seed)
    if isinstance(split, str):
        return {"reason": split}
    detector = AnomalyDetector(device="cpu", random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of too few rows for a rate of 1 %
        detector.fit(table.iloc[split.given], split.labels)
    model, path = detector.model_, folder / "model.onnx"
    started = time.perf_counter()
    export(model, path, is_checked=False)
    seconds = time.perf_counter() - started
    matched = model.encoder.schema.match(Table.of(table))
    columns = feed(model.encoder, matched, {})
    difference = compare(model, matched, in_batches(path, columns, len(table)))
    counts = difference.score, difference.n_decisions, difference.n_p_values
    size = path.stat().st_size / 1e6
    n_running = os.getloadavg()[0]
    memories = [memory(path, columns, n) for n in (BATCH, LARGE_BATCH)]
    return {
        "rows": len(table),
        "columns": table.shape[1],
        **dict(zip(AGREEMENT, (f"{counts[0]:.1e}", *counts[1:]), strict=True)),
        **dict(zip(SIZES, (f"{seconds:.0f}", f"{size:.1f}", *memories), strict=True)),
        **rates(detector, path, table, columns),
        "load": f"{n_running:.1f}",
        "machine": describe_machine(),
    }


def run(arguments: Namespace) -> None:
    """Compute the rows that are not in the file yet."""
    done = {tuple(row[name] for name in KEY) for row in read(arguments.out)}
    collection = arguments.data.resolve().name
    for path in table_paths(arguments.data, arguments.tables):
        key = (collection, path.stem, str(arguments.seed))
        if key in done:
            continue
        with tempfile.TemporaryDirectory() as folder:
            found = measured(*load(path), arguments.seed, Path(folder))
        append(arguments.out, FIELDS, [dict(zip(KEY, key, strict=True)) | found])
        print(*key, *(found.get(name) for name in AGREEMENT), flush=True)


def show(arguments: Namespace) -> None:
    """Print a line for each table, and what is the largest or the middle of them, as Markdown."""
    rows = [row for row in read(arguments.out) if row["score"]]
    names = ["table", "rows", "columns", *AGREEMENT, *SIZES, *RATES, "load"]
    print("|", " | ".join(names), "|")
    print("|---" * len(names) + "|")
    for row in rows:
        print("|", " | ".join(row[name] for name in names), "|")
    values = {name: numbers(rows, name) for name in names[1:]}
    n_rows, largest = sum(values["rows"]), max(values["score"])
    print(
        f"\n{n_rows:,.0f} rows of {len(rows)} tables: scores differ by up to {largest:.1e}", end=""
    )
    print(f" (tolerance {TOLERANCE:g}), {sum(values['decisions']):.0f} decisions", end="")
    print(f" and {sum(values['p_values']):.0f} p-values")
    for name in (*SIZES, *RATES):
        if values[name]:
            low, middle, high = np.quantile(values[name], (0, 0.5, 1))
            print(f"{name}: median {middle:,.1f}, {low:,.1f} to {high:,.1f}")
    for n, threads in ((n, t) for n in REPEATS for t in ("one", "all")):
        graph, library = (values[f"{who}_{n}_{threads}"] for who in ("graph", "library"))
        if graph:
            ratio = np.median([a / b for a, b in zip(graph, library, strict=True)])
            print(f"onnxruntime / library, {n} rows, threads: {threads}: {ratio:.2f}")


def numbers(rows: Sequence[dict[str, str]], name: str) -> list[float]:
    """Return the numbers of a field; those by the clock only where little else ran."""
    is_by_clock = name.endswith("_all")
    quiet = [row for row in rows if row["load"] and float(row["load"]) <= MAX_LOAD]
    return [float(row[name]) for row in (quiet if is_by_clock else rows) if row[name]]


STUDY = Study.of(
    run,
    OUT,
    *TABLES,
    option("--seed", type=int, default=0),
) | Study.of(show, FILE)
