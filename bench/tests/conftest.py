import os
import sys

import pooch
import pytest
from archives import Site, arff, tar_gz
from paper_tables import write_paper_table
from processes import Done, plain

from fewlier_bench import cli

# Before torch is imported, as in the tests of fewlier.
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture
def bench(capsysbinary, monkeypatch):
    """Return a function that runs a command to its end in this process."""
    monkeypatch.setenv("COLUMNS", "200")  # lines stay whole, so that words can be found in them

    def run(*arguments):
        capsysbinary.readouterr()
        monkeypatch.setattr(sys, "argv", ["fewlier-bench", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        out, err = capsysbinary.readouterr()
        return Done(end.value.code or 0, out, plain(err.decode()))

    return run


@pytest.fixture(scope="session")
def paper_tables(tmp_path_factory):
    """Return a folder with tables that have the counts of some of the paper's."""
    folder = tmp_path_factory.mktemp("tables")
    for name in ("Parkinson", "HeartDisease", "Stamps"):
        write_paper_table(folder, name)
    write_paper_table(folder, "Wilt", deduplicated=True)
    return folder


@pytest.fixture
def data(paper_tables, monkeypatch):
    """Let fewlier find these tables alone."""
    monkeypatch.setenv("FEWLIER_DATA", str(paper_tables))
    monkeypatch.setattr("pooch.os_cache", lambda _: paper_tables / "cache")


@pytest.fixture
def site(monkeypatch):
    monkeypatch.setattr("pooch.core.time.sleep", lambda _: None)  # between two attempts
    site = Site(monkeypatch)
    yield site
    site.close()


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """Keep the tests away from the user's folder and cache."""
    folder = tmp_path / "cache"
    monkeypatch.setattr(pooch, "os_cache", lambda _: folder)
    monkeypatch.delenv("FEWLIER_DATA", raising=False)
    return folder


@pytest.fixture
def make_arff():
    return arff


@pytest.fixture
def make_archive():
    return tar_gz
