import json
import re
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from fewlier import UserError
from fewlier_bench.cli.app import app

PARKINSON = "semantic/Parkinson/Parkinson_withoutdupl_norm_20_v01.arff"


def run(*arguments):
    result = CliRunner().invoke(app, ["datasets", *arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def words(text):
    return " ".join(re.sub(r"\x1b\[[0-9;]*m", "", text).split())


def test_list_shows_the_tables_and_whether_they_are_here(cache):
    (cache / "tables").mkdir(parents=True)
    (cache / "tables" / "pima.npz").touch()
    shown = words(run("list").stdout)
    assert "Pima 625 8 125 withoutdupl_norm_20_v01 yes" in shown
    assert "Wilt 4671 5 93 norm_02_v01 no" in shown
    assert "deduplicated 4655 5 93 withoutdupl_norm_02_v01 no" in shown


def test_list_gives_json():
    records = json.loads(run("list", "--json").stdout)
    assert len(records) == 16
    assert records[0]["source"] == "semantic/Annthyroid/Annthyroid_norm_05_v01.arff"
    assert records[0]["deduplicated"]["n_rows"] == 6942
    assert records[0]["path"] is None
    assert records[1]["deduplicated"] is None


def test_get_downloads_and_says_what_came(site, make_arff, make_archive):
    site.publish("semantic", make_archive({PARKINSON: make_arff(60, 22, 12)}))
    result = run("get", "Parkinson")
    assert "Parkinson: 60 rows, 22 columns, 12 anomalies, in " in result.stdout
    assert "1 tables are here" in result.stderr
    (record,) = json.loads(run("get", "parkinson", "--json").stdout)
    assert len(record["sha256"]) == 64
    assert site.n_requests == 1


@pytest.mark.slow
def test_get_all_is_all_of_them(tmp_path, monkeypatch):
    from fewlier_bench.data import list_datasets

    monkeypatch.setenv("FEWLIER_DATA", str(tmp_path))
    (tmp_path / "withoutdupl").mkdir()
    for entry in list_datasets():
        for v in (entry.paper, entry.deduplicated):
            if v is not None:
                y = (np.arange(v.n_rows) < v.n_anomalies).astype(np.int8)
                X, names = np.zeros((v.n_rows, v.n_columns)), np.arange(v.n_columns).astype(str)
                np.savez_compressed(tmp_path / v.file, X=X, y=y, feature_names=names)
    assert len(json.loads(run("get", "all", "--json").stdout)) == 22


def test_an_unknown_table_is_an_error():
    with pytest.raises(UserError, match="Did you mean Pima"):
        run("get", "Pimma")


@pytest.mark.slow
@pytest.mark.parametrize("command", [[], ["list"], ["get"]])
def test_help_ends_with_an_example_and_loads_neither_torch_nor_pooch(command):
    code = (
        "import sys; from fewlier_bench import cli; sys.argv[0] = 'fewlier-bench'\n"
        "try: cli.main()\n"
        "except SystemExit as end: assert not end.code\n"
        "sys.exit(', '.join({'torch', 'pooch', 'numpy'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "datasets", *command, "--help"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"Example: fewlier-bench datasets \w+[ \w-]*$", words(done.stdout))


def test_datasets_are_listed_for_a_user_without_a_home(bench, monkeypatch):
    def homeless(project):
        raise RuntimeError(f"could not determine the home directory for {project}")

    monkeypatch.delenv("FEWLIER_DATA", raising=False)
    monkeypatch.setattr("pooch.os_cache", homeless)
    assert bench("datasets", "list", "--json").code == 0
    done = bench("datasets", "get", "Pima")
    assert (done.code, done.out) == (2, b"")
    assert "Set HOME" in done.err
