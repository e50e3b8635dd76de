"""The sdist and the wheels: what is in them. tools/release_check.py installs and uses them."""

import subprocess
import sys
import tarfile
from email import message_from_bytes
from pathlib import Path
from zipfile import ZipFile

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
PAGE = ("page.html", "page.css", "page.js", "page.mplstyle", "labelling.*")


def built(target, source, folder):
    """Build without a network: hatchling comes with the development tools."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", folder]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = (path for path in folder.iterdir() if path.is_file())
    return path


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    return built("sdist", ROOT, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def unpacked(sdist, tmp_path_factory):
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (source,) = folder.iterdir()
    return source


@pytest.fixture(scope="module")
def wheel(unpacked, tmp_path_factory):
    return built("wheel", unpacked, tmp_path_factory.mktemp("wheel"))


def files_under(folder, *patterns):
    paths = (path for pattern in patterns for path in folder.rglob(pattern))
    return {path.relative_to(folder).as_posix() for path in paths}


def test_the_sdist_holds_the_sources_tests_and_documents_and_nothing_stray(unpacked):
    found = {path.name for path in unpacked.iterdir()}
    documents = {"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE"}
    build = {"pyproject.toml", "constraints.txt", "Makefile", "PKG-INFO", ".gitignore"}
    assert found == documents | build | {"src", "tests", "bench", "tools", "docs", "results"}
    for folder in ("src", "tests", "tools", "bench"):
        patterns = (
            "*.py",
            "*.mjs",
            "*.typed",
            "*published*.csv",
            "version_*",
            "scores.json",
            *PAGE,
        )
        expected = files_under(ROOT / folder, *patterns, "*.toml", "*.md", "*.txt")
        assert files_under(unpacked / folder, "*.*") == expected


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    with ZipFile(wheel) as archive:
        names = set(archive.namelist())
    package = {f"fewlier/{name}" for name in files_under(ROOT / "src" / "fewlier", "*.py", *PAGE)}
    assert not any("bench" in name for name in names)
    (info,) = {name.split("/")[0] for name in names if ".dist-info/" in name}
    about = ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE")
    assert names == package | {"fewlier/py.typed"} | {f"{info}/{name}" for name in about}


def test_the_wheel_is_smaller_than_a_megabyte(wheel):
    assert wheel.stat().st_size < 1_000_000


def test_the_metadata_name_the_licence_the_readme_and_the_extras(wheel):
    with ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        metadata = message_from_bytes(archive.read(name))
    assert metadata["Name"] == "fewlier"
    assert metadata["License-Expression"] == "MIT"
    assert metadata["License-File"] == "LICENSE"
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["Description-Content-Type"] == "text/markdown"
    text = metadata.get_payload(decode=True).decode()
    assert text.strip() == (ROOT / "README.md").read_text("utf-8").strip()
    needed = [need for need in metadata.get_all("Requires-Dist") if "extra ==" not in need]
    assert "torch<3,>=2.13" in needed
    assert not any(need.startswith(("pooch", "catboost")) for need in needed)
    assert "dev" in metadata.get_all("Provides-Extra")


def test_the_benchmark_is_a_wheel_of_its_own(unpacked, tmp_path):
    with ZipFile(built("wheel", unpacked / "bench", tmp_path)) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        (entry,) = (name for name in archive.namelist() if name.endswith("/entry_points.txt"))
        commands = archive.read(entry).decode()
        (licence,) = (name for name in archive.namelist() if name.endswith("/LICENSE"))
        assert archive.read(licence) == (ROOT / "LICENSE").read_bytes()
    source = ROOT / "bench" / "src"
    assert names == files_under(source, "*.py", "*.typed", "*published*.csv")
    assert "fewlier_bench/reproduction/published_auc.csv" in names
    assert "fewlier-bench = fewlier_bench.cli:run" in commands
