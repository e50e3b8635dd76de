"""Golden messages: what users read of common mistakes, so that wording is judged in one place.

python tests/golden/messages.py            print what is said now
python tests/golden/messages.py --write    write messages.txt anew, and read what changed
"""

import io
import sys
import tempfile
import warnings
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1]))
from factories import payments, small

from fewlier import AnomalyDetector, LabelColumn, Session, UserError, cli
from fewlier.labelling.answers.answer import Answer, RowKey

FILE = Path(__file__).with_name("messages.txt")
X = np.arange(40.0).reshape(20, 2)
TABLE = payments(40)
FEATURES = TABLE[["amount", "visits", "city"]]
KEY = RowKey("0" * 16, 0)


def fit(X=FEATURES, y=None, **parameters):
    return small(**parameters).fit(X, y)


IN_PYTHON = {
    "share": lambda: fit(false_alarm_rate=2),
    "choice": lambda: fit(selection="mean"),
    "density": lambda: fit(density="nade"),
    "seed": lambda: fit(random_state=-1),
    "unknown column": lambda: fit(columns={"amuont": "real"}),
    "unknown kind": lambda: fit(columns={"amount": "number"}),
    "text as a number": lambda: fit(columns={"city": "real"}),
    "fractions as counts": lambda: fit(columns={"amount": "count"}),
    "two columns": lambda: fit(columns={"city": "real", "amount": "count"}),
    "stand-in": lambda: fit(missing={"amuont": 0}),
    "infinite": lambda: fit(FEATURES.assign(visits=np.inf)),
    "nested cells": lambda: fit(FEATURES.assign(city=[[1]] * 40)),
    "two forms": lambda: fit(pd.DataFrame({"x": ["1,234", "2,345"] * 10})),
    "no rows": lambda: fit(FEATURES[:0]),
    "one dimension": lambda: fit(np.arange(5.0)),
    "labels of three values": lambda: fit(X, [0, 1, 2] + [0] * 17),
    "labels of outlier detectors": lambda: fit(X, [-1, 1] * 10),
    "labels as text": lambda: fit(X, ["bad", "good"] * 10),
    "labels too few": lambda: fit(X, [0] * 3),
    "anomalies alone": lambda: fit(X, [1] * 20),
    "label column": lambda: LabelColumn("state").read(["bad", "good"]),
    "meaning without rows": lambda: LabelColumn("state", anomaly=("worse",)).read(["bad"]),
    "no model": lambda: AnomalyDetector.load("absent.fewlier"),
    "not a model": lambda: AnomalyDetector.load("train.csv"),
    "answer": lambda: Answer(0, KEY, 2, "", {}),
    "kind of a normal row": lambda: Answer(0, KEY, 0, "", {}, kind="fraud"),
    "session": lambda: Session(X, columns={"x": "real"}, detector=AnomalyDetector()),
}
ON_THE_COMMAND_LINE = [
    "fit train.csv --label fruad -o m.fewlier",
    "fit absent.csv -o m.fewlier",
    "fit train.csv -o -",
    "fit train.csv --label city -o m.fewlier",
    "fit train.csv --label fraud --false-alarm-rate 2 -o m.fewlier",
    "fit train.csv --label fraud --column city=real -o m.fewlier",
    "fit train.csv --label fraud --column amuont=real -o m.fewlier",
    "fit train.csv --label fraud --column amount -o m.fewlier",
    "fit train.csv --label fraud --ignore amuont -o m.fewlier",
    "fit train.csv --label fraud --missing amuont=0 -o m.fewlier",
    "fit train.csv --label fraud --density nade -o m.fewlier",
    "fit train.csv --label fraud --contamination 0.02 -o m.fewlier",
    "fit train.csv --anomaly bad -o m.fewlier",
    "score train.csv -m absent.fewlier",
    "score train.csv -m m.fewlier --contamination 0.1",
    "score train.csv -m m.fewlier --engine ray",
    "update m.fewlier train.csv",
    "label train.csv",
    "label -o labels.jsonl",
    "threshold absent.fewlier --false-alarm-rate 0.1",
]


def in_python(call) -> str:
    """Return what an error of a call says, and its fields that are not prose."""
    try:
        call()
    except UserError as error:
        names = ("parameter", "column", "row", "file")
        fields = {name: getattr(error, name) for name in names}
        found = ", ".join(
            f"{name}={value!r}" for name, value in fields.items() if value is not None
        )
        return f"{error}\n    ({type(error).__name__}{': ' if found else ''}{found})"
    raise AssertionError("it must be refused")


def on_the_command_line(command: str) -> str:
    """Return what a command says on standard error; it must end with 2."""
    err, argv = io.StringIO(), ["fewlier", *command.split()]
    with patch.object(sys, "argv", argv), redirect_stderr(err), redirect_stdout(io.StringIO()):
        try:
            cli.main()
        except SystemExit as end:
            assert end.code == 2, command  # noqa: PT017 - a script, too
    return err.getvalue().strip()


def observe() -> str:
    """Return all messages as one text."""
    parts = []
    with tempfile.TemporaryDirectory() as folder, chdir(folder), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        TABLE.to_csv("train.csv", index=False)
        parts += [f"# {name}\n{in_python(call)}" for name, call in IN_PYTHON.items()]
        parts += [f"$ fewlier {line}\n{on_the_command_line(line)}" for line in ON_THE_COMMAND_LINE]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    if sys.argv[1:] == ["--write"]:
        FILE.write_text(observe(), "utf-8")
    else:
        sys.stdout.write(observe())


if __name__ == "__main__":
    main()
