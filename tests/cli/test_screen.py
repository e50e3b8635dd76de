"""Notes and progress on standard error: a bar on a terminal, lines off it."""

import itertools
import os
import pty
import subprocess
import sys
import warnings

import pytest

from fewlier.cli import screen
from fewlier.cli.screen import progress, warnings_as_notes

BAR = (
    "import time\nfrom fewlier.cli.screen import progress\n"
    "with progress('counting', 'nothing was lost.') as show:\n"
    "    for share in (None, 0.25, 0.5, 1.0): show(share); time.sleep(0.12)\n"
)


def test_a_terminal_shows_a_bar():
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": "80"}
    with subprocess.Popen(
        [sys.executable, "-c", BAR], stdout=subprocess.PIPE, stderr=theirs, env=environment
    ) as process:
        os.close(theirs)
        shown = b"".join(iter(lambda: read(ours), b"")).decode()
        assert process.stdout.read() == b""
    os.close(ours)
    assert process.returncode == 0
    assert "counting" in shown
    assert "━" in shown
    assert "\x1b[2K" in shown  # lines are cleared, so that nothing is left of it
    assert "fewlier:" not in shown


def read(descriptor):
    try:
        return os.read(descriptor, 4096)
    except OSError:  # Linux says so when the other end is closed
        return b""


@pytest.fixture
def clock(monkeypatch):
    """Let a second pass each time that somebody looks."""
    seconds = itertools.count()
    monkeypatch.setattr(screen.time, "monotonic", lambda: float(next(seconds)))


@pytest.mark.usefixtures("clock")
def test_off_a_terminal_lines_come_now_and_then(capsys, monkeypatch):
    monkeypatch.setattr(screen, "SECONDS_BETWEEN_LINES", 10.0)
    with progress("scoring", "no output was written.") as show:
        for percent in range(1, 41):
            show(percent / 100)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "fewlier: scoring: 10% done, about 90 s left",
        "fewlier: scoring: 20% done, about 80 s left",
        "fewlier: scoring: 30% done, about 70 s left",
        "fewlier: scoring: 40% done, about 60 s left",
    ]


@pytest.mark.usefixtures("clock")
def test_without_a_known_end_the_time_is_told(capsys, monkeypatch):
    monkeypatch.setattr(screen, "SECONDS_BETWEEN_LINES", 5.0)
    with progress("scoring", "no output was written.") as show:
        for _ in range(10):
            show(None)
    assert capsys.readouterr().err == "fewlier: scoring: 5 s\nfewlier: scoring: 10 s\n"


def test_our_warnings_are_notes_and_others_look_as_ever(tmp_path):
    script = tmp_path / "warns.py"
    script.write_text(
        "import warnings\nfrom fewlier import FewlierWarning\n"
        "from fewlier.cli.screen import warnings_as_notes\n"
        "with warnings_as_notes():\n"
        "    for _ in range(2): warnings.warn('few rows', FewlierWarning)\n"
        "    warnings.warn('old', UserWarning)\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert lines[:2] == ["fewlier: note: few rows"] * 2
    assert lines[2] == f"{script}:6: UserWarning: old"


def test_warnings_are_as_before_afterwards():
    before = warnings.showwarning
    with warnings_as_notes():
        assert warnings.showwarning is not before
    assert warnings.showwarning is before


def test_the_bar_is_on_standard_error(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes it for a terminal
    with progress("counting", "nothing was lost.") as show:
        for share in (None, 0.5, 1.0):
            show(share)
    out, err = capsys.readouterr()
    assert out == ""
    assert "counting" in err
    assert "━" in err


def test_warnings_of_others_go_where_they_went():
    def warn():
        with warnings_as_notes():
            warnings.warn("old", DeprecationWarning, stacklevel=1)

    with pytest.warns(DeprecationWarning, match="old"):
        warn()
