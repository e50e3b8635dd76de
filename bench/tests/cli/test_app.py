"""The commands of the benchmark, and the documents that name them."""

import re
from pathlib import Path

import pytest
from typer.main import get_command

from fewlier_bench import studies
from fewlier_bench.cli.app import app
from fewlier_bench.cli.studies import STUDIES

ROOT = Path(__file__).parents[3]
COMMANDS = get_command(app).commands
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "bench" / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
]


def test_every_study_is_a_command():
    files = {path.stem for path in Path(studies.__file__).parent.glob("*.py")}
    assert {name.replace("-", "_") for name in STUDIES} == files - {
        "__init__",
        "browser",
        "grid",
        "made_up",
        "study",
    }


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_that_names_it(name, bench):
    done = bench(name, "--help")
    assert (done.code, done.err) == (0, "")
    assert re.search(rf"usage: fewlier-bench {name} ", done.out.decode(), flags=re.IGNORECASE)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_bad_argument_exits_with_2_and_shows_the_usage(name, bench):
    done = bench(name, "--no-such-option")
    assert (done.code, done.out) == (2, b"")
    assert re.search(rf"usage: fewlier-bench {name} ", done.err, flags=re.IGNORECASE)


@pytest.mark.parametrize(
    "arguments",
    [
        ["reproduce", "--splits", "0"],
        ["reproduce", "--anomalies", "x"],
        ["compare", "--workers", "0"],
    ],
    ids=" ".join,
)
def test_a_bad_value_exits_with_2(arguments, bench):
    done = bench(*arguments)
    assert (done.code, done.out) == (2, b"")
    assert "Invalid value" in done.err


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_documents_name_commands_that_exist(path):
    for name in re.findall(r"fewlier-bench ([a-z-]+)", path.read_text("utf-8")):
        assert name in COMMANDS
