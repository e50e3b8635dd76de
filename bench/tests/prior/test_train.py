"""Training from the command line: it learns, leaves its weights, and goes on from them."""

import json

import numpy as np
import pytest
from safetensors.numpy import load_file

TINY = ("--width", 16, "--depth", 1, "--heads", 2, "--cells", 6000, "--asked", 8)


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    whole = {"names": np.array([f"t{i}" for i in range(6)])}
    (tmp_path / "data").mkdir()
    for i in range(6):
        X, y = rng.normal(size=(500, 4 + 2 * i)), (np.arange(500) < 60).astype(np.int8)
        X[y == 1, : 2 + i] += 3
        whole |= {f"X{i}": X, f"y{i}": y}
        np.savez(tmp_path / "data" / f"t{i}.npz", X=X, y=y)
    np.savez(tmp_path / "tables.npz", **whole)
    return tmp_path


def run(bench, folder, minutes, *more):
    words = ("--tables", folder / "tables.npz", "--out", folder / "out", "--minutes", minutes)
    done = bench("prior", "train", *words, "--data", folder / "data", *TINY, *more)
    assert done.code == 0, done.err
    return [json.loads(line) for line in done.out.splitlines()]


@pytest.mark.slow
def test_a_run_leaves_weights_and_a_record_and_goes_on_from_them(bench, folder):
    first = run(bench, folder, 0.05)
    before = load_file(folder / "out" / "weights.safetensors")
    run(bench, folder, 0.05, "--seed", 1, "--cool", 0.5)
    after = load_file(folder / "out" / "weights.safetensors")
    record = json.loads((folder / "out" / "record.json").read_text())
    assert [r["settings"]["seed"] for r in record] == [0, 1]
    assert record[0]["lines"] == first
    assert record[0]["tables"]["names"] == [f"t{i}" for i in range(6)]
    assert before.keys() == after.keys()
    assert any((before[name] != after[name]).any() for name in before)
    weighed = bench(
        "prior", "weigh", folder / "out" / "weights.safetensors", "--data", folder / "data"
    )
    assert weighed.code == 0, weighed.err
    last = record[1]["lines"][-1]
    for name, value in json.loads(weighed.out).items():
        assert last[name] == pytest.approx(value, abs=2e-3), name


@pytest.mark.long
def test_a_minute_of_training_teaches_something(bench, folder):
    """Labels are worth more than none, and ranks are far better than those of distances alone."""
    lines = run(bench, folder, 1.0)
    assert lines[-1]["data six auc"] > 0.8
