import gc
import subprocess
import sys

import pytest

import fewlier


def test_all_is_sorted_and_without_repeats():
    assert list(fewlier.__all__) == sorted(set(fewlier.__all__))


def test_every_public_name_can_be_imported():
    for name in fewlier.__all__:
        assert getattr(fewlier, name) is not None


def test_dir_lists_every_public_name():
    assert set(fewlier.__all__) <= set(dir(fewlier))


def test_importing_it_loads_no_large_package():
    code = "import sys, fewlier; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"torch", "sklearn", "scipy", "numpy", "pyarrow"} & set(done.stdout.split())


@pytest.mark.parametrize("collects", [True, False])
def test_a_first_use_leaves_the_garbage_collector_as_it_was(collects, monkeypatch):
    def load(_):
        assert not gc.isenabled()
        raise ImportError

    monkeypatch.setattr(fewlier, "import_module", load)
    try:
        (gc.enable if collects else gc.disable)()
        with pytest.raises(ImportError):
            fewlier.AnomalyDetector  # noqa: B018 - looked up, and so loaded
        assert gc.isenabled() == collects
    finally:
        gc.enable()
