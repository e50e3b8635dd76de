"""A detector as a model of MLflow: saved, loaded and served."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import mlflow
import numpy as np
import pandas as pd
import pytest
from chapters import check
from factories import FEATURES, payments, small

import fewlier
from fewlier.export.mlflow import log_model, save_model

ROWS = payments(seed=7)[FEATURES].head(20)


@pytest.fixture(scope="module")
def detector():
    bills = payments()
    return small().fit(bills[FEATURES], bills["fraud"])


@pytest.fixture(scope="module")
def folder(detector, tmp_path_factory):
    path = tmp_path_factory.mktemp("mlflow") / "model"
    save_model(detector, path)
    return path


def test_the_page_shows_what_is_printed(tmp_path):
    check("MLflow", tmp_path)


def test_the_folder_holds_the_model_file_and_no_pickle(folder):
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert [path.name for path in files if path.suffix == ".fewlier"] == ["detector.fewlier"]
    assert not [path for path in files if path.suffix in {".pkl", ".pickle", ".joblib", ".pt"}]
    assert not [path for path in files if path.read_bytes()[:1] == b"\x80"]


def test_a_loaded_model_says_what_the_detector_says(folder, detector):
    model = mlflow.pyfunc.load_model(str(folder))
    rows = ROWS.set_index(pd.Index(range(100, 120)))
    found = model.predict(rows)
    assert found.index.tolist() == rows.index.tolist()
    np.testing.assert_array_equal(found["anomaly_score"], detector.anomaly_score(rows))
    np.testing.assert_array_equal(found["is_anomaly"], detector.predict(rows) == 1)
    np.testing.assert_array_equal(found["p_value"], detector.p_value(rows))
    reasons = model.predict(rows, params={"reasons": 2})["reasons"]
    first = json.loads(reasons.iloc[0])
    expected = detector.explain(rows).top(0, 2)
    assert [why["text"] for why in first] == [str(why) for why in expected]


def test_the_signature_has_the_columns(folder):
    signature = mlflow.models.get_model_info(str(folder)).signature
    assert signature.inputs.input_names() == FEATURES
    assert signature.outputs.input_names() == ["anomaly_score", "is_anomaly", "p_value"]
    assert signature.params.to_dict()[0]["name"] == "reasons"


def test_the_version_that_wrote_the_model_is_required(folder):
    requirements = (folder / "requirements.txt").read_text().split()
    assert f"fewlier=={fewlier.__version__}" in requirements


def test_fewer_than_no_reasons_are_refused(folder):
    with pytest.raises(fewlier.UserError, match="0 or more; got -1"):
        mlflow.pyfunc.load_model(str(folder)).predict(ROWS, params={"reasons": -1})


def orders(seed=0, n=200):
    """Return a table with every type that pandas keeps cells in."""
    rng = np.random.default_rng(seed)
    days = pd.to_timedelta(rng.integers(0, 90, n), unit="D")
    table = pd.DataFrame(
        {
            "amount": rng.normal(50, 10, n).round(2),
            "items": rng.integers(30, 60, n),
            "small": rng.integers(30, 60, n).astype(np.int8),
            "known": pd.array(rng.integers(30, 60, n), dtype="Int64"),
            "rating": rng.normal(5, 1, n).astype(np.float32),
            "is_new": rng.random(n) < 0.3,
            "is_paid": pd.array(rng.random(n) < 0.3, dtype="boolean"),
            "city": pd.Categorical(rng.choice(["Bern", "Oslo", "Rome"], n)),
            "shop": pd.Categorical(rng.choice([7, 8, 9], n)),
            "card": pd.Series(rng.choice(["debit", "credit"], n), dtype="string"),
            "day": pd.Timestamp("2026-01-01") + days,
        }
    )
    for place, name in enumerate(["amount", "known", "rating", "is_paid", "city", "card"]):
        table.loc[table.index % 11 == place, name] = None
    return table


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """A detector fitted to columns of every type, and the folder that MLflow loads it from."""
    detector = small().fit(orders(), np.where(np.arange(200) < 6, 1, np.nan))
    path = tmp_path_factory.mktemp("mixed") / "model"
    save_model(detector, path)
    return detector, path


def test_columns_of_every_type_are_taken(mixed):
    detector, path = mixed
    rows = orders(1, 30)
    assert len(set(map(str, rows.dtypes))) == rows.shape[1] - 1  # two are categorical
    found = mlflow.pyfunc.load_model(str(path)).predict(rows)
    np.testing.assert_array_equal(found["anomaly_score"], detector.anomaly_score(rows))


@pytest.mark.parametrize("dtype", ["int64", "Int64", "float64", "float32", "object", "category"])
def test_numbers_are_taken_in_whatever_type_they_come(folder, detector, dtype):
    rows = ROWS.assign(visits=ROWS["visits"].fillna(6))
    found = mlflow.pyfunc.load_model(str(folder)).predict(rows.astype({"visits": dtype}))
    np.testing.assert_array_equal(found["anomaly_score"], detector.anomaly_score(rows))


def test_a_model_is_logged_to_a_run(detector, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # MLflow keeps artefacts in the folder it is called from
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/runs.db")
    with mlflow.start_run():
        logged = log_model(detector)
    found = mlflow.pyfunc.load_model(logged.model_uri).predict(ROWS)
    np.testing.assert_array_equal(found["anomaly_score"], detector.anomaly_score(ROWS))


def test_a_served_model_answers_requests(folder, detector):
    rows = ROWS.astype(object).where(ROWS.notna(), None)
    with serving(folder) as url:
        answer = ask(url, {"dataframe_split": rows.to_dict(orient="split")})
    found = pd.DataFrame(answer["predictions"])
    np.testing.assert_allclose(found["anomaly_score"], detector.anomaly_score(ROWS), rtol=1e-12)


def test_a_served_model_takes_whole_numbers_flags_and_gaps(mixed):
    detector, path = mixed
    table = orders(1, 30)
    rows = json.loads(table.to_json(orient="split", index=False, date_format="iso"))
    assert type(rows["data"][0][1]) is int
    assert type(rows["data"][0][5]) is bool
    assert rows["data"][0][0] is None
    with serving(path) as url:
        answer = ask(url, {"dataframe_split": rows, "params": {"reasons": 1}})
    found = pd.DataFrame(answer["predictions"])
    np.testing.assert_allclose(found["anomaly_score"], detector.anomaly_score(table), rtol=1e-6)
    assert len(json.loads(found["reasons"][0])) == 1


@contextmanager
def serving(folder):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [Path(sys.executable).with_name("mlflow"), "models", "serve", "-m", folder]
    command += ["--env-manager", "local", "-p", str(port), "-h", "127.0.0.1"]
    # MLflow calls uvicorn by its name, which is that of this environment's.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    process = subprocess.Popen(
        [*map(str, command)], env=os.environ | {"PATH": path}, start_new_session=True
    )
    try:
        deadline = time.monotonic() + 240
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/ping", timeout=5).close()
                break
            except (urllib.error.URLError, ConnectionError):
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.5)
        yield f"http://127.0.0.1:{port}/invocations"
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(60)


def ask(url, document):
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, json.dumps(document).encode(), headers)
    with urllib.request.urlopen(request, timeout=120) as response:
        return json.loads(response.read())
