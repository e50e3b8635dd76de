"""Notes and progress on standard error: a bar on a terminal, lines off it."""

import itertools
import math
import os
import pty
import re
import subprocess
import sys
import warnings

import pytest

from fewlier.cli import screen
from fewlier.cli.screen import progress, warnings_as_notes

BAR = """
import time
from fewlier.cli.screen import progress, say
with progress('counting', 'nothing was lost.') as show:
    for share in (None, 0.25, 0.5, 1.0):
        show(share)
        time.sleep(0.12)
        {after}
"""


def on_a_terminal(code):
    """Return what Python code prints to standard error where that is a terminal."""
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": "80"}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=theirs, env=environment
    ) as process:
        os.close(theirs)
        shown = b"".join(iter(lambda: read(ours), b"")).decode()
        assert process.stdout.read() == b""
    os.close(ours)
    assert process.returncode == 0
    return shown


def test_a_terminal_shows_a_bar():
    shown = on_a_terminal(BAR.format(after=""))
    assert "counting" in shown
    assert "━" in shown
    assert "\x1b[2K" in shown  # lines are cleared, so that nothing is left of it
    assert "fewlier:" not in shown


def test_a_message_has_a_line_of_its_own_above_the_bar():
    shown = on_a_terminal(BAR.format(after="say('so far')"))
    lines = re.split(r"[\r\n]+", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown))
    assert lines.count("fewlier: so far") == 4


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
@pytest.mark.parametrize(
    ("seconds", "lines"),
    [
        (
            5.0,  # ten percent take longer
            [
                "fewlier: scoring: 10% done, about 90 s left",
                "fewlier: scoring: 20% done, about 80 s left",
                "fewlier: scoring: 30% done, about 70 s left",
                "fewlier: scoring: 40% done, about 60 s left",
            ],
        ),
        (
            15.0,
            [
                "fewlier: scoring: 15% done, about 85 s left",
                "fewlier: scoring: 30% done, about 70 s left",
            ],
        ),
    ],
)
def test_off_a_terminal_lines_come_now_and_then(seconds, lines, capsys, monkeypatch):
    monkeypatch.setattr(screen, "SECONDS_BETWEEN_LINES", seconds)
    with progress("scoring", "no output was written.") as show:
        for percent in range(1, 41):
            show(percent / 100)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == lines


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


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.004, "fewlier: training takes at most about 1 s.\n"),
        (0.5, "fewlier: training takes at most about 50 s.\n"),
        (9.0, "fewlier: training takes at most about 15 min; see the help.\n"),
        (100.0, "fewlier: training takes at most about 2.8 h; see the help.\n"),
    ],
)
def test_the_time_is_announced_after_the_second_epoch(seconds, said, capsys, monkeypatch):
    now = itertools.chain([7.0, 7.0 + seconds], itertools.repeat(math.nan))
    monkeypatch.setattr(screen.time, "perf_counter", lambda: next(now))
    shares = []
    update = screen.announcing("training", shares.append, "; see the help")
    update(0.0)
    update(0.01)
    assert capsys.readouterr().err == ""
    for epoch in range(2, 101):
        update(epoch / 100)
    assert capsys.readouterr() == ("", said)
    assert shares == [epoch / 100 for epoch in range(101)]


def test_nothing_is_announced_of_what_is_over(capsys):
    update = screen.announcing("training", lambda _: None)
    for share in (0.0, 0.5, 1.0):
        update(share)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.2, "1 s"),
        (59.6, "60 s"),
        (99.4, "99 s"),
        (100, "2 min"),
        (5900, "98 min"),
        (6300, "1.8 h"),
    ],
)
def test_a_duration_is_written_as_people_do(seconds, text):
    assert screen.duration(seconds) == text
