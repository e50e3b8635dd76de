"""What the documents show must run, and say what the commands say."""

import ast
import pkgutil
import re
import tomllib
import warnings
from pathlib import Path

import pyarrow.dataset as ds
import pytest
import test_layers
from factories import payments
from typer.main import get_command

from fewlier import FewlierWarning
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


@pytest.mark.slow
def test_the_examples_for_streams_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("payments").mkdir()
    for number in range(2):
        payments(150, seed=number).to_parquet(f"payments/{number}.parquet", index=False)
    fit, score = blocks((ROOT / "docs" / "SCALE.md").read_text("utf-8"), "python")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FewlierWarning)  # of the identifier
        exec(fit, {})
        exec(score, {})
    (by_duckdb, *by_polars) = capsys.readouterr().out.splitlines()
    flagged = ds.dataset("scored").to_table()["is_anomaly"].to_pylist()
    assert by_duckdb == f"[({sum(flagged)},)]"
    assert sum(map(int, by_polars)) == sum(flagged) > 0


def test_every_command_has_a_section_in_the_guide():
    guide = (ROOT / "docs" / "GUIDE.md").read_text("utf-8")
    sections = re.findall(r"^### `fewlier (\w+)`$", guide, flags=re.MULTILINE)
    assert sorted(sections) == sorted(get_command(app).commands)


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


def in_code(name):
    """Return what a dotted name stands for, None if nothing; of a field of a class, its type."""
    owner, _, last = name.rpartition(".")
    try:
        found = pkgutil.resolve_name(f"fewlier.{owner}")
    except (ImportError, AttributeError):
        return None
    return getattr(found, last, getattr(found, "__annotations__", {}).get(last))


def test_the_glossary_names_what_the_code_has():
    text = (ROOT / "docs" / "GLOSSARY.md").read_text("utf-8")
    words = re.findall(r"^- \*\*(.+?)\*\*(?: \(`([\w.]+)`\))?: [a-z]", text, flags=re.MULTILINE)
    assert len(words) == text.count("\n- **") > 40
    for word, name in words:
        assert not name or in_code(name) is not None, f"{word}: give its name in code"


ARCHITECTURE = (ROOT / "docs" / "ARCHITECTURE.md").read_text("utf-8")


def test_the_picture_of_the_floors_is_the_one_that_is_checked():
    (picture,) = blocks(ARCHITECTURE, "")
    drawn = [set(line.split("   ")[0].strip().split(" | ")) for line in picture.splitlines()]
    assert drawn == test_layers.FLOORS[::-1], "draw FLOORS in docs/ARCHITECTURE.md, the top first"


def test_files_named_in_the_architecture_exist():
    named = re.findall(r"`([a-z_/]+(?:\.py|/))`", ARCHITECTURE)
    assert len(named) > 30
    for name in named:
        assert (test_layers.ROOT / name).exists() or (ROOT / name).exists(), name


def test_walks_take_ten_lines_or_fewer():
    walks = ARCHITECTURE.split("## Six walks")[1].split("\n## ")[0].split("\n**")[1:]
    assert len(walks) == 6
    for walk in walks:
        assert 3 <= len(re.findall(r"^\d\. ", walk, flags=re.MULTILINE)) <= 10
        for name in re.findall(r"`([a-z_]+\.(?!py`)[\w.]+)`", walk):
            assert in_code(name) is not None, f"{name} is not in the code"
