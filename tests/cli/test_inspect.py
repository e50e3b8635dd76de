"""`fewlier inspect`: what a model file holds, without its network."""

import copy
import json
import subprocess
import sys

import pytest
from factories import FEATURES, payments, small
from model_files import first_nodes, parts_of, replace_at
from processes import plain

from fewlier import AnomalyDetector, FormatError, __version__
from fewlier.cli import inspect
from fewlier.modelfile import inspection
from fewlier.modelfile.state import State


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
    assert facts["parameters"]["training"]["max_epochs"] == 10
    assert facts["summary"] == loaded.summary_.to_json()
    kept = loaded._kept_rows
    assert facts["kept_rows"] == {"n_rows": 200, "bytes": kept.n_bytes}
    assert kept.n_bytes > 0
    assert facts["shares"] == {part.name: s for s, part in loaded.model_.scorer.addends}
    assert {
        "format_version",
        "density",
        "n_held_out",
        "guarantee",
        "prior",
        "n_held_out_anomalies",
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
        "probability from 10 labelled anomalies that were held out, even odds at the threshold; ",
        "kept rows 200 for `fewlier update`, 0.0 MB",
        "(weight in the density) ",
        " network passes per row, compared with 200 rows",
        "neighbours 190 normal and 10 anomalous rows kept to compare with, 0.0 MB",
        "score neighbours 38%, trees 25%, rules 25%, density 12%",
        "city category category Bern, Oslo, Rome",
    ):
        assert words in shown


def test_inspect_tells_that_no_row_is_kept(fewlier, tmp_path):
    path = tmp_path / "light.fewlier"
    small(keep_rows=False, max_epochs=1).fit(payments()[FEATURES]).save(path)
    assert json.loads(fewlier("inspect", path, "--json").out)["kept_rows"] == {
        "n_rows": 0,
        "bytes": 0,
    }
    assert "kept rows 0 for" in plain(fewlier("inspect", path).out.decode())


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


@pytest.mark.parametrize("wrong", [None, ["x"], {"x": [1]}], ids=str)
def test_inspect_shows_or_refuses_whatever_a_damaged_file_holds(wrong, model, capsys):
    manifest, arrays = parts_of(model)
    for place in first_nodes(manifest):
        damaged = copy.deepcopy(manifest)
        replace_at(damaged, place, wrong)
        try:
            facts, summary = inspection._facts(State(damaged, arrays))
        except FormatError:
            continue
        json.dumps(facts)
        inspect._print({"model": "m", "bytes": 1} | facts, summary)
    capsys.readouterr()
