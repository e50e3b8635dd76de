"""What the documents show must run, and say what the commands say."""

import ast
import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import test_layers
from typer.main import get_command

from fewlier.cli.app import app

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
DOCUMENTS = [
    path
    for folder in (".", "docs", "docs/evidence", "bench")
    for path in sorted((ROOT / folder).glob("*.md"))
]


def blocks(text, language):
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def test_whatever_the_readme_shows_of_commands_is_what_they_print():
    """tools/guide.py runs these blocks, and compares what they print."""
    shown = [line for block in blocks(README, "console") for line in block.splitlines()]
    commands = {line.split()[2] for line in shown if line.startswith("$ fewlier")}
    assert commands == {"demo", "fit", "explain", "evaluate"}
    assert len(blocks(README, "python")) == len(blocks(README, "text")) == 1


def test_the_readme_installs_what_its_program_imports():
    """tools/release_check.py follows the README in an empty environment, which takes minutes."""
    (code,) = blocks(README, "python")
    imported = {
        (node.names[0].name if isinstance(node, ast.Import) else node.module).partition(".")[0]
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    needed = {re.match(r"[\w-]+", need)[0] for need in project["dependencies"]}
    (install,) = re.findall(r"^## Install\n.*?^```\n(.*?)^```$", README, re.M | re.S)
    installed = {word for line in install.splitlines() for word in line.partition("#")[0].split()}
    assert imported <= {"fewlier"} | needed | installed


def test_the_readme_is_short():
    assert README.count("\n") <= 120


def prose(path):
    """Return the words of a page, without code, tables and what is generated."""
    text = path.read_text("utf-8")
    text = re.sub(r"<!-- begin generated.*?<!-- end generated -->", "", text, flags=re.DOTALL)
    text = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"^\|.*$", "", text, flags=re.MULTILINE).split()


def test_there_are_eleven_pages_that_can_be_read_in_an_hour():
    pages = {path.stem: len(prose(path)) for path in (ROOT / "docs").glob("*.md")}
    assert len(pages) == 10
    del pages["REFERENCE"]  # of the code
    assert sum(pages.values()) + len(prose(ROOT / "README.md")) <= 16_000, pages


@pytest.mark.slow
def test_the_reference_is_what_the_code_says():
    tool = [sys.executable, ROOT / "tools" / "reference.py", "--check"]
    done = subprocess.run(tool, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_reference_has_every_command():
    text = (ROOT / "docs" / "REFERENCE.md").read_text("utf-8")
    sections = re.findall(r"^### `fewlier (\w+)`$", text, flags=re.MULTILINE)
    assert sections == list(get_command(app).commands)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_between_documents_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text("utf-8")):
        assert (path.parent / target).exists(), target


def anchors(path):
    """Return the anchors of a document's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", path.read_text("utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_to_sections_lead_to_a_heading(path):
    for target, section in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", path.read_text("utf-8")):
        assert section in anchors(path.parent / target if target else path), section


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_modules_named_in_documents_exist(path):
    for name in re.findall(r"python -m ([a-z_.]+)", path.read_text("utf-8")):
        if name.startswith("fewlier"):
            root = ROOT / "bench" / "src" if name.startswith("fewlier_bench") else ROOT / "src"
            path = root / Path(*name.split("."))
            assert path.with_suffix(".py").exists() or (path / "__main__.py").exists(), name


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_no_document_has_a_placeholder(path):
    assert not re.search(r"^[A-Z]+(_[A-Z]+)*$", path.read_text("utf-8"), flags=re.MULTILINE)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_blocks_of_code_end_where_they_should(path):
    fences = re.findall(r"^ *```(.*)$", path.read_text("utf-8"), flags=re.MULTILINE)
    assert all(re.fullmatch(r"\w*", kind) for kind in fences[::2]), fences
    assert set(fences[1::2]) <= {""}
    assert len(fences) % 2 == 0


def in_code(name):
    """Return what a dotted name stands for, None if nothing; of a field of a class, its type."""
    owner, _, last = name.rpartition(".")
    try:
        found = pkgutil.resolve_name(f"fewlier.{owner}")
    except (ImportError, AttributeError):
        return None
    return getattr(found, last, getattr(found, "__annotations__", {}).get(last))


DEVELOP = (ROOT / "docs" / "DEVELOP.md").read_text("utf-8")


def test_the_words_are_few_and_name_what_the_code_has():
    text = DEVELOP.split("\n## Words\n")[1]
    words = re.findall(r"^- \*\*(.+?)\*\*(?: \(`([\w.]+)`\))?: [a-z]", text, flags=re.MULTILINE)
    assert 30 < len(words) == text.count("\n- **") <= 45
    for word, name in words:
        assert not name or in_code(name) is not None, f"{word}: give its name in code"


def test_the_picture_of_the_floors_is_the_one_that_is_checked():
    picture = next(block for block in blocks(DEVELOP, "") if block.startswith("__main__"))
    drawn = [set(line.split("   ")[0].strip().split(" | ")) for line in picture.splitlines()]
    assert drawn == test_layers.FLOORS[::-1], "draw FLOORS in docs/DEVELOP.md, the top first"


def test_files_named_on_the_page_for_developers_exist():
    named = re.findall(r"`([a-z_/]+(?:\.py|/))`", DEVELOP)
    assert len(named) > 30
    for name in named:
        assert (test_layers.ROOT / name).exists() or (ROOT / name).exists(), name


def test_walks_take_ten_lines_or_fewer():
    walks = DEVELOP.split("## Six walks")[1].split("\n## ")[0].split("\n**")[1:]
    assert len(walks) == 6
    for walk in walks:
        assert 3 <= len(re.findall(r"^\d\. ", walk, flags=re.MULTILINE)) <= 10
        for name in re.findall(r"`([a-z_]+\.(?!py`)[\w.]+)`", walk):
            assert in_code(name) is not None, f"{name} is not in the code"
