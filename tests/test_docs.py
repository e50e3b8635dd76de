"""What the documents show must run, and say what the commands say."""

import re
from pathlib import Path

import pytest
from typer.main import get_command

from fewlier.cli.app import app

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
DOCUMENTS = [
    path for folder in (".", "docs", "bench") for path in sorted((ROOT / folder).glob("*.md"))
]


def blocks(text, language):
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


@pytest.mark.slow
def test_the_example_of_the_readme_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (code,) = blocks(README, "python")
    exec(code, {"__name__": "__main__"})
    scores, flags, reasons, *summary = capsys.readouterr().out.splitlines()
    assert len(scores.strip("[]").split()) == 4
    assert flags == "[0 0 1 1]"
    assert "x2" in reasons.split(",")[0]
    assert any(line.startswith("note") and "unlabelled" in line for line in summary)


def test_whatever_the_readme_shows_of_commands_is_what_they_print():
    """tools/guide.py runs blocks of the kind `console`, and compares what they print."""
    assert not blocks(README, "text")
    shown = [line for block in blocks(README, "console") for line in block.splitlines()]
    commands = {line.split()[2] for line in shown if line.startswith("$ fewlier")}
    assert commands == {"demo", "fit", "score", "explain", "evaluate"}


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
