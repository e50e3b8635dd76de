import os

import pytest
from hypothesis import settings

# fuzz: a script, which needs atheris and is run by test_fuzz.py; engines: tests that run in other
# environments, see the Makefile.
collect_ignore = ["fuzz", "engines"]

# Before torch is imported: on tensors as small as those of tests, threads only wait for each other,
# and beside another busy process they wait ten times longer than they compute.
os.environ.setdefault("OMP_NUM_THREADS", "1")

settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "local")


def pytest_runtest_setup(item):
    if item.get_closest_marker("gpu"):
        import torch

        if not torch.cuda.is_available():
            pytest.skip("needs a CUDA device")


@pytest.fixture(scope="session")
def model_bytes(tmp_path_factory):
    """Return the content of a model file for `factories.payments`."""
    from factories import save_model

    return save_model(tmp_path_factory.mktemp("model") / "fraud.fewlier").read_bytes()


@pytest.fixture
def model(model_bytes, tmp_path):
    """Return the path of a model file for `factories.payments`, in the test's folder."""
    path = tmp_path / "fraud.fewlier"
    path.write_bytes(model_bytes)
    return path


@pytest.fixture(scope="session")
def chromium():
    """Return a browser; who opens a page in it sets the size first."""
    from fewlier_bench.studies import browser

    if not browser.has_chromium():
        (pytest.fail if os.environ.get("CI") else pytest.skip)(browser.NEEDED)
    with browser.chromium() as driver:
        yield driver
