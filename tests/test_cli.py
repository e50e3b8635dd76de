import re
import subprocess
import sys
import sysconfig
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fewlier import AnomalyDetector, UserError, cli, demo

COMMAND = Path(sysconfig.get_path("scripts")) / "fewlier"


def run(*arguments):
    return subprocess.run([COMMAND, *arguments], capture_output=True, text=True, check=False)


def plain(text):
    """Return the words alone, without colours and line breaks, which depend on the terminal."""
    return " ".join(re.sub(r"\x1b\[[0-9;]*m", "", text).split())


@pytest.mark.slow
def test_the_demo_compares_fits_with_and_without_labels_and_gives_reasons():
    done = run("demo")
    assert done.returncode == 0, done.stderr
    shown = plain(done.stdout)
    assert "Training: 286 benign (normal) and 6 malignant (anomalous)" in shown
    (without_labels,) = re.findall(r"Test AUC with no labels (\d\.\d{3})", shown)
    (with_labels,) = re.findall(r"Test AUC with 6 labels (\d\.\d{3})", shown)
    assert float(with_labels) >= 0.9
    assert float(with_labels) >= float(without_labels)
    assert "rows 286 normal, 6 anomalous, 0 unlabelled" in shown
    rows = shown.split("Most anomalous test rows")[1]
    assert len(re.findall(r"\d+ │ +\d+\.\d │ malignant", rows)) >= demo.N_SHOWN - 1
    assert len(re.findall(r" = [\d.]+: \+\d", rows)) == demo.N_SHOWN * 3


@pytest.fixture
def quick_demo(monkeypatch):
    quick = partial(AnomalyDetector, hidden=(8,), n_orderings=2, n_masks=2, max_epochs=2)
    monkeypatch.setattr(demo, "AnomalyDetector", quick)


@pytest.mark.usefixtures("quick_demo")
def test_the_demo_takes_the_number_of_labels_and_a_seed():
    def shown(seed):
        result = CliRunner().invoke(cli.app, ["demo", "--labels", "9", "--seed", str(seed)])
        return re.sub(r"time \d+\.\d s", "", plain(result.stdout))

    first = shown(1)
    assert "286 benign (normal) and 9 malignant" in first
    assert "Test AUC with 9 labels" in first
    assert shown(1) == first
    assert shown(2) != first


def test_training_and_test_rows_of_the_demo_are_all_rows_once():
    split = demo.breast_cancer(n_labels=6, seed=0)
    assert sorted([*split.training, *split.test]) == list(range(569))
    assert split.labels[split.training].sum() == 6


def test_help_lists_the_commands():
    done = run("--help")
    assert done.returncode == 0
    assert "demo" in plain(done.stdout)


def test_without_arguments_it_shows_the_help():
    done = run()
    assert "Usage: fewlier" in plain(done.stdout + done.stderr)


@pytest.mark.parametrize("arguments", [["--help"], ["demo", "--help"]])
def test_help_is_shown_without_importing_torch(arguments):
    code = (
        "import sys; from fewlier import cli; sys.argv[0] = 'fewlier'\n"
        "try: cli.main()\n"
        "except SystemExit as end: assert not end.code\n"
        "sys.exit('torch was imported' if 'torch' in sys.modules else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Usage: fewlier" in plain(done.stdout)


@pytest.mark.parametrize(
    "arguments",
    [["dmeo"], ["--fast"], ["demo", "--labels", "1"], ["demo", "--labels", "x"], ["demo", "it"]],
)
def test_a_bad_argument_exits_with_2_and_no_traceback(arguments):
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Usage: fewlier" in plain(done.stderr)
    assert "Traceback" not in done.stderr


@pytest.fixture
def demo_raises(monkeypatch):
    """Return a function that makes `fewlier demo` fail with an error."""

    def arrange(error):
        def fail(*_):
            raise error

        monkeypatch.setattr(demo, "run", fail)
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
