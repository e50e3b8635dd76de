"""Tables larger than memory: the cost of a fit, the size of its sample, and rows/s on engines.

    fewlier-bench scale fit --rows 1000000 10000000
    fewlier-bench scale sample
    fewlier-bench scale growth
    fewlier-bench scale thread
    fewlier-bench scale engines --engine ray

`fit` makes Parquet files of a million rows x 20, fits one model to them by the real command, and
keeps its time and its peak memory. `sample` fits a table of a million rows by samples of several
sizes and compares the AUC on other rows. `growth` times fits and scores of more columns and more
labels. `thread` times the scoring of a batch in one thread. `engines` scores a folder in one
process, with one and with more threads, and on an engine with one and two workers; speed is that of
the rows that a larger folder has more than a smaller one, so that starting up does not count.
Every row goes into results/scale.csv as soon as it is there; what is there is not done again.
"""

import csv
import json
import os
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from sklearn.metrics import roc_auc_score

from fewlier import AnomalyDetector
from fewlier.files import sampling
from fewlier.scoring.batches import BatchScorer
from fewlier_bench.runs.jobs import describe_machine, n_cores
from fewlier_bench.studies.study import Study, option

N_NUMBERS, N_COLUMNS = 14, 20
FILE_ROWS, GROWTH_ROWS, ANOMALIES = 1_000_000, 200_000, 0.01
LABEL, CITIES = "fraud", [f"city {i}" for i in range(50)]
FIELDS = ("what", "method", "rows", "repeat", "value", "unit", "peak_mb", "machine")
# The peak is that of the process itself; ru_maxrss would begin with its parent's.
DRIVER = """
import pathlib, re, sys
from fewlier.cli.app import app
app(sys.argv[1:], standalone_mode=False)
status = pathlib.Path("/proc/self/status").read_text()
print("peak", int(re.search(r"VmHWM:\\s+(\\d+) kB", status)[1]) / 1024, file=sys.stderr)
"""


def make_rows(n: int, seed: int, n_labels: int = 0) -> tuple[pa.Table, np.ndarray]:
    """Make rows of twenty columns, one in a hundred an anomaly, and say which.

    Of the anomalies, `n_labels` are labelled; no other row is. In an anomaly the numbers are those
    of another row from the ninth on, and two of the counts and amounts are larger.
    """
    rng = np.random.default_rng([seed, n])
    is_odd = rng.random(n) < ANOMALIES
    factors = rng.normal(size=(n, 4))
    # The mixing is that of every seed, for all files are parts of one table.
    mixing = np.random.default_rng(0).normal(size=(4, N_NUMBERS))
    numbers = factors @ mixing + 0.5 * rng.normal(size=(n, N_NUMBERS))
    odd = np.flatnonzero(is_odd)
    numbers[odd, 8:] = numbers[rng.permutation(n)[: len(odd)], 8:]
    columns: dict[str, Any] = {f"x{j:02}": numbers[:, j].round(4) for j in range(N_NUMBERS)}
    columns["visits"] = rng.poisson(4 + 2 * is_odd)
    columns["items"] = rng.poisson(40, n)
    columns["amount"] = rng.lognormal(3 + 0.5 * is_odd, 1).round(2)
    columns["wait"] = rng.exponential(10, n).round(3)
    places = rng.zipf(1.5, n) % len(CITIES)
    columns["city"] = pa.DictionaryArray.from_arrays(places, CITIES).cast(pa.string())
    columns["channel"] = rng.choice(["web", "shop", "phone"], n, p=[0.6, 0.3, 0.1])
    label = np.full(n, np.nan)
    label[odd[:n_labels]] = 1
    columns[LABEL] = pa.array(label, from_pandas=True)
    return pa.table(columns), is_odd


def make_folder(folder: Path, n_rows: int, file_rows: int = FILE_ROWS) -> Path:
    """Write rows in files, but for those that are there; a hundred anomalies are labelled."""
    folder.mkdir(parents=True, exist_ok=True)
    n_files = -(-n_rows // file_rows)
    for number in range(n_files):
        path = folder / f"part-{number:05}.parquet"
        if not path.exists():
            n_left = n_rows - number * file_rows
            rows, _ = make_rows(min(file_rows, n_left), number, -(-100 // n_files))
            pq.write_table(rows, path.with_suffix(".tmp"), row_group_size=100_000)
            path.with_suffix(".tmp").rename(path)
    return folder


def fit_files(options: Namespace) -> Iterator[dict[str, Any]]:
    """Fit one model to ever more rows."""
    for n_rows in options.rows:
        if is_done(options, "fit", "file", n_rows):
            continue
        folder = make_folder(options.folder / f"fit-{n_rows}", n_rows)
        words = ["fit", str(folder), "--label", LABEL, "-o", str(options.folder / "m.fewlier")]
        started = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", DRIVER, *words], capture_output=True, text=True, check=True
        )
        seconds = time.perf_counter() - started
        peak = float(done.stderr.rsplit("peak", 1)[1])
        yield {"what": "fit", "method": "file", "rows": n_rows, "value": seconds, "peak_mb": peak}


def compare_samples(options: Namespace) -> Iterator[dict[str, Any]]:
    """Fit a million rows by samples of several sizes, each with the same labels."""
    usual = sampling.MAX_NORMALS
    for repeat in range(options.repeats):
        rows = unseen = None
        for size in options.samples:
            method = f"{size} normals, {options.labels} labels"
            if is_done(options, "sample", method, FILE_ROWS, repeat):
                continue
            if rows is None or unseen is None:
                rows, _ = make_rows(FILE_ROWS, 100 + repeat, options.labels)
                unseen, is_odd = make_rows(200_000, 200 + repeat)
            sampling.MAX_NORMALS = size
            detector = AnomalyDetector(random_state=repeat).fit(iter(rows.to_batches()), LABEL)
            sampling.MAX_NORMALS = usual
            auc = roc_auc_score(is_odd, detector.anomaly_score(unseen.drop_columns(LABEL)))
            known = {"what": "sample", "method": method, "rows": FILE_ROWS, "repeat": repeat}
            yield {**known, "value": auc, "unit": "AUC"}
            seconds = detector.summary_.seconds
            yield {**known, "what": "sample seconds", "value": seconds, "unit": "s"}


def time_growth(options: Namespace) -> Iterator[dict[str, Any]]:
    """Time fits and scores of more columns, by copies of them, and of more labels."""
    new, _ = make_rows(65_536, 5)
    for n_copies, n_labels in [(n, 100) for n in (1, 2, 4, 8)] + [(1, 1000), (1, 2000)]:
        method = f"{n_copies * N_COLUMNS} columns, {n_labels} labels"
        if is_done(options, "growth of a score", method, new.num_rows):
            continue
        rows = repeat_columns(make_rows(GROWTH_ROWS, 6, n_labels)[0], n_copies)
        started = time.perf_counter()
        detector = AnomalyDetector(random_state=0).fit(iter(rows.to_batches()), LABEL)
        seconds = time.perf_counter() - started
        known = {"method": method, "rows": GROWTH_ROWS}
        yield {**known, "what": "growth of a fit", "value": seconds}
        wide = repeat_columns(new, n_copies).drop_columns(LABEL)
        detector.anomaly_score(wide.slice(0, 100))  # a rehearsal
        started = time.perf_counter()
        detector.anomaly_score(wide)
        speed = new.num_rows / (time.perf_counter() - started)
        known = {"method": method, "rows": new.num_rows}
        yield {**known, "what": "growth of a score", "value": speed, "unit": "rows/s"}


def repeat_columns(rows: pa.Table, n_copies: int) -> pa.Table:
    """Return each column several times, under other names, and the label once."""
    for name in rows.drop_columns(LABEL).column_names:
        for copy in range(1, n_copies):
            rows = rows.append_column(f"{name} {copy}", rows[name])
    return rows


def time_thread(options: Namespace) -> Iterator[dict[str, Any]]:
    """Time one thread by the processor's clock, which other work slows down less."""
    torch.set_num_threads(1)
    batch = make_rows(65_536, 5)[0].combine_chunks().to_batches()[0]
    for with_reason in (True, False):
        method = "reasons" if with_reason else "no reasons"
        if is_done(options, "one thread", method, batch.num_rows):
            continue
        score = BatchScorer(make_model(options.folder), with_reason=with_reason)
        score(batch.slice(0, 100))  # a rehearsal
        started = time.process_time()
        score(batch)
        speed = batch.num_rows / (time.process_time() - started)
        known = {"what": "one thread", "method": method, "rows": batch.num_rows}
        yield {**known, "value": speed, "unit": "rows per CPU second"}


def make_model(folder: Path) -> Path:
    """Fit a model to a few rows, unless it is there."""
    model = folder / "engines.fewlier"
    if not model.exists():
        rows, _ = make_rows(20_000, 1, 100)
        AnomalyDetector(random_state=0).fit(iter(rows.to_batches()), LABEL).save(model)
    return model


def compare_engines(options: Namespace) -> Iterator[dict[str, Any]]:
    """Score folders of two sizes in every way, and report the speed of the difference."""
    model = make_model(options.folder)
    few, many = options.rows[0], options.rows[-1]
    folders = [make_folder(options.folder / f"score-{n}", n, few // 4) for n in (few, many)]
    for method, run in ways(options.engine, model):
        if is_done(options, "score", method, many - few):
            continue
        times = []
        for folder in (folders[0], *folders):  # the first time is a rehearsal
            started = time.perf_counter()
            run(folder)
            times.append(time.perf_counter() - started)
        speed = (many - few) / (times[2] - times[1])
        known = {"what": "score", "method": method, "rows": many - few}
        yield {**known, "value": speed, "unit": "rows/s"}


def ways(engine: str | None, model: Path) -> Iterator[tuple[str, Callable[[Path], None]]]:
    """Yield the ways to score a folder: in one process, and on an engine."""
    if engine is None:
        device = ", GPU" if torch.cuda.is_available() else ""
        for n in (2**i for i in range(n_cores().bit_length())):
            run = partial(score_here, model=model, n_threads=n)
            yield f"one process, {n} threads{device}", run
        return
    score = {"ray": score_on_ray, "spark": score_on_spark}[engine]
    for n in (1, 2):
        yield f"{engine}, {n} workers", partial(score, model=model, n_workers=n)


def score_here(folder: Path, model: Path, n_threads: int) -> None:
    """Score by the real command."""
    command = "import torch; torch.set_num_threads({}); from fewlier.cli import main; main()"
    words = ["score", str(folder), "-m", str(model), "-o", f"{folder}-out", "--overwrite"]
    code = [sys.executable, "-c", command.format(n_threads), *words]
    subprocess.run(code, check=True, capture_output=True)


def score_on_ray(folder: Path, model: Path, n_workers: int) -> None:
    """Score by the real command."""
    words = ["score", str(folder), "-m", str(model), "-o", f"{folder}-out", "--overwrite"]
    words += ["--engine", "ray", "--workers", str(n_workers)]
    code = [sys.executable, "-c", "from fewlier.cli import main; main()", *words]
    subprocess.run(code, check=True, capture_output=True)


def score_on_spark(folder: Path, model: Path, n_workers: int) -> None:
    """Score and write in a session of its own, in a process of its own."""
    code = (
        "import sys; from pyspark.sql import SparkSession; from fewlier.engines.spark import score;"
        "folder, model, n = sys.argv[1:];"
        "spark = SparkSession.builder.master(f'local[{n}]').getOrCreate();"
        "scored = score(spark.read.parquet(folder), model);"
        "scored.write.mode('overwrite').parquet(folder + '-out')"
    )
    words = [str(folder), str(model), str(n_workers)]
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, "-c", code, *words]
    subprocess.run(command, env=environment, check=True, capture_output=True)


def is_done(options: Namespace, what: str, method: str, n_rows: int, repeat: int = 0) -> bool:
    """Whether a row of this is among the results."""
    known = what, method, str(n_rows), str(repeat)
    return any(tuple(row[name] for name in FIELDS[:4]) == known for row in read(options.results))


def read(path: Path) -> list[dict[str, str]]:
    """Read the rows that are there."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


WHAT = {
    "fit": fit_files,
    "sample": compare_samples,
    "growth": time_growth,
    "thread": time_thread,
    "engines": compare_engines,
}


def run(options: Namespace) -> None:
    """Run, and keep each row."""
    options.folder.mkdir(parents=True, exist_ok=True)
    for row in WHAT[options.what](options):
        row = {"repeat": 0, "unit": "s", "peak_mb": "", "machine": describe_machine(), **row}
        is_new = not options.results.exists()
        with options.results.open("a", newline="") as file:
            writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
            if is_new:
                writer.writeheader()
            writer.writerow(row)
        print(json.dumps(row), flush=True)


STUDY = Study.of(
    run,
    option("what", choices=WHAT),
    option("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000]),
    option("--samples", type=int, nargs="+", default=[10_000, 100_000, 1_000_000]),
    option("--labels", type=int, default=1000, help="of --samples"),
    option("--repeats", type=int, default=3),
    option("--engine", choices=["ray", "spark"]),
    option("--folder", type=Path, default=Path("build") / "scale"),
    option("--results", type=Path, default=Path("results") / "scale.csv"),
)
