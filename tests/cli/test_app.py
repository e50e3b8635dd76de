import itertools
import json
import os
import re
import subprocess
import sys

import pytest
import torch
import typer
from factories import payments
from processes import COMMAND, plain, run

from fewlier import UserError, __version__, cli
from fewlier.cli import demonstration
from fewlier.cli.app import app

COMMANDS = typer.main.get_command(app).commands
EXAMPLES = {name: command.epilog for name, command in COMMANDS.items()}
LARGE = {"torch", "sklearn", "scipy", "numpy", "pyarrow", "narwhals"}


@pytest.mark.slow
def test_help_lists_the_commands():
    done = run("--help")
    assert done.returncode == 0
    shown = plain(done.stdout)
    assert all(f"│ {name} " in shown for name in COMMANDS)
    assert len(COMMANDS) >= 7


@pytest.mark.slow
def test_without_arguments_it_shows_the_help():
    done = run()
    assert "Usage: fewlier" in plain(done.stdout + done.stderr)


def test_it_tells_the_versions_and_the_device(fewlier):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    expected = f"fewlier {__version__} (torch {torch.__version__}, {device})\n"
    assert fewlier("--version") == (0, expected.encode(), "")


def test_it_asks_torch_for_the_device_unless_torch_is_built_for_the_cpu(fewlier, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    for version, device in [("2.13.0", "cuda"), ("2.13.0+cu130", "cuda"), ("2.13.0+cpu", "cpu")]:
        monkeypatch.setattr("fewlier.cli.app.version_of", lambda _, version=version: version)
        assert fewlier("--version").out.decode().endswith(f" (torch {version}, {device})\n")


def test_the_help_loads_no_large_package():
    code = (
        "import sys; from fewlier import cli; sys.argv = ['fewlier', '--help']\n"
        "try: cli.main()\n"
        "finally: print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Usage: fewlier" in plain(done.stdout)
    assert not LARGE & set(done.stderr.split())


WITHOUT_TORCH = """
import json, sys
from fewlier import cli

for arguments in json.loads(sys.argv[1]):
    sys.argv = ["fewlier", *arguments]
    try:
        cli.main()
    except SystemExit as end:
        print("exit code", end.code or 0)
assert "torch" not in sys.modules
"""


@pytest.mark.slow
def test_help_and_wrong_paths_are_shown_without_importing_torch():
    helps = [[], *([name] for name in COMMANDS)]
    wrong = [
        "fit absent.csv -o a.fewlier",
        "update a.fewlier absent.csv --label b",
        "score absent.csv -m a.fewlier",
        "inspect absent.fewlier",
        "report absent.csv -m a.fewlier -o a.html",
    ]
    commands = [[*arguments, "--help"] for arguments in helps] + [line.split() for line in wrong]
    commands += [["--version"]] if torch.__version__.endswith("+cpu") else []
    run = [sys.executable, "-c", WITHOUT_TORCH, json.dumps(commands)]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    shown = plain(done.stdout)
    for arguments in helps:
        assert " ".join(["Usage: fewlier", *arguments]) in shown
    assert shown.count("exit code 0") == len(commands) - len(wrong)
    assert shown.count("exit code 2") == len(wrong)
    assert len(re.findall(r"fewlier: .*?absent.*?No such file", plain(done.stderr))) == len(wrong)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_every_command_ends_with_an_example(name, fewlier):
    assert re.match(f"Example: fewlier {name}( |$)", EXAMPLES[name])
    shown = plain(fewlier(name, "--help").out.decode())
    assert shown.endswith(EXAMPLES[name])
    assert COMMANDS[name].help.rstrip().endswith(".")


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_is_readable_at_80_columns(name, fewlier, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = fewlier(name, "--help").out.decode().splitlines()
    assert max(map(len, lines)) <= 80
    starts = [i for i, line in enumerate(lines) if re.match(r"│[ *]+--|╰", line)]
    flags = {flag for line in lines for flag in re.findall(r"--[a-z][a-z-]*", line)}
    for option in COMMANDS[name].params:
        if getattr(option, "hidden", False):
            continue
        assert {*option.opts, *option.secondary_opts} - {"-o", "-m", option.name} <= flags
    # Neither is an option cut nor its text squeezed into a narrow column.
    assert not any("…" in line for line in lines)
    heights = [b - a for a, b in itertools.pairwise(starts) if not lines[a].startswith("╰")]
    assert max(heights) <= 5


@pytest.mark.slow
@pytest.mark.usefixtures("quick", "quick_demo")
def test_the_examples_run_in_order_in_one_folder(fewlier, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for seed, name in enumerate(["train.csv", "new.csv", "test.csv", "more.csv"]):
        rows = payments(200, seed).drop(columns="id")
        (rows.drop(columns="fraud") if name == "new.csv" else rows).to_csv(name, index=False)
    written = ["fraud.fewlier", "scored.csv", "report.html"]
    for name in ("train.csv", "test.csv", "tumours.fewlier", "report.html"):
        written.append(f"fewlier-demo/{name}")
    # Two run until they are stopped, and one needs onnx (tests/engines/onnx): see their own tests.
    elsewhere = {"label", "serve", "export"}
    for name, example in EXAMPLES.items():
        if name in elsewhere:
            continue
        before = folder(*written)
        done = fewlier(*example.removeprefix("Example: fewlier ").split())
        assert done.code == 0, (name, done.err)
        assert folder(*written) == before
    assert set(written) <= set(folder())


@pytest.mark.slow
def test_bash_completes_commands_once_that_is_installed(tmp_path):
    script = """
        fewlier --install-completion
        source ~/.bashrc
        COMP_WORDS=(fewlier ins) COMP_CWORD=1
        $(complete -p fewlier | sed 's/.*-F \\([^ ]*\\).*/\\1/') fewlier
        echo "${COMPREPLY[@]}"
    """
    path = f"{COMMAND.parent}:{os.environ['PATH']}"
    done = run(
        "-c", script, command=["bash"], env=os.environ | {"HOME": str(tmp_path), "PATH": path}
    )
    assert done.stdout.splitlines()[-1] == "inspect", done.stderr


def test_the_shell_completes_options():
    asked = {"COMP_WORDS": "fewlier score --mo", "COMP_CWORD": "2"}
    done = run(env=os.environ | asked | {"_FEWLIER_COMPLETE": "complete_bash"})
    assert done.stdout.split() == ["--model"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_it_shows_the_script_for_completion(shell, fewlier, monkeypatch):
    monkeypatch.setattr("shellingham.detect_shell", lambda: (shell, f"/bin/{shell}"))
    done = fewlier("--show-completion")
    assert (done.code, done.err) == (0, "")
    assert f"complete_{shell}" in done.out.decode()


@pytest.mark.parametrize(
    "arguments",
    [
        ["dmeo"],
        ["--fast"],
        ["demo", "--labels", "1"],
        ["demo", "--labels", "x"],
        ["demo", "it"],
        ["fit", "a.csv"],
        ["fit", "a.csv", "-o", "b", "--selection", "worst"],
        ["fit", "a.csv", "-o", "b", "--device", "tpu"],
        ["fit", "a.csv", "-o", "b", "--max-epochs", "0"],
        ["update", "a.fewlier", "--label", "c"],
        ["score", "a.csv"],
        ["explain", "a.csv", "-m", "b", "--top", "0"],
        ["evaluate", "a.csv", "-m", "b"],
        ["report", "a.csv", "-m", "b"],
    ],
    ids=" ".join,
)
def test_a_bad_argument_exits_with_2_and_shows_the_usage(arguments, fewlier):
    done = fewlier(*arguments)
    assert (done.code, done.out) == (2, b"")
    assert "Usage: " in done.err
    assert "Traceback" not in done.err


@pytest.fixture
def demo_raises(monkeypatch):
    """Return a function that makes `fewlier demo` fail with an error."""

    def arrange(error):
        def fail(*_):
            raise error

        monkeypatch.setattr(demonstration, "run", fail)
        monkeypatch.setattr(sys, "argv", ["fewlier", "demo"])

    return arrange


def test_what_the_user_can_fix_exits_with_2_and_one_sentence(demo_raises, capsys):
    demo_raises(UserError("The table must have rows; got 0."))
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 2
    assert capsys.readouterr() == ("", "fewlier: The table must have rows; got 0.\n")


def test_a_bug_keeps_its_traceback(demo_raises):
    demo_raises(ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        cli.main()
