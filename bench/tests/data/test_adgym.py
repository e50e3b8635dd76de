"""ADGym's tables and splits."""

import made_up_adgym
import numpy as np
import pytest

from fewlier import UserError
from fewlier_bench.data.adgym import ADGYM, LABELS, SEEDS, drawn_rows, find_folder


@pytest.fixture
def made_up(tmp_path, monkeypatch):
    """Return tables of a folder that the environment names."""
    made_up_adgym.write_tables(tmp_path)
    monkeypatch.setenv("FEWLIER_DATA", str(tmp_path))
    return made_up_adgym.entries()


def test_the_benchmark_has_28_tables_of_which_eight_are_in_dev():
    assert len(ADGYM) == len({table.sha256 for table in ADGYM.values()}) == 28
    assert sum(table.is_dev for table in ADGYM.values()) == 8


@pytest.mark.parametrize("name", made_up_adgym.SIZES)
def test_a_split_has_the_rows_that_numpys_global_generator_draws(name, made_up, tmp_path):
    X, y = made_up[name].load(tmp_path)
    all_values, all_labels = made_up_adgym.make_table(name)
    for n_labels in LABELS:
        for seed in SEEDS:
            train, is_labelled, test = made_up_adgym.draw(all_labels, n_labels, seed)
            split = made_up[name].draw(y, n_labels, seed)
            np.testing.assert_array_equal(X[split.given], all_values[train])
            np.testing.assert_array_equal(split.labels, np.where(is_labelled, 1, -1))
            np.testing.assert_array_equal(X[split.test], all_values[test])


def test_a_file_may_have_only_the_rows_that_a_seed_draws(made_up, tmp_path):
    table = made_up["fault"]
    X, y = table.load(tmp_path)
    assert 3000 < len(X) <= table.n_rows
    rows = drawn_rows(table.n_rows)
    np.savez(tmp_path / table.file, X=X, y=y, rows=rows)
    for found, expected in zip(table.load(tmp_path), (X, y), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_a_table_that_is_missing_or_another_is_refused(made_up, tmp_path, monkeypatch):
    tables = list(made_up.values())
    assert find_folder(tables) == tmp_path
    X, y = made_up_adgym.make_table("vowels")
    np.savez(tmp_path / "40_vowels.npz", X=X, y=1 - y)
    with pytest.raises(UserError, match=r"40_vowels.npz must have .* ADBench's vowels, SHA-256"):
        find_folder(tables)
    (tmp_path / "40_vowels.npz").write_bytes(b"no archive")
    with pytest.raises(UserError, match=r"40_vowels.npz must be an .npz file with X and y"):
        find_folder(tables)
    (tmp_path / "40_vowels.npz").unlink()
    missing = r"got .*, without 40_vowels.npz\. Get them from https://github.com/Minqi824/ADBench"
    with pytest.raises(UserError, match=missing):
        find_folder(tables)
    monkeypatch.delenv("FEWLIER_DATA")
    with pytest.raises(UserError, match=r"got none, without 40_vowels.npz, 12_fault.npz"):
        find_folder(tables)
