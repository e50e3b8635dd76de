"""The sdists and the wheels: what is in them. tools/release_check.py installs and uses them.

It also has its own archives looked into, those that would be released: FEWLIER_DIST names their
folder. Without it they are built here.
"""

import os
import subprocess
import sys
import tarfile
from email import message_from_bytes
from pathlib import Path
from zipfile import ZipFile

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
PAGE = ("page.html", "page.css", "page.js", "page.mplstyle", "palette.css", "labelling.*")
FEWLIER, BENCH = "fewlier-*", "fewlier_bench-*"


def build(target, source, folder):
    """Build without a network: hatchling comes with the development tools."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", folder]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def unpack(dist, name, folder):
    (path,) = dist.glob(f"{name}.tar.gz")
    with tarfile.open(path) as archive:
        archive.extractall(folder, filter="data")
    (source,) = folder.iterdir()
    return source


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    """Return the folder of all four archives; each wheel is built from its sdist."""
    if "FEWLIER_DIST" in os.environ:
        return Path(os.environ["FEWLIER_DIST"])
    folder = tmp_path_factory.mktemp("dist")
    for name, source in ((FEWLIER, ROOT), (BENCH, ROOT / "bench")):
        build("sdist", source, folder)
        build("wheel", unpack(folder, name, tmp_path_factory.mktemp("source")), folder)
    return folder


@pytest.fixture(scope="module")
def unpacked(dist, tmp_path_factory):
    return unpack(dist, FEWLIER, tmp_path_factory.mktemp("unpacked"))


@pytest.fixture(scope="module")
def wheel(dist):
    (path,) = dist.glob(f"{FEWLIER}.whl")
    return path


def files_under(folder, *patterns):
    paths = (path for pattern in patterns for path in folder.rglob(pattern))
    return {path.relative_to(folder).as_posix() for path in paths}


def test_the_sdist_holds_the_sources_tests_and_documents_and_nothing_stray(unpacked):
    found = {path.name for path in unpacked.iterdir()}
    documents = {"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE"}
    build = {"pyproject.toml", "constraints.txt", "Dockerfile", "Makefile", "mkdocs.yml"}
    own = {"PKG-INFO", ".gitignore"}  # hatchling adds these
    folders = {"src", "tests", "bench", "tools", "docs", "results"}
    assert found == documents | build | own | folders
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


def test_wheels_are_smaller_than_a_megabyte(dist):
    sizes = {path.name: path.stat().st_size for path in dist.glob("*.whl")}
    assert len(sizes) == 2
    assert max(sizes.values()) < 1_000_000, sizes


def test_no_wheel_holds_tests(dist):
    for path in dist.glob("*.whl"):
        with ZipFile(path) as archive:
            paths = [Path(name) for name in archive.namelist()]
        assert not [path for path in paths if "tests" in path.parts]
        assert not [path for path in paths if path.match("test_*.py") or path.match("conftest.py")]


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


def test_the_benchmark_is_a_wheel_of_its_own(dist):
    (path,) = dist.glob(f"{BENCH}.whl")
    with ZipFile(path) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        (entry,) = (name for name in archive.namelist() if name.endswith("/entry_points.txt"))
        commands = archive.read(entry).decode()
        (licence,) = (name for name in archive.namelist() if name.endswith("/LICENSE"))
        assert archive.read(licence) == (ROOT / "LICENSE").read_bytes()
    source = ROOT / "bench" / "src"
    assert names == files_under(source, "*.py", "*.typed", "*published*.csv")
    assert "fewlier_bench/reproduction/published_auc.csv" in names
    assert "fewlier-bench = fewlier_bench.cli:run" in commands


def test_the_sdist_of_the_benchmark_holds_its_sources_and_nothing_stray(dist, tmp_path):
    source, bench = unpack(dist, BENCH, tmp_path), ROOT / "bench"
    found = {path.name for path in source.iterdir()}
    own = {"PKG-INFO", ".gitignore"}
    assert found == {"src", "pyproject.toml", "README.md", "LICENSE"} | own
    expected = files_under(bench / "src", "*.py", "*.typed", "*published*.csv")
    assert files_under(source / "src", "*.*") == expected
    assert (source / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
