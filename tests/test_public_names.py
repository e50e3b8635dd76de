import doctest
import gc
import pydoc
import re
import subprocess
import sys
from pathlib import Path

import pytest

import fewlier
from fewlier import plot

PAGE = Path(__file__).parents[1] / "docs" / "REFERENCE.md"
LISTED = re.findall(r"^### `(fewlier\.\S+)`$", PAGE.read_text("utf-8"), flags=re.MULTILINE)
EXPORTED = [f"{home.__name__}.{name}" for home in (fewlier, plot) for name in home.__all__]


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


WARNINGS = "fewlier.errors."  # kinds of one that has an example


@pytest.mark.parametrize(
    "name", sorted(name for name in {*LISTED, *EXPORTED} if not name.startswith(WARNINGS))
)
def test_every_public_name_shows_an_example(name):
    found = doctest.DocTestFinder().find(pydoc.locate(name))  # of a class, also its methods
    assert any(each.examples for each in found), f"{name} must have Examples in its docstring"
