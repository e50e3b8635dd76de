import hashlib
import io
import os
import struct

import numpy as np
import pytest

from fewlier.errors import UserError
from fewlier_bench.data import get_datasets, list_datasets, load_dataset
from fewlier_bench.data.catalogue import find_entry, find_variant

# Before the fixture that keeps the tests away from it.
REAL = os.environ.get("FEWLIER_DATA")
ALL = [(e.name, False) for e in list_datasets()]
ALL += [(e.name, True) for e in list_datasets() if e.deduplicated is not None]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder that $FEWLIER_DATA names."""
    folder = tmp_path / "tables"
    (folder / "withoutdupl").mkdir(parents=True)
    monkeypatch.setenv("FEWLIER_DATA", str(folder))
    return folder


def write(path, shape, n_anomalies, **changes):
    y = (np.arange(shape[0]) < n_anomalies).astype(np.int8)
    X = changes.pop("X", None)
    if X is None:
        X = np.random.default_rng(0).random(shape)
    names = np.array([f"att{i}" for i in range(shape[1])])
    np.savez_compressed(path, **{"X": X, "y": y, "feature_names": names} | changes)


def test_the_catalogue_has_the_papers_tables():
    entries = list_datasets()
    assert len(entries) == 16
    assert sum(entry.paper.n_rows for entry in entries) == 101202
    assert sum(entry.paper.n_anomalies for entry in entries) == 2744
    assert sum(entry.deduplicated is not None for entry in entries) == 6


def test_the_folder_comes_before_the_cache(folder, cache):
    (cache / "tables").mkdir(parents=True)
    write(cache / "tables" / "pima.npz", (625, 8), 125)
    assert load_dataset("Pima").path.parent == cache / "tables"
    write(folder / "pima.npz", (625, 8), 125)
    assert load_dataset("PIMA").path.parent == folder


def test_loading_from_the_folder_opens_no_connection(folder, monkeypatch):
    monkeypatch.setattr("socket.socket", None)
    write(folder / "pima.npz", (625, 8), 125)
    assert len(get_datasets(["Pima"])) == 1


def test_the_deduplicated_variant_has_its_own_file(folder):
    write(folder / "wilt.npz", (4671, 5), 93)
    write(folder / "withoutdupl" / "wilt.npz", (4655, 5), 93)
    assert len(load_dataset("Wilt").X) == 4671
    assert len(load_dataset("Wilt", deduplicated=True).X) == 4655


def test_the_hash_is_of_values_and_labels_alone(folder):
    write(folder / "pima.npz", (625, 8), 125)
    first = load_dataset("Pima")
    content = struct.pack("<5000d", *first.X.ravel()) + struct.pack("625b", *first.y)
    assert first.sha256 == hashlib.sha256(b"625 8 " + content).hexdigest()
    names = np.array(list("abcdefgh"))
    write(folder / "pima.npz", (625, 8), 125, feature_names=names, X=first.X.astype(">f8"))
    assert load_dataset("Pima").sha256 == first.sha256
    write(folder / "pima.npz", (625, 8), 125, X=first.X + 1e-16 * (first.X < 0.1))
    assert load_dataset("Pima").sha256 != first.sha256


@pytest.mark.parametrize(
    ("shape", "n_anomalies", "changes", "message"),
    [
        ((624, 8), 125, {}, r"must have 625 rows.*; got 624 rows instead of 625\. "),
        ((625, 9), 125, {}, r"got 9 columns instead of 8\. "),
        ((625, 8), 124, {}, r"got 124 anomalies instead of 125\. "),
        ((625, 8), 125, {"y": np.zeros(4)}, r"y of shape \(4,\)"),
        ((625, 8), 125, {"feature_names": np.array(["a"])}, r"and 1 names"),
        ((625, 8), 125, {"X": np.full((625, 8), np.nan)}, r"not finite"),
        ((625, 8), 125, {"y": np.full(625, 2)}, r"labels other than 0 and 1"),
        ((625, 8), 125, {"y": np.full(625, None)}, r"must be an \.npz file"),
    ],
)
def test_a_table_that_is_not_the_papers_is_an_error(folder, shape, n_anomalies, changes, message):
    write(folder / "pima.npz", shape, n_anomalies, **changes)
    with pytest.raises(UserError, match=message):
        load_dataset("Pima")


ARRAY = io.BytesIO()
np.save(ARRAY, np.zeros(3))


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04", ARRAY.getvalue()])
def test_a_file_that_is_no_table_is_an_error(folder, content):
    (folder / "pima.npz").write_bytes(content)
    with pytest.raises(UserError, match=r"pima\.npz must be an \.npz file with X, y"):
        load_dataset("Pima")


def test_a_table_that_lacks_an_array_is_an_error(folder):
    np.savez(folder / "pima.npz", X=np.zeros((625, 8)))
    with pytest.raises(UserError, match=r"must be an \.npz file with X, y and feature_names"):
        load_dataset("Pima")


def test_a_folder_that_is_none_is_an_error(monkeypatch):
    monkeypatch.setenv("FEWLIER_DATA", "nowhere")
    with pytest.raises(UserError, match=r"\$FEWLIER_DATA must name a folder.*'nowhere'"):
        load_dataset("Pima")


def test_without_download_a_missing_table_is_an_error():
    with pytest.raises(UserError, match="Run: fewlier-bench datasets get Pima"):
        load_dataset("pima", download=False)


@pytest.mark.parametrize(
    ("name", "hint"), [("Pimma", "Did you mean Pima"), ("x", "one of Annthyroid, Arr")]
)
def test_an_unknown_name_is_an_error_with_a_hint(name, hint):
    with pytest.raises(UserError, match=hint):
        find_entry(name)


def test_a_table_without_a_second_variant_is_not_deduplicated_twice():
    with pytest.raises(UserError, match="Pima must have a second variant"):
        find_variant("Pima", deduplicated=True)


@pytest.mark.parametrize(("name", "deduplicated"), ALL)
def test_each_table_is_found_with_the_papers_counts(name, deduplicated, folder, monkeypatch):
    """Read the paper's tables where $FEWLIER_DATA names them, and else zeros of their size."""
    variant = find_variant(name, deduplicated=deduplicated)
    shape = variant.n_rows, variant.n_columns
    if REAL:
        monkeypatch.setenv("FEWLIER_DATA", REAL)
    else:
        write(folder / variant.file, shape, variant.n_anomalies, X=np.zeros(shape))
    table = load_dataset(name, deduplicated=deduplicated, download=False)
    assert table.X.shape == shape
    assert table.y.sum() == variant.n_anomalies
    assert len(table.feature_names) == variant.n_columns
    assert (table.path.parent.name == "withoutdupl") == deduplicated
