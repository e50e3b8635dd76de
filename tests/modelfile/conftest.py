"""A saved detector that the tests of the model file share."""

import pytest
from model_files import fitted


@pytest.fixture(scope="session")
def detector():
    return fitted()


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="session")
def saved(detector, folder):
    path = folder / "saved.fewlier"
    detector.save(path)
    return path
