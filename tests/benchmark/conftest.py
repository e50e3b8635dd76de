import pytest
from factories import write_paper_table


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
