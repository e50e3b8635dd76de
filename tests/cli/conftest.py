"""The command line, in this process where that is enough: a new one needs seconds to start."""

import os
import sys
import threading
from functools import partial

import pytest
from processes import Done, plain

from fewlier import AnomalyDetector, Made, Training, cli, detector


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch):
    """Keep lines whole, so that words can be found in them."""
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture
def fewlier(capsysbinary, monkeypatch):
    """Return a function that runs a command to its end, its standard input a pipe."""

    def run(*arguments, stdin=b""):
        reader, writer = os.pipe()
        thread = threading.Thread(target=_feed, args=(writer, stdin))
        thread.start()
        capsysbinary.readouterr()
        with os.fdopen(reader, "r") as piped:
            monkeypatch.setattr(sys, "stdin", piped)
            monkeypatch.setattr(sys, "argv", ["fewlier", *map(str, arguments)])
            with pytest.raises(SystemExit) as end:
                cli.main()
        thread.join()
        out, err = capsysbinary.readouterr()
        return Done(end.value.code or 0, out, plain(err.decode()))

    return run


def _feed(descriptor, content):
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
    except BrokenPipeError:
        pass  # the command has failed before it read all


@pytest.fixture
def folder(tmp_path):
    """Return a function that lists a folder's files with their content, but for what is named."""

    def content(*but):
        paths = (path for path in tmp_path.rglob("*") if path.is_file())
        found = {str(path.relative_to(tmp_path)): path for path in paths}
        return {name: path.read_bytes() for name, path in found.items() if name not in but}

    return content


@pytest.fixture
def quick(monkeypatch):
    """Let `fewlier fit` build a network that fits at once."""

    def build(**settings):
        tiny = {"density": Made(hidden=(4,), n_orderings=1)}
        tiny["training"] = Training(lambdas=(0, 10), max_epochs=1)
        return AnomalyDetector(**settings | tiny)

    build.load = AnomalyDetector.load
    monkeypatch.setattr(detector, "AnomalyDetector", build)


@pytest.fixture
def quick_demo(monkeypatch, tmp_path):
    """Let `fewlier demo` fit at once, in an empty folder."""
    tiny = {"density": Made(hidden=(8,), n_orderings=2), "training": Training(max_epochs=2)}
    build = partial(AnomalyDetector, **tiny)
    build.load = AnomalyDetector.load
    monkeypatch.setattr(detector, "AnomalyDetector", build)
    monkeypatch.chdir(tmp_path)
