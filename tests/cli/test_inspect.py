"""`fewlier inspect`: what a model file holds, without its network."""

import json
import subprocess
import sys

import pytest
from factories import FEATURES, payments, small
from processes import plain

from fewlier import AnomalyDetector, __version__
from fewlier.cli import inspect


def test_inspect_tells_in_json_what_the_model_is(model, fewlier):
    done = fewlier("inspect", model, "--json")
    assert done.err == ""
    facts = json.loads(done.out)
    loaded = AnomalyDetector.load(model)
    assert facts["model"] == str(model)
    assert facts["bytes"] == model.stat().st_size
    assert facts["versions"]["fewlier"] == __version__
    assert facts["n_members"] == len(loaded.model_.ensemble.members)
    assert facts["selection"] == "average"
    assert [column["name"] for column in facts["columns"]] == ["amount", "visits", "city"]
    assert facts["parameters"]["max_epochs"] == 10
    assert facts["summary"] == loaded.summary_.to_json()
    kept = loaded._kept_rows
    assert facts["memory"] == {"n_rows": 200, "bytes": kept.n_bytes} != {"n_rows": 200, "bytes": 0}
    assert {
        "format_version",
        "density",
        "n_held_back",
        "guarantee",
        "prior",
        "n_held_back_anomalies",
    } <= set(facts)


def test_inspect_tells_in_words_what_the_model_is(model, fewlier):
    shown = plain(fewlier("inspect", model).out.decode())
    for words in (
        f"model {model}, 0.1 MB, format 1",
        f"written by fewlier {__version__}, torch ",
        "density made, hidden [16], n_components 3, n_orderings 2; ",
        "members, selection average",
        "rows 150 normal, 10 anomalous, 40 unlabelled",
        "p-values from ",
        "probability from 10 labelled anomalies that were held back, even odds at the threshold; ",
        "memory 200 rows kept for `fewlier update`, 0.0 MB",
        "neighbours 190 normal and 10 anomalous rows kept to compare with, 0.0 MB",
        "trees ",
        "city category category Bern, Oslo, Rome",
    ):
        assert words in shown


def test_inspect_tells_that_no_row_is_kept(fewlier, tmp_path):
    path = tmp_path / "light.fewlier"
    small(keep_rows=False, max_epochs=1).fit(payments()[FEATURES]).save(path)
    assert json.loads(fewlier("inspect", path, "--json").out)["memory"] == {
        "n_rows": 0,
        "bytes": 0,
    }
    assert "memory 0 rows kept" in plain(fewlier("inspect", path).out.decode())


@pytest.mark.slow
def test_inspect_needs_no_torch(model):
    code = (
        "import sys; sys.argv = ['fewlier', 'inspect', sys.argv[1]]\n"
        "from fewlier import cli\n"
        "try: cli.main()\n"
        "finally: assert 'torch' not in sys.modules"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, model], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "selection average" in done.stdout


@pytest.mark.parametrize("most", [1, 3])
def test_inspect_lists_only_so_many_columns(most, model, fewlier, monkeypatch):
    monkeypatch.setattr(inspect, "MAX_SHOWN", most)
    shown = plain(fewlier("inspect", model).out.decode())
    grid = shown[shown.index("scored as") :]
    assert ("visits" in grid) == (most == 3)
    assert ("2 more" in grid) == (most == 1)
