"""Use an installed fewlier as its readers do: `python smoke.py [--extras]`, in an empty folder.

It needs nothing but what the wheel brings, and with --extras its optional packages.
"""

import json
import re
import subprocess
import sys
import sysconfig
import urllib.request
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

import fewlier

SCRIPTS = Path(sysconfig.get_path("scripts"))
MODEL = "b.fewlier"


def payments(seed: int) -> tuple[pa.Table, np.ndarray]:
    """Return 300 payments, and which of them are odd."""
    rng = np.random.default_rng(seed)
    is_odd = np.arange(300) < 15
    columns = {
        "amount": rng.normal(50, 10, 300) + 60 * is_odd,
        "visits": rng.poisson(6, 300),
        "city": np.array(["Bern", "Oslo", "Rome"])[rng.integers(0, 3, 300)],
    }
    return pa.table(columns), is_odd


def command(program: Path | str, *words: str) -> str:
    """Run a program to its end, and return what it prints."""
    done = subprocess.run([program, *words], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{program} {' '.join(words)} exited with {done.returncode}:\n{done.stderr}")
    return done.stdout


def fewlier_command(*words: str) -> str:
    """Run fewlier's own command."""
    return command(SCRIPTS / "fewlier", *words)


def expect(what: str, holds: bool) -> None:
    """Print what holds; stop where it does not."""
    if not holds:
        sys.exit(f"This does not hold: {what}.")
    print(f"  {what}", flush=True)


def use_python() -> None:
    """Fit, score, explain, move the threshold, save, load, update and label."""
    (rows, is_odd), (more, is_odd_too) = payments(0), payments(1)
    y = np.where(is_odd, 1.0, np.where(np.arange(300) % 2, 0.0, np.nan))
    detector = fewlier.AnomalyDetector(
        false_alarm_rate=0.05, training=fewlier.Training(max_epochs=3), random_state=0
    )
    scores = detector.fit(rows, y).anomaly_score(more)
    expect("odd rows score higher than others", np.median(scores[:15]) > scores[15:].max())
    is_above = scores > detector.threshold_
    expect(
        "anomalies are rows above the threshold", bool((detector.predict(more) == is_above).all())
    )
    expect("the odd column is the reason", "amount" in str(detector.explain(more).top(row=0)))
    expect("odd rows have small p-values", np.median(detector.p_value(more)[:15]) < 0.05)
    detector.set_threshold(contamination=0.1).save("a.fewlier")
    loaded = fewlier.AnomalyDetector.load("a.fewlier")
    expect("a loaded model scores alike", bool((loaded.anomaly_score(more) == scores).all()))
    loaded.update(more, is_odd_too)
    expect("an update counts the new labels", loaded.summary_.n_anomaly == 30)
    session = fewlier.Session(rows, path="labels.jsonl", random_state=0)
    question = session.next()
    session.answer(question.row, int(is_odd[question.row]))
    session.close()
    expect("an answer is on disk", '"answer"' in Path("labels.jsonl").read_text("utf-8"))


def use_commands() -> None:
    """Take a table through the command line."""
    rows, is_odd = payments(0)
    csv.write_csv(rows.append_column("odd", pa.array(is_odd.astype(int))), "rows.csv")
    label = ("--label", "odd")
    fewlier_command("check", "rows.csv", *label)
    fewlier_command("fit", "rows.csv", *label, "--max-epochs", "3", "-o", MODEL)
    fewlier_command("score", "rows.csv", "-m", MODEL, "-o", "scored.csv")
    expect("score keeps every row", csv.read_csv("scored.csv").num_rows == 300)
    expect(
        "explain names the column", "amount" in fewlier_command("explain", "rows.csv", "-m", MODEL)
    )
    found = json.loads(fewlier_command("evaluate", "rows.csv", "-m", MODEL, *label, "--json"))
    expect("evaluate finds the anomalies", found["auc"] > 0.9)
    fewlier_command("update", MODEL, "rows.csv", *label)
    fewlier_command("threshold", MODEL, "--false-alarm-rate", "0.1")
    expect("inspect reads the model", "version" in fewlier_command("inspect", MODEL, "--json"))
    shown = fewlier_command("--version")
    expect(f"the version is {shown.strip()}", shown.startswith(f"fewlier {fewlier.__version__} "))
    as_module = command(sys.executable, "-m", "fewlier", "--version")
    expect("python -m fewlier is the same command", as_module == shown)
    expect("the demonstration runs", "AUC" in fewlier_command("demo"))


def use_extras() -> None:
    """Use what the extras bring, and the benchmark."""
    rows, is_odd = payments(0)
    flow = fewlier.AnomalyDetector(
        density="flow", training=fewlier.Training(max_epochs=1), random_state=0
    ).fit(rows, is_odd)
    expect("a flow scores", bool(np.isfinite(flow.anomaly_score(rows)).all()))
    fewlier_command("report", "rows.csv", "-m", MODEL, "--label", "odd", "-o", "report.html")
    expect("report writes a page", "</html>" in Path("report.html").read_text("utf-8"))
    fewlier_command("export", MODEL, "-o", "b.onnx", "--check")
    expect("export writes a graph that agrees with the model", Path("b.onnx").stat().st_size > 0)
    expect("the service answers", len(served(rows.slice(0, 2).to_pylist())) == 2)
    from fewlier.labelling.page.app import read_static
    from fewlier.labelling.widget import label

    expect("the labelling page is there", "export" in read_static("labelling.js"))
    with_widget = label(fewlier.Session(rows, random_state=0))
    expect("the notebook has a widget", "LabelWidget" in type(with_widget).__name__)
    shown = command(SCRIPTS / "fewlier-bench", "datasets", "--help")
    expect("the benchmark starts", "Usage: fewlier-bench datasets" in shown)


def served(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    """Start the service, ask it for scores of rows, and stop it."""
    words = [SCRIPTS / "fewlier", "serve", MODEL, "--port", "0"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as service:
        try:
            port = next(
                found[1] for line in service.stderr if (found := re.search(r":(\d+) by", line))
            )
            body = json.dumps({"rows": rows}).encode()
            headers = {"Content-Type": "application/json"}
            asked = urllib.request.Request(f"http://127.0.0.1:{port}/score", body, headers)
            with urllib.request.urlopen(asked, timeout=60) as answer:
                return json.load(answer)["rows"]
        finally:
            service.terminate()


if __name__ == "__main__":
    expect("fewlier is the installed one", Path(fewlier.__file__).is_relative_to(sys.prefix))
    if sys.argv[1:] == ["--extras"]:
        use_extras()
    else:
        use_python()
        use_commands()
