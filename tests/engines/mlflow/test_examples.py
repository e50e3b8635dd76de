"""The examples in docstrings, which need the packages of this environment."""

import doctest

import mlflow

import fewlier.export.mlflow


def test_the_examples_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # MLflow keeps artefacts in the folder it is called from
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/runs.db")
    failed, attempted = doctest.testmod(fewlier.export.mlflow)
    assert attempted
    assert not failed
