"""Documents show what their commands and programs print, as tools/guide.py finds out."""

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.main import get_command

from fewlier.cli.app import app

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = [ROOT / "docs" / f"{name}.md" for name in ("DATA", "PYTHON", "OPERATE")]
LONG = [ROOT / "docs" / f"{name}.md" for name in ("TUTORIAL", "LABELLING")]
DOCUMENTS = [README, *PAGES, *(pytest.param(path, marks=pytest.mark.long) for path in LONG)]
TOOL = ROOT / "tools" / "guide.py"


def run(*arguments):
    return subprocess.run([sys.executable, TOOL, *arguments], capture_output=True, text=True)


@pytest.fixture
def document(tmp_path):
    """Return a function that writes a document of console blocks."""

    def write(*blocks):
        path = tmp_path / "document.md"
        path.write_text("".join(f"Words.\n\n```console\n{block}```\n" for block in blocks), "utf-8")
        return path

    return write


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_a_document_shows_what_its_commands_print(path):
    done = run(path, "--check")
    assert done.returncode == 0, done.stdout + done.stderr


def test_guides_lead_through_every_command_from_a_table_to_a_decision():
    text = "".join(path.read_text("utf-8") for path in (*LONG, *PAGES))
    blocks = re.findall(r"```console\n(.*?)```", text, flags=re.DOTALL)
    shown = re.findall(r"^\$ (?:.*\| )?fewlier (\w+)", "".join(blocks), flags=re.MULTILINE)
    # An export takes half a minute, and packages that nothing else needs: tests/engines/onnx.
    assert set(shown) == set(get_command(app).commands) - {"export"}


def test_documents_are_treated_one_by_one_and_none_is_forgotten(document, tmp_path):
    first = document("$ echo new > made; cat made\nold\n").rename(tmp_path / "first.md")
    second = document("$ ls\n")
    assert run(second, first, "--check").returncode == 1
    assert run(first, second, "--check").returncode == 1
    assert run(first, second).returncode == 0
    assert "cat made\nnew\n" in first.read_text("utf-8")
    assert run(second, first, "--check").returncode == 0


def test_commands_run_in_one_folder_and_their_output_is_written_below_them(document):
    path = document("$ echo 7 > seven; echo '  wide  '\nold\n", "$ cat seven\n$ pwd > here\nold\n")
    done = run(path)
    assert done.returncode == 0, done.stderr
    assert "the output of 3 commands" in done.stdout
    assert path.read_text("utf-8") == (
        "Words.\n\n```console\n$ echo 7 > seven; echo '  wide  '\n  wide\n```\n"
        "Words.\n\n```console\n$ cat seven\n7\n$ pwd > here\n```\n"
    )
    assert run(path, "--check").returncode == 0


def test_blocks_of_python_are_one_program_whose_output_is_written_below_them(tmp_path):
    path = tmp_path / "document.md"
    blocks = ("x = 3\n", "print(x)\n", "open('made', 'w')\nprint('a ', x + 1)\n")
    first, second, third = (f"```python\n{code}```\n" for code in blocks)
    path.write_text(f"{first}\n{second}\n```text\nold\n```\n\nWords.\n\n{third}\nEnd.\n", "utf-8")
    done = run(path, "--check")
    assert done.returncode == 1
    assert "$ print(x)\n" in done.stdout
    assert "-old\n+3" in done.stdout
    assert done.stdout.endswith("guide: 2 of 3 commands print something else\n")
    assert run(path).returncode == 0
    assert path.read_text("utf-8") == (
        f"{first}\n{second}\n```text\n3\n```\n\nWords.\n\n{third}\n```text\na  4\n```\n\nEnd.\n"
    )
    assert run(path, "--check").returncode == 0


def test_commands_and_python_run_in_the_order_of_the_document(tmp_path):
    path = tmp_path / "document.md"
    path.write_text(
        "```python\nopen('made', 'w').write('1')\n```\n\n"
        "```console\n$ cat made; echo 2 > made\n```\n\n"
        "```python\nprint(open('made').read())\n```\n\n```text\nold\n```\n",
        "utf-8",
    )
    assert run(path).returncode == 0
    assert "echo 2 > made\n1\n```" in path.read_text("utf-8")
    assert path.read_text("utf-8").endswith("```text\n2\n\n```\n")


def test_what_a_document_leaves_running_is_ended(document):
    path = document("$ sleep 600 &> log & echo $!\n", "$ echo done\n")
    assert run(path).returncode == 0
    number = re.search(r"^\d+$", path.read_text("utf-8"), flags=re.MULTILINE)[0]
    deadline = time.monotonic() + 20
    while Path(f"/proc/{number}/cmdline").exists() and time.monotonic() < deadline:
        if not Path(f"/proc/{number}/cmdline").read_text():
            break  # it has ended, and nobody has asked for its exit code
        time.sleep(0.05)
    assert time.monotonic() < deadline


def test_a_program_that_fails_is_shown_with_its_error(tmp_path):
    path = tmp_path / "document.md"
    path.write_text("```python\n1 / 0\n```\n\n```text\nold\n```\n", "utf-8")
    done = run(path)
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr


def test_python_whose_output_is_not_shown_is_not_run(tmp_path):
    path = tmp_path / "document.md"
    path.write_text("```python\n1 / 0\n```\n", "utf-8")
    assert run(path, "--check").returncode == 0


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("score 59.16, +9.5", "score 60.31, +9.4"),  # five per cent, or one in the last digit
        ("0.0345 5.8–8.4", "0.0344 5.9–8.5"),
        ("8 rows", "9 rows"),
        ("time 8.6 s", "time 25.3 s"),
        ("fewlier 0.1.0, torch 2.13.0+cpu", "fewlier 0.1.0, torch 2.5.1"),
        ("lambda 1: 0.5, 10: 0.5 (weight)", "lambda 1: 1.0 (weight)"),
        (" row   score\n ────────────\n   7    9.9", " row   score\n ─────────────\n   7   10.1"),
        ("done", "fewlier: fitting: 53% done, about 9 s left\ndone"),
        ("done", "fewlier: fitting: 12 s\ndone"),
        ("done", "fewlier: scoring: 53% done, about 9 min left\ndone"),
        ("takes at most about 8 s.", "takes at most about 2.5 h; `fit --help` says more."),
    ],
)
def test_what_another_machine_prints_is_no_difference(shown, printed, document, tmp_path):
    (tmp_path / "printed").write_text(f"{printed}\n", "utf-8")
    done = run(document(f"$ cat {tmp_path / 'printed'}\n{shown}\n"), "--check")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("8 rows", "8 lines"),
        ("8 rows", "10 rows"),
        ("recall 72.6%", "recall 80.1%"),
        ("AUC 0.9707", "AUC 0.9107"),
        ("+9.5", "-9.5"),
        ("one", "one\ntwo"),
        ("time 8.6 s", "time 8.6 h"),
        ("written by fewlier 0.1.0, torch 2.13.0", "written by fewlier 0.2.0, torch 2.13.0"),
    ],
)
def test_other_words_or_numbers_are_a_difference_and_shown(shown, printed, document, tmp_path):
    (tmp_path / "printed").write_text(f"{printed}\n", "utf-8")
    path = document("$ true\n", f"$ cat {tmp_path / 'printed'}\n{shown}\n")
    before = path.read_text("utf-8")
    done = run(path, "--check")
    assert done.returncode == 1
    assert f"+{printed.splitlines()[-1]}\n" in done.stdout
    assert done.stdout.endswith("guide: 1 of 2 commands print something else\n")
    assert path.read_text("utf-8") == before


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ("$ echo so far; exit 3\n", "ended with exit code 3:\nso far"),
        ("no command\n", "a console block must begin with '$ '; got 'no command"),
        ("", "a console block must begin with '$ '; got ''"),
    ],
)
def test_what_cannot_be_run_is_refused_and_nothing_written(block, message, document):
    path = document("$ echo new\nold\n", block)
    before = path.read_text("utf-8")
    done = run(path)
    assert done.returncode == 1
    assert message in done.stderr
    assert path.read_text("utf-8") == before
